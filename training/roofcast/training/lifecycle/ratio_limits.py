"""Quarantine: imported rows whose ratio to the analytic estimate lies outside what others measured on alike stacks.

The limits rest on the shipped campaigns and on the estimate before calibration. Imported rows move neither, so no
series of small steps shifts them. The package holds them: see `roofcast.training.lifecycle.shipped`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from roofcast.training.dataset.stacks import name_stacks, stack_owners

ALIKE: Final = (("engine", "accelerator", "load"), ("engine", "load"), ("load",), ())
"""Columns that alike rows share, the most specific first."""

_LIMITS: Final = ("low", "high", "n_row", "n_owner")
_LIMIT_COLUMNS: Final = ("n_column", *ALIKE[0], "metric", *_LIMITS)

MIN_ROW: Final = 50
MIN_OWNER: Final = 3
"""Least number of alike rows, and of owners of their stacks, that define limits."""

TAIL: Final = 0.005
"""Share of alike rows beyond each limit before the margin."""

MARGIN: Final = float(np.log(1.5))
"""Widening of each limit, in natural logarithms: judgement. Sound rows seldom pass the limits: 139 of the 27,324
shipped training rows with a ratio do. Rows of an owner that the limits did not see pass them more often: 587 of
20,684 rows of owners with 30 rows or more, and 759 of 6,406 of `llm_pilot` and `argonne`, whose engines and loads
hardly anybody else measured. Such owners confirm their rows."""


@dataclass(frozen=True, slots=True)
class RatioLimits:
    """Ratios of measurement to estimate that others measured.

    `by_group`: for each of `ALIKE` a table by its columns and the metric: `low` and `high`, natural logarithms, and
    the numbers `n_row` and `n_owner`.
    """

    by_group: tuple[pd.DataFrame, ...]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Return the limits of a file of `write`."""
        texts = dict.fromkeys((*ALIKE[0], "metric"), str)
        table = pd.read_csv(file, dtype=texts, keep_default_na=False)
        parts = dict(iter(table.groupby("n_column")))
        return cls(tuple(parts[len(by)].set_index([*by, "metric"] if by else "metric")[[*_LIMITS]] for by in ALIKE))

    def write(self, file: Path) -> None:
        """Write the limits to a CSV file."""
        parts = [table.reset_index().assign(n_column=len(by)) for by, table in zip(ALIKE, self.by_group, strict=True)]
        pd.concat(parts)[[*_LIMIT_COLUMNS]].to_csv(file, index=False, lineterminator="\n")

    @classmethod
    def fit(cls, rows: pd.DataFrame, log_ratios: pd.DataFrame) -> Self:
        """Return the limits by measurements and their `log_ratios`, which share an index."""
        columns = rows[["engine", "accelerator", "load"]].assign(owner=stack_owners(name_stacks(rows)))
        ratios = log_ratios.melt(var_name="metric", value_name="ratio", ignore_index=False)
        table = ratios.dropna(subset=["ratio"]).join(columns)
        return cls(tuple(_limits(table, [*names, "metric"]) for names in ALIKE))

    def reasons(self, rows: pd.DataFrame, log_ratios: pd.DataFrame) -> pd.Series:
        """Return why each row is outside the limits of alike rows, blank if it is not: index of `rows`."""
        reasons = np.full(len(rows), "", dtype=object)
        groups: Mapping[Any, Any] = rows.groupby(list(ALIKE[0]), sort=False, dropna=False).indices
        for metric, ratios in ((str(name), log_ratios[name].to_numpy(dtype=float)) for name in log_ratios):
            for kind, members in groups.items():
                cells = dict(zip(ALIKE[0], map(str, kind), strict=True))
                alike = self._of_alike(cells, metric) if not np.isnan(ratios[members]).all() else None
                if alike is None:
                    continue
                names, limits = alike
                is_out = (ratios[members] < limits["low"]) | (ratios[members] > limits["high"])
                far = members[is_out & (reasons[members] == "")]
                allowed = _describe(limits, [cells[name] for name in names]) if len(far) else ""
                for i in far:
                    reasons[i] = f"{metric} is {np.exp(ratios[i]):.3g} times the estimate; {allowed}"
        return pd.Series(reasons, index=rows.index, dtype=object)

    def _of_alike(self, cells: Mapping[str, str], metric: str) -> tuple[tuple[str, ...], pd.Series] | None:
        for names, limits in zip(ALIKE, self.by_group, strict=True):
            key: Any = (*(cells[name] for name in names), metric) if names else metric
            if key in limits.index:
                return names, limits.loc[key]
        return None


def _limits(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    groups = table.groupby(by)
    limits = pd.DataFrame(
        {
            "low": groups["ratio"].quantile(TAIL) - MARGIN,
            "high": groups["ratio"].quantile(1 - TAIL) + MARGIN,
            "n_row": groups.size(),
            "n_owner": groups["owner"].nunique(),
        }
    )
    return limits[(limits["n_row"] >= MIN_ROW) & (limits["n_owner"] >= MIN_OWNER)]


def _describe(alike: pd.Series, cells: Sequence[str]) -> str:
    group = " ".join(cell or "unknown" for cell in cells)
    low, high = np.exp(alike[["low", "high"]].to_numpy(dtype=float))
    return (
        f"the {alike['n_row']:.0f} measurements of {alike['n_owner']:.0f} owners"
        f"{f' with {group}' if group else ''} allow {low:.3g} to {high:.3g} times"
    )
