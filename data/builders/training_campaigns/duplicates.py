"""Rows that revisions of a source repeat: found, merged into the earliest, and named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roofcast.data.measurements.training_schema import TRAINING_OUTCOME_COLUMNS

PRINTED_RTOL: Final = 1e-3
"""Revisions of a page print the same measurement with three digits or more."""

EXACT_RTOL: Final = 1e-9
"""Logs hold every digit: what differs was measured twice."""

_FREE: Final = frozenset({"date", "note", "derived", "framework_version", "software", "n_node"})
_GROUP: Final = ("model", "accelerator", "n_accelerator", "method", "status")

Cells = dict[str, object]


def merge_duplicates(
    rows: Mapping[str, Cells], rtol: float = PRINTED_RTOL
) -> tuple[dict[str, Cells], dict[str, str]]:
    """Return the rows without repetitions, and each repetition's reference with that of the row it repeats.

    Two rows are the same measurement if no configuration cell that both give differs, every outcome that both give
    agrees to `rtol`, and at least one outcome is given by both (none need be for runs that failed). The row
    of the earliest date stays, and takes from the others what it leaves blank. Which version of the software a
    revision names does not matter: the same digits under a newer heading are the old measurement.

    Parameters
    ----------
    rows
        Cells by reference.
    rtol
        How far two outcomes may lie apart, relative to the larger.

    Examples
    --------
    >>> old = {"model": "m", "tp": 2.0, "step_time_s": 1.0, "date": "2024-01-01"}
    >>> new = old | {"pp": 4.0, "date": "2024-06-01"}
    >>> merge_duplicates({"a": old, "b": new})
    ({'a': {'model': 'm', 'tp': 2.0, 'step_time_s': 1.0, 'date': '2024-01-01', 'pp': 4.0}}, {'b': 'a'})
    """
    kept: dict[str, Cells] = {}
    twins: dict[str, str] = {}
    groups: dict[tuple[object, ...], list[str]] = {}
    for reference, cells in sorted(rows.items(), key=lambda item: str(item[1].get("date", ""))):
        group = groups.setdefault(tuple(cells.get(name) for name in _GROUP), [])
        original = next((other for other in group if _is_same(kept[other], cells, rtol)), None)
        if original is None:
            kept[reference] = dict(cells)
            group.append(reference)
        else:
            kept[original] |= {name: value for name, value in cells.items() if name not in kept[original]}
            twins[reference] = original
    return kept, twins


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
