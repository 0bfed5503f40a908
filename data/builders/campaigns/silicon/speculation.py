"""Which rows of `silicon_sample.csv` ran with multi-token prediction: no column says so, the public history does.

A row is first looked up among the configurations of its day. Where one with and one without multi-token prediction
fit, these decide, in this order: which of the two changed on that day; whether all points of a configuration number
are exactly those of one of the two; the order in which numbers were given; what a copy of the row says; and the other
row of the same setting in the same table. What remains is unsure. No latency decides, only whether two are the same.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from builders.campaigns.silicon.geometry import label_of
from builders.campaigns.silicon.history import History
from builders.campaigns.silicon.source import SourceRow

Mtp = Literal["yes", "no", "unsure"]

RECENT: Final = dt.timedelta(days=3)
"""A configuration runs on the days around its change."""

ORDERED_WITHOUT: Final = frozenset({736, 737, 738, 739})
"""Numbers of Qwen3.5 on B300: fp4 comes before bf16, as without multi-token prediction; with it, bf16 came first."""


def mtp_of(rows: Sequence[SourceRow], history: History) -> dict[int, Mtp]:
    """Return whether each row ran with multi-token prediction, by row number; disaggregated rows are all unsure."""
    points: dict[int, set[tuple[str, str, int]]] = defaultdict(set)
    for row in rows:
        if row.config_id is not None:
            points[row.config_id].add((row.cells["isl"], row.cells["osl"], row.concurrency or 0))
    found: dict[int, Mtp] = {row.number: _by_history(row, history, points) for row in rows}
    _share_among_copies(rows, found)
    _tell_pairs_apart(rows, found)
    _share_among_copies(rows, found)
    return found


def _by_history(row: SourceRow, history: History, points: dict[int, set[tuple[str, str, int]]]) -> Mtp:
    if row.is_disaggregated:
        return "unsure"
    if not row.is_inferencex:
        return "no"
    label = label_of(row)
    matches = history.matches(row, label)
    specs = {s.mtp for s in matches}
    if len(specs) == 2 and row.date:
        day = row.date
        specs = {s.mtp for s in matches if abs(s.date - day) <= RECENT} or specs
    if len(specs) == 2 and row.config_id is not None:
        whole = points[row.config_id]
        exact = {mtp for mtp in (True, False) if history.points(row, label, mtp=mtp) == whole}
        specs = exact if len(exact) == 1 else specs
        specs = {False} if row.config_id in ORDERED_WITHOUT else specs
    return _answer(specs)


def _answer(specs: Iterable[bool]) -> Mtp:
    answers = set(specs)
    if len(answers) > 1:
        return "unsure"
    return "yes" if True in answers else "no"


def _share_among_copies(rows: Sequence[SourceRow], found: dict[int, Mtp]) -> None:
    copies: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in rows:
        if not row.is_disaggregated:
            copies[row.measurement].append(row.number)
    for numbers in copies.values():
        sure = {found[number] for number in numbers} - {"unsure"}
        if len(sure) == 1:
            found.update(dict.fromkeys(numbers, sure.pop()))


def _tell_pairs_apart(rows: Sequence[SourceRow], found: dict[int, Mtp]) -> None:
    """Two unlike rows of one setting in one table: if one ran without, the other ran with multi-token prediction."""
    settings: dict[tuple[object, ...], dict[tuple[str, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.is_inferencex and not row.is_disaggregated:
            asked = (row.origin, row.cells["model_path"], row.image, label_of(row), row.concurrency)
            settings[asked + row.measurement[:6]][row.measurement].append(row.number)
    for unlike in settings.values():
        answers = {found[numbers[0]] for numbers in unlike.values()}
        if len(unlike) == 2 and answers == {"no", "unsure"}:
            for numbers in unlike.values():
                found.update({number: "yes" for number in numbers if found[number] == "unsure"})
