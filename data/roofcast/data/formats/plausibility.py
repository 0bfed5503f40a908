"""Whether the numbers of one run can be of one run: what catches seconds for milliseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.errors import SchemaError
from roofcast.data.quantities import e2e_from_parts
from roofcast.data.units import S_PER_MS

PARTS_FACTOR: Final = 3.0
"""E2E may differ from its parts by this factor: mean lengths and mean gaps need not go together."""

IN_FLIGHT_FACTOR: Final = 50.0
"""A closed loop may hold this many times fewer requests in flight than it is set to: it starts and ends."""

OVERRUN_FACTOR: Final = 1.5
"""Requests may hold the deployment this many times longer than the run lasted: clients round, and end late."""

TOKENS_FACTOR: Final = 2.0
"""Output throughput may differ from tokens over duration by this factor: clients count a window within the run."""

_MIN_S: Final = 1e-7
_MAX_S: Final = 86_400.0


def check_plausible(
    cells: Mapping[str, Any], statistics: Mapping[str, Mapping[str, float]], place: str, line: int = 0
) -> None:
    """Refuse a run whose numbers contradict each other.

    Each rule compares two published numbers of the run's means, and its message names both.

    Parameters
    ----------
    cells
        Load, counts and duration of the run.
    statistics
        Outcomes by statistic.
    place, line
        For messages.

    Raises
    ------
    SchemaError
        If a TTFT or E2E is over a day or under 0.1 us, E2E is far from TTFT + TPOT x (output tokens - 1), requests
        last longer than the run or far shorter than its concurrency implies, or throughput is far from tokens over
        duration.
    """
    _check_bounds(statistics, place, line)
    mean = statistics.get("mean", {})
    ttft_s, tpot_s, e2e_s, itl_s = (_of(mean, c) for c in ("ttft_s", "tpot_s", "e2e_s", "itl_s"))
    n_output = _of(cells, "n_output_token")
    gap_s = tpot_s if not math.isnan(tpot_s) else itl_s
    parts_s = e2e_from_parts(ttft_s, gap_s if n_output > 1 else 0.0, n_output)
    if _apart(e2e_s, parts_s, PARTS_FACTOR):
        problem = (
            f"E2E of {e2e_s:.4g} s is far from TTFT + TPOT x (output tokens - 1) = {ttft_s:.4g} + "
            f"{gap_s:.4g} x {n_output - 1:.4g} = {parts_s:.4g} s; {_CURE}"
        )
        raise SchemaError("e2e_s", problem, place, line)
    _check_in_flight(cells, e2e_s if not math.isnan(e2e_s) else parts_s, place, line)
    _check_tokens(cells, mean, place, line)


_CURE: Final = "are seconds and milliseconds confused?"


def _check_bounds(statistics: Mapping[str, Mapping[str, float]], place: str, line: int) -> None:
    for name, outcomes in statistics.items():
        for column in ("ttft_s", "e2e_s"):
            value_s = _of(outcomes, column)
            if not math.isnan(value_s) and not _MIN_S <= value_s <= _MAX_S:
                problem = f"{name} must be between {_MIN_S:g} s and a day, got {value_s:.4g} s; {_CURE}"
                raise SchemaError(column, problem, place, line)


def _check_in_flight(cells: Mapping[str, Any], e2e_s: float, place: str, line: int) -> None:
    duration_s = _of(cells, "duration_s")
    n_done = _of(cells, "n_request") - (_of(cells, "n_failed") if "n_failed" in cells else 0.0)
    if not (duration_s > 0 and n_done > 0 and e2e_s > 0):
        return
    if e2e_s > max(OVERRUN_FACTOR * duration_s, duration_s + S_PER_MS):
        problem = f"a mean of {e2e_s:.4g} s is longer than the whole run of {duration_s:.4g} s; {_CURE}"
        raise SchemaError("e2e_s", problem, place, line)
    if cells.get("load") != "closed_loop" or not _of(cells, "concurrency") >= 1:
        return
    set_to = min(_of(cells, "concurrency"), n_done)
    in_flight = n_done * e2e_s / duration_s
    if _apart(in_flight, set_to, IN_FLIGHT_FACTOR) or in_flight > OVERRUN_FACTOR * set_to:
        problem = (
            f"{n_done:g} requests of {e2e_s:.4g} s each in {duration_s:.4g} s are {in_flight:.3g} in flight, "
            f"where concurrency is {set_to:g}; {_CURE}"
        )
        raise SchemaError("e2e_s", problem, place, line)


def _check_tokens(cells: Mapping[str, Any], mean: Mapping[str, float], place: str, line: int) -> None:
    rate, duration_s = _of(mean, "output_throughput_token_per_s"), _of(cells, "duration_s")
    n_done = _of(cells, "n_request") - (_of(cells, "n_failed") if "n_failed" in cells else 0.0)
    n_token = n_done * _of(cells, "n_output_token")
    if duration_s > 0 and _apart(rate, n_token / duration_s, TOKENS_FACTOR):
        problem = f"{rate:.4g} tokens/s is far from {n_token:.4g} tokens in {duration_s:.4g} s; {_CURE}"
        raise SchemaError("output_throughput_token_per_s", problem, place, line)


def _of(cells: Mapping[str, Any], column: str) -> float:
    value = cells.get(column)
    return math.nan if value is None or value == "" else float(value)


def _apart(left: float, right: float, factor: float) -> bool:
    return left > factor * right or right > factor * left
