"""Multi-token prediction of the rows of `silicon_sample.csv`, derived from the public configuration history.

A row is first looked up among the configurations of its day. If configurations both with and without multi-token
prediction match, these rules decide, in order: which of the two changed on that day; whether all points of a
configuration number are exactly those of one of the two; the order of configuration numbers; a copy of the row; the
other row of the same setting in the same table. The remaining rows are unsure. Latencies are used for equality only.
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
"""Window around a configuration's change in which it runs."""

ORDERED_WITHOUT: Final = frozenset({736, 737, 738, 739})
"""Configuration numbers of Qwen3.5 on B300 without multi-token prediction: fp4 precedes bf16 there."""


def mtp_of(rows: Sequence[SourceRow], history: History) -> dict[int, Mtp]:
    """Return multi-token prediction by row number; disaggregated rows are all unsure."""
    points: dict[int, set[tuple[str, str, int]]] = defaultdict(set)
    for row in rows:
        if row.config_id is not None:
            points[row.config_id].add((row.cells["isl"], row.cells["osl"], row.concurrency or 0))
    answers: dict[int, Mtp] = {row.number: _by_history(row, history, points) for row in rows}
    _share_among_copies(rows, answers)
    _resolve_pairs(rows, answers)
    _share_among_copies(rows, answers)
    return answers


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
        points_of_config = points[row.config_id]
        exact = {mtp for mtp in (True, False) if history.points(row, label, mtp=mtp) == points_of_config}
        specs = exact if len(exact) == 1 else specs
        specs = {False} if row.config_id in ORDERED_WITHOUT else specs
    return _answer(specs)


def _answer(specs: Iterable[bool]) -> Mtp:
    answers = set(specs)
    if len(answers) > 1:
        return "unsure"
    return "yes" if True in answers else "no"


def _share_among_copies(rows: Sequence[SourceRow], answers: dict[int, Mtp]) -> None:
    copies: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in rows:
        if not row.is_disaggregated:
            copies[row.measurement].append(row.number)
    for numbers in copies.values():
        sure = {answers[number] for number in numbers} - {"unsure"}
        if len(sure) == 1:
            answers.update(dict.fromkeys(numbers, sure.pop()))


def _resolve_pairs(rows: Sequence[SourceRow], answers: dict[int, Mtp]) -> None:
    """Of two different rows of one setting and table, if one ran without multi-token prediction, the other had it."""
    settings: dict[tuple[object, ...], dict[tuple[str, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.is_inferencex and not row.is_disaggregated:
            setting = (row.origin, row.cells["model_path"], row.image, label_of(row), row.concurrency)
            settings[setting + row.measurement[:6]][row.measurement].append(row.number)
    for unlike in settings.values():
        pair = {answers[numbers[0]] for numbers in unlike.values()}
        if len(unlike) == 2 and pair == {"no", "unsure"}:
            for numbers in unlike.values():
                answers.update({number: "yes" for number in numbers if answers[number] == "unsure"})
