"""Runs of early releases that a later release of the same software supersedes."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from builders.job_campaigns.duplicates import Cells
from roofcast.data.measurements.job_schema import TRAINING_OUTCOME_COLUMNS

MIN_GAIN: Final = 1.25
"""A release supersedes an earlier one of a configuration whose throughput it exceeds by this factor."""

_VARYING: Final = frozenset(
    {*TRAINING_OUTCOME_COLUMNS, "date", "framework_version", "software", "note", "derived", "n_gradient_accumulation"}
)


def superseded_by(rows: Mapping[str, Cells]) -> dict[str, str]:
    """Return what supersedes a run, by its reference: a later run of its configuration, faster by `MIN_GAIN`.

    Early releases bring a model up; their rate says nothing of the software that follows.

    Examples
    --------
    >>> early = {"model": "m", "throughput_token_per_s": 10.0, "date": "2026-02-01"}
    >>> late = early | {"throughput_token_per_s": 30.0, "date": "2026-03-01"}
    >>> superseded_by({"a": early, "b": late})
    {'a': 'b, a later release, is 3 times as fast'}
    """
    groups: dict[tuple[tuple[str, object], ...], list[str]] = defaultdict(list)
    for reference, cells in rows.items():
        if cells.get("throughput_token_per_s"):
            groups[tuple(sorted((k, v) for k, v in cells.items() if k not in _VARYING))].append(reference)
    result: dict[str, str] = {}
    for group in groups.values():
        last = max(group, key=lambda reference: str(rows[reference].get("date", "")))
        for reference in group:
            gain = _rate(rows[last]) / _rate(rows[reference])
            if gain > MIN_GAIN:
                result[reference] = f"{last}, a later release, is {gain:.3g} times as fast"
    return result


def _rate(cells: Cells) -> float:
    return float(str(cells["throughput_token_per_s"]))
