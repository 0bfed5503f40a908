"""Errors of answers to rows that were measured: relative error by row, and their summary by metric."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

SUFFIX: Final = "_error"


class MetricErrors(NamedTuple):
    """Relative errors of a metric, predicted over measured minus one; None where a row lacks either.

    `n_within` is the number of measured values in the intervals of their predictions.
    """

    errors: list[float | None]
    n_within: int

    def summary(self) -> dict[str, Any]:
        """Return the number of rows, the median of the absolute errors, and the rows within the interval."""
        known = [abs(error) for error in self.errors if error is not None]
        return {"n_row": len(known), "median_ape": statistics.median(known), "n_within": self.n_within}


def measured_errors(
    header: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str], answers: Sequence[Sequence[Any]]
) -> dict[str, MetricErrors]:
    """Return the errors of each metric that some row has measured and the answers predict.

    Examples
    --------
    >>> errors = measured_errors(["tpot_s"], [["0.02"], [""]], ["tpot_s", "tpot_s_lo"], [[0.03, 0.01], [0.03, 0.01]])
    >>> [None if error is None else round(error, 3) for error in errors["tpot_s"].errors]
    [0.5, None]
    """
    found = {}
    for metric in (name for name in header if name in names and f"{name}_lo" in names):
        measured = [_number(row[header.index(metric)]) for row in rows]
        cells = [dict(zip(names, answer, strict=True)) for answer in answers]
        errors = [
            one[metric] / value - 1 if value and one[metric] is not None else None
            for one, value in zip(cells, measured, strict=True)
        ]
        if any(error is not None for error in errors):
            found[metric] = MetricErrors(errors, sum(map(_is_within, cells, measured, [metric] * len(rows))))
    return found


def errors_text(errors: Mapping[str, MetricErrors]) -> str:
    """Return the errors in one sentence; empty without any."""
    texts = []
    for metric, one in errors.items():
        part = one.summary()
        rows = f"{part['n_row']} row{'s' if part['n_row'] != 1 else ''}"
        texts.append(f"{metric} {part['median_ape']:.0%} over {rows}, {part['n_within']} within the interval")
    columns = ", ".join(f"{metric}{SUFFIX}" for metric in errors)
    return f"against the measured columns, median error: {'; '.join(texts)}; by row in {columns}" if texts else ""


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if value > 0 else None


def _is_within(cells: Mapping[str, Any], value: float | None, metric: str) -> bool:
    low, high = cells.get(f"{metric}_lo"), cells.get(f"{metric}_hi")
    return None not in {value, low, high} and low <= value <= high  # type: ignore[operator]
