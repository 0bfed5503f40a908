"""Plausibility of one run: its published numbers must not contradict each other, as mixed units make them do."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.errors import SchemaError
from roofcast.data.measurements.table_rules import Lines, line_of
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.units import S_PER_MS

Statistics = Mapping[str, Mapping[str, float]]
"""Outcomes and request lengths by statistic; NaN where unknown."""

PARTS_FACTOR: Final = 3.0
"""Largest factor between E2E and its parts: mean lengths and mean gaps may be correlated."""

IN_FLIGHT_FACTOR: Final = 50.0
"""Largest factor by which requests in flight fall short of the concurrency: a run ramps up and drains."""

OVERRUN_FACTOR: Final = 1.5
"""Largest factor by which requests outlast the run: clients round, and end late."""

TOKENS_FACTOR: Final = 2.0
"""Largest factor between output throughput and tokens over duration: some clients count a window of the run."""

MAX_GAP_S: Final = 5.0
"""Longest mean or median time for a token that a deployment has; 8 ms read as seconds exceed it."""

CHECKED_COLUMNS: Final = (
    "statistic", "load", "concurrency", "n_input_token", "n_output_token", "n_request", "n_failed", "duration_s",
    "ttft_s", "itl_s", "tpot_s", "e2e_s",
    "output_throughput_token_per_s", "total_throughput_token_per_s", "request_throughput_per_s",
)  # fmt: skip
"""Columns that the rules read."""

_MIN_S: Final = 1e-7
_MAX_S: Final = 86_400.0


def check_plausible(cells: Mapping[str, Any], statistics: Statistics, place: str, line: int = 0) -> None:
    """Refuse a run whose numbers contradict each other.

    Except for the bounds, each rule compares two published means of the run, and its message names both.

    Raises `SchemaError` if a TTFT or E2E is over a day or under 0.1 us, a mean or median TPOT or ITL over
    `MAX_GAP_S`, E2E far from TTFT + TPOT x (output tokens - 1), requests last longer than the run or far shorter or
    longer than its concurrency implies, or throughput is far from tokens over duration.

    References
    ----------
    J. D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 9(3), 1961.
    """
    for column, problem in _problems(cells, statistics):
        raise SchemaError(column, f"{problem}; are seconds and milliseconds confused?", place, line)


def _problems(cells: Mapping[str, Any], statistics: Statistics) -> Iterator[tuple[str, str]]:
    yield from _of_bounds(statistics)
    mean = statistics.get("mean", {})
    ttft_s, tpot_s, e2e_s, itl_s = (_of(mean, c) for c in ("ttft_s", "tpot_s", "e2e_s", "itl_s"))
    n_output = _of(cells, "n_output_token")
    gap_s = tpot_s if not math.isnan(tpot_s) else itl_s
    parts_s = ttft_s + (0.0 if n_output <= 1 else gap_s * (n_output - 1))
    if _apart(e2e_s, parts_s, PARTS_FACTOR):
        problem = (
            f"E2E of {e2e_s:.4g} s is far from TTFT + TPOT x (output tokens - 1) = {ttft_s:.4g} + "
            f"{gap_s:.4g} x {n_output - 1:.4g} = {parts_s:.4g} s"
        )
        yield "e2e_s", problem
    yield from _of_flight(cells, mean, e2e_s if not math.isnan(e2e_s) else parts_s)
    yield from _of_tokens(cells, mean)
    yield from _of_gaps(statistics)


def validate_plausible(table: pd.DataFrame, place: str, lines: Lines) -> pd.DataFrame:
    """Return the validated table, each row of which is plausible by `check_plausible`.

    Raises `SchemaError` if a row breaks the schema of measurements, or its numbers contradict each other; names line
    and field.
    """
    validated = validate_measurements(table, place, lines)
    _check_plausible_rows(validated, place, lines)
    return validated


def _check_plausible_rows(table: pd.DataFrame, place: str, lines: Lines) -> None:
    positions = np.flatnonzero(table[["itl_s", "tpot_s", "e2e_s"]].notna().any(axis=1))
    rows: list[dict[Any, Any]] = table[list(CHECKED_COLUMNS)].iloc[positions].to_dict("records")
    for position, row in zip(positions.tolist(), rows, strict=True):
        check_plausible(row, {row["statistic"]: row}, place, line_of(lines, position))


_TOKENS: Final = {
    "output_throughput_token_per_s": ("n_output_token",),
    "total_throughput_token_per_s": ("n_input_token", "n_output_token"),
}
"""Throughputs from which the request rate follows, with the lengths that they count."""


def _of_bounds(statistics: Statistics) -> Iterator[tuple[str, str]]:
    for name, outcomes in statistics.items():
        for column in ("ttft_s", "e2e_s"):
            value_s = _of(outcomes, column)
            if not math.isnan(value_s) and not _MIN_S <= value_s <= _MAX_S:
                problem = f"{name} must be between {_MIN_S:g} s and a day, got {value_s:.4g} s"
                yield column, problem


def _of_gaps(statistics: Statistics) -> Iterator[tuple[str, str]]:
    for name in ("mean", "p50"):
        for column in ("tpot_s", "itl_s"):
            value_s = _of(statistics.get(name, {}), column)
            if value_s > MAX_GAP_S:
                problem = f"{name} must be at most {MAX_GAP_S:g} s a token, got {value_s:.4g} s"
                yield column, problem


def _of_flight(cells: Mapping[str, Any], mean: Mapping[str, float], e2e_s: float) -> Iterator[tuple[str, str]]:
    duration_s, n_done = _of(cells, "duration_s"), _n_done(cells)
    if e2e_s > max(OVERRUN_FACTOR * duration_s, duration_s + S_PER_MS):
        problem = f"a mean of {e2e_s:.4g} s is longer than the run of {duration_s:.4g} s"
        yield "e2e_s", problem
    if cells.get("load") != "closed_loop" or not _of(cells, "concurrency") >= 1:
        return
    limit = min(_of(cells, "concurrency"), n_done if n_done > 0 else math.inf)
    rate_per_s, figures = _request_rate(cells, mean)
    in_flight = rate_per_s * e2e_s
    if _apart(in_flight, limit, IN_FLIGHT_FACTOR) or in_flight > OVERRUN_FACTOR * limit:
        problem = f"{figures}, each of {e2e_s:.4g} s, are {in_flight:.3g} in flight, but concurrency is {limit:g}"
        yield "e2e_s", problem


def _request_rate(cells: Mapping[str, Any], mean: Mapping[str, float]) -> tuple[float, str]:
    duration_s, n_done = _of(cells, "duration_s"), _n_done(cells)
    if duration_s > 0 and n_done > 0:
        return n_done / duration_s, f"{n_done:g} requests in {duration_s:.4g} s"
    rate_per_s = _of(mean, "request_throughput_per_s")
    for column, names in _TOKENS.items():
        if math.isnan(rate_per_s):
            rate_per_s = _of(mean, column) / sum(_of(cells, name) for name in names)
    return rate_per_s, f"{rate_per_s:.4g} requests/s"


def _n_done(cells: Mapping[str, Any]) -> float:
    n_failed = _of(cells, "n_failed")
    return _of(cells, "n_request") - (0.0 if math.isnan(n_failed) else n_failed)


def _of_tokens(cells: Mapping[str, Any], mean: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    rate, duration_s = _of(mean, "output_throughput_token_per_s"), _of(cells, "duration_s")
    n_token = _n_done(cells) * _of(cells, "n_output_token")
    if duration_s > 0 and _apart(rate, n_token / duration_s, TOKENS_FACTOR):
        problem = f"{rate:.4g} tokens/s is far from {n_token:.4g} tokens in {duration_s:.4g} s"
        yield "output_throughput_token_per_s", problem


def _of(cells: Mapping[str, Any], column: str) -> float:
    value = cells.get(column)
    return math.nan if value is None or value == "" else float(value)


def _apart(left: float, right: float, factor: float) -> bool:
    return left > factor * right or right > factor * left
