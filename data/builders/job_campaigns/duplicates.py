"""Merge of duplicate rows across the revisions of a source."""

from collections.abc import Mapping
from typing import Final

from roofcast.data.measurements.job_schema import TRAINING_OUTCOME_COLUMNS

PRINTED_RTOL: Final = 1e-3
"""Tolerance for pages, which print at least three digits."""

EXACT_RTOL: Final = 1e-9
"""Tolerance for logs, which hold every digit: different digits are different measurements."""

_FREE: Final = frozenset(
    {"date", "note", "derived", "framework_version", "software", "n_node", "n_accelerator_per_node"}
)
_GROUP: Final = ("model", "accelerator", "n_accelerator", "method", "status")

Cells = dict[str, object]


def merge_duplicates(
    rows: Mapping[str, Cells], rtol: float = PRINTED_RTOL
) -> tuple[dict[str, Cells], dict[str, str]]:
    """Merge duplicates; return the merged rows, and the original's reference by the duplicate's.

    Two rows are the same measurement if no shared configuration cell differs, all shared outcomes agree to `rtol`,
    and they share at least one outcome (not required for failed runs). The row of the earliest date is the original;
    its blank cells are filled from the duplicates. Software versions are ignored: the same digits under a newer
    heading are the old measurement.

    `rows`: cells by reference. `rtol`: tolerance between two outcomes, relative to the larger.

    Examples
    --------
    >>> old = {"model": "m", "tp": 2.0, "step_time_s": 1.0, "date": "2024-01-01"}
    >>> new = old | {"pp": 4.0, "date": "2024-06-01"}
    >>> merge_duplicates({"a": old, "b": new})
    ({'a': {'model': 'm', 'tp': 2.0, 'step_time_s': 1.0, 'date': '2024-01-01', 'pp': 4.0}}, {'b': 'a'})
    """
    merged: dict[str, Cells] = {}
    originals: dict[str, str] = {}
    groups: dict[tuple[object, ...], list[str]] = {}
    for reference, cells in sorted(rows.items(), key=lambda item: str(item[1].get("date", ""))):
        group = groups.setdefault(tuple(cells.get(name) for name in _GROUP), [])
        original = next((other for other in group if _is_same(merged[other], cells, rtol)), None)
        if original is None:
            merged[reference] = dict(cells)
            group.append(reference)
        else:
            merged[original] |= {name: value for name, value in cells.items() if name not in merged[original]}
            originals[reference] = original
    return merged, originals


def _is_same(one: Cells, other: Cells, rtol: float) -> bool:
    shared = one.keys() & other.keys() - _FREE
    outcomes = shared & TRAINING_OUTCOME_COLUMNS.keys()
    if not outcomes and one.get("status", "ok") == "ok":
        return False
    return all(one[name] == other[name] for name in shared - outcomes) and all(
        _is_close(one[name], other[name], rtol) for name in outcomes
    )


def _is_close(one: object, other: object, rtol: float) -> bool:
    a, b = float(str(one)), float(str(other))
    return abs(a - b) <= rtol * max(abs(a), abs(b))
