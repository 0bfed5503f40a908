"""Shadow: a thread in which the challenger answers a sample of the champion's questions, after the champion."""

import contextlib
import logging
import queue
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from roofcast.data.catalog import Catalog
from roofcast.data.errors import RoofcastError, UnknownNameError
from roofcast.data.measurements.target import INFERENCE
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.predict.row_answers import UNCALIBRATED, PredictOptions, answer_columns
from roofcast.serving.shadow.challenger_loader import ChallengerLoader
from roofcast.training.drift.answer_ratios import ANSWERED, Key, bin_ratios
from roofcast.training.drift.groups import ALL
from roofcast.training.drift.prediction_scores import METRICS

OTHER: Final = "other"
"""Name of what callers bring along: their names are no groups, so the number of groups is that of the catalogue."""

BLANK: Final = "blank"

Columns = Mapping[str, ColumnArray]


def tally(questions: Columns, champion: Columns, challenger: Columns, catalog: Catalog) -> Counter[Key]:
    """Return the counts of answers that either gives, and of the ratios of those that both give.

    `champion` and `challenger`: answer columns; of the champion those without references and stack profile, if it has
    both. `catalog`: without models that callers bring along.
    """
    is_ok = [np.asarray(answers["status"] == "ok", dtype=bool) for answers in (champion, challenger)]
    answered = is_ok[1].astype(int) - is_ok[0]
    groups = _groups(questions, is_ok[0] | is_ok[1], catalog)
    counts = _count(groups, ANSWERED, answered, is_ok[0] | is_ok[1])
    for metric in METRICS:
        name = f"{metric}{UNCALIBRATED}"
        before = np.asarray(champion[name if name in champion else metric], dtype=float)
        after = np.asarray(challenger[metric], dtype=float)
        is_comparable = is_ok[0] & is_ok[1] & (before > 0) & (after > 0)
        bins = np.zeros(len(before), dtype=np.int64)
        bins[is_comparable] = bin_ratios(after[is_comparable], before[is_comparable])
        counts += _count(groups, metric, bins, is_comparable)
    return counts


def _groups(questions: Columns, is_known: npt.NDArray[np.bool_], catalog: Catalog) -> list[list[tuple[str, str]]]:
    accelerators, lineages = {}, {}
    for name in {str(cell) for cell in questions["accelerator"][is_known]}:
        accelerators[name] = catalog.accelerator(name).id
    for name in {str(cell) for cell in questions["model"][is_known]}:
        try:
            spec = catalog.model(name)
            lineages[name] = OTHER if spec.id in catalog.unlisted else spec.lineage
        except UnknownNameError:
            lineages[name] = OTHER
    engines = questions.get("engine", np.full(len(is_known), None))
    return [
        [
            (ALL, ""),
            ("accelerator", accelerators.get(str(accelerator), OTHER)),
            ("engine", _engine_name(engine)),
            ("lineage", lineages.get(str(model), OTHER)),
        ]
        for accelerator, engine, model in zip(questions["accelerator"], engines, questions["model"], strict=True)
    ]


def _engine_name(cell: object) -> str:
    name = cell.strip().lower() if isinstance(cell, str) else ""
    return name if name in ENGINES else OTHER if name else BLANK


def _count(
    groups: list[list[tuple[str, str]]], metric: str, bins: npt.NDArray[np.int64], is_counted: npt.NDArray[np.bool_]
) -> Counter[Key]:
    return Counter(
        (kind, name, metric, int(bins[i])) for i in np.flatnonzero(is_counted).tolist() for kind, name in groups[i]
    )


logger = logging.getLogger(__name__)

MAX_ROW: Final = 100
"""Rows of a request that the challenger answers at most: a random sample of them."""

MAX_WAITING: Final = 8
"""Requests that wait for the challenger; further ones are dropped."""

DUTY_RATIO: Final = 0.1
"""Share of the time in which the challenger computes: it holds Python's lock, which answers need."""

FLUSH_S: Final = 5.0
"""Interval at which counts enter the store; a process that is killed loses those since the last time."""

LEVEL: Final = 0.5
"""Of intervals, which are not compared; every predictor supports it: see `GroupedConformal.highest_level`."""

Outcome = Literal["compared", "dropped", "failed"]


@dataclass(frozen=True, slots=True)
class _Question:
    columns: Columns
    answers: Columns
    catalog: Catalog
    champion: LoadedModel


class Shadow:
    """Questions that wait for the challenger, and the thread that answers them one by one.

    `is_busy`: whether requests wait for a slot: the challenger does not compute then.
    """

    def __init__(
        self,
        challenger: ChallengerLoader,
        stores: StoreAccess,
        catalogs: LiveCatalog,
        *,
        sample_ratio: float,
        count: Callable[[Outcome, int], object],
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._challenger = challenger
        self._stores = stores
        self._catalogs = catalogs
        self._sample_ratio = sample_ratio
        self._count = count
        self._is_busy = is_busy
        self._waiting: queue.Queue[_Question] = queue.Queue(MAX_WAITING)
        self._counts: defaultdict[tuple[str, str], Counter[Key]] = defaultdict(Counter)
        self._random = random.Random()  # noqa: S311  (a sample, no secret)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._flush_at = time.monotonic() + FLUSH_S
        self._problem = ""

    def offer(self, columns: Columns, answers: Columns, catalog: Catalog, champion: LoadedModel) -> None:
        """Queue rows and their answers for the challenger, if the request is drawn; returns at once.

        `catalog`: of the request, with the models that it brings along.
        """
        if self._challenger.model is None or self._random.random() >= self._sample_ratio:
            return
        n_row = len(answers["status"])
        if n_row > MAX_ROW:
            rows = np.sort(self._random.sample(range(n_row), MAX_ROW))
            columns, answers = ({name: cells[rows] for name, cells in part.items()} for part in (columns, answers))
        question = _Question(columns, answers, catalog, champion)
        if self._is_busy() or not self._enqueue(question):
            self._count("dropped", min(n_row, MAX_ROW))
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="shadow", daemon=True)
                self._thread.start()

    def _enqueue(self, question: _Question) -> bool:
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(question)
            return True
        return False

    def close(self) -> None:
        """Stop the thread, after the question that it computes, and store the counts."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            rest_s = 0.0
            with contextlib.suppress(queue.Empty):
                question = self._waiting.get(timeout=1.0)
                began = time.monotonic()
                self._answer(question)
                rest_s = (time.monotonic() - began) * (1 / DUTY_RATIO - 1)
            if time.monotonic() + rest_s >= self._flush_at:
                self._flush()
            self._stop.wait(rest_s)
        self._flush()

    def _answer(self, question: _Question) -> None:
        n_row = len(question.answers["status"])
        challenger = self._challenger.model
        if challenger is None or self._is_busy():
            self._count("dropped", n_row)
            return
        try:
            options = PredictOptions(challenger.bundle, question.catalog, LEVEL)
            answers = answer_columns(question.columns, options)
            counts = tally(question.columns, question.answers, answers, self._catalogs.catalog_of(INFERENCE))
        except Exception as error:
            if str(error) != self._problem:
                logger.exception("challenger failed, version=%s", challenger.champion.version)
            self._problem = str(error)
            self._count("failed", n_row)
            return
        self._counts[question.champion.champion.sha256, challenger.champion.sha256] += counts
        self._count("compared", n_row)

    def _flush(self) -> None:
        self._flush_at = time.monotonic() + FLUSH_S
        for pair in [*self._counts]:
            counts = self._counts.pop(pair)
            try:
                self._stores.open().shadow_counts.add(*pair, counts)
            except Exception as error:
                self._counts[pair] += counts  # for the next time
                is_fault = not isinstance(error, RoofcastError)
                logger.warning("counts of the challenger not stored: %s", error, exc_info=is_fault)
                return
