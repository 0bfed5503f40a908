"""Multi-token prediction of the rows of `silicon_sample.csv`, derived from the public configuration history.

A row is first looked up among the configurations of its day. If configurations both with and without multi-token
prediction match, these rules decide, in order: which of the two changed on that day; whether all points of a
configuration number are exactly those of one of the two; the order of configuration numbers; a copy of the row; the
other row of the same setting in the same table. The remaining rows are unsure. Latencies are used for equality only.

Disaggregated rows are looked up among the configurations of `workers`. The database dump holds no run with
multi-token prediction: none of its aggregated rows has it, and none of its 264 disaggregated rows matches only
configurations that have it. Where configurations of both kinds match, copies of a row of the dump have none, and a
different measurement of a setting that the dump has is of the other kind.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from builders.campaigns.silicon.geometry import label_of
from builders.campaigns.silicon.history import History
from builders.campaigns.silicon.source import SourceRow
from builders.campaigns.silicon.workers import mtp_values, workers_of

Mtp = Literal["yes", "no", "unsure"]

RECENT: Final = dt.timedelta(days=3)
"""Window around a configuration's change in which it runs."""

ORDERED_WITHOUT: Final = frozenset({736, 737, 738, 739})
"""Configuration numbers of Qwen3.5 on B300 without multi-token prediction: fp4 precedes bf16 there."""


def mtp_of(rows: Sequence[SourceRow], history: History) -> dict[int, Mtp]:
    """Return multi-token prediction by row number."""
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
        return "no" if row.origin == "dump" else _answer(mtp_values(row) or {True, False})
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
        copies[row.measurement].append(row.number)
    for numbers in copies.values():
        sure = {answers[number] for number in numbers} - {"unsure"}
        if len(sure) == 1:
            answers.update(dict.fromkeys(numbers, sure.pop()))


def _resolve_pairs(rows: Sequence[SourceRow], answers: dict[int, Mtp]) -> None:
    settings: dict[tuple[object, ...], dict[tuple[str, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.is_inferencex:
            setting = (
                _apart_setting(row) if row.is_disaggregated else (row.origin, row.cells["model_path"], label_of(row))
            )
            settings[(*setting, row.image, row.concurrency, *row.measurement[:6])][row.measurement].append(row.number)
    for unlike in settings.values():
        pair = {answers[numbers[0]] for numbers in unlike.values()}
        if len(unlike) == 2 and pair == {"no", "unsure"}:
            for numbers in unlike.values():
                answers.update({number: "yes" for number in numbers if answers[number] == "unsure"})


def _apart_setting(row: SourceRow) -> tuple[object, ...]:
    names = ("prefill", "decode")
    devices = (row.count(f"{name}_tp_size") * max(row.count(f"{name}_attention_dp_size"), 1) for name in names)
    stated = tuple(row.count(f"{name}_num_workers") for name in names)
    known = workers_of(row)
    workers = stated if all(stated) else tuple(stage.n_worker for stage in known) if known else row.number
    return (row.date, *devices, workers)
