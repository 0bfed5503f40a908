"""Gauges of drift: errors of champion and challenger on recent measurements, refreshed now and then."""

import datetime as dt
import time
from dataclasses import dataclass
from typing import Final

from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.drift.import_drift import ComparedModels, pair_errors, score_rows
from roofcast.training.drift.drift_report import GroupErrors, score_groups
from roofcast.training.drift.groups import ALL
from roofcast.training.drift.paired_errors import PairedErrors

REFRESH_S: Final = 300.0
"""Least time between two computations, which take up to a second of CPU."""

MAX_ROW: Final = 2_000
"""Rows, the latest, of which the gauges tell."""


@dataclass(slots=True)
class DriftGauges:
    """Errors of the champion on the rows of recent days that it has not learnt, by metric.

    `challenger_errors`: on the rows that neither champion nor challenger has learnt.
    """

    errors: tuple[GroupErrors, ...] = ()
    challenger_errors: tuple[PairedErrors, ...] = ()
    _due_s: float = 0.0
    _seen: tuple[object, ...] = ()

    def refresh(self, stores: StoreAccess, models: ComparedModels, days: float) -> None:
        """Compute the errors if that was not done lately, and the champion, the challenger or the rows have changed.

        Raises `NotReadyError` if the store does not answer.
        """
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + REFRESH_S
        since = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
        rows = stores.open().imported.load_latest(MAX_ROW, since)
        challenger = models.challenger
        seen = models.champion.champion.sha256, challenger and challenger.champion.sha256, *rows["id"]
        if seen == self._seen:
            return
        scored, _ = score_rows(models, rows, DEFAULT_LEVEL)
        self.errors = tuple(one for one in score_groups(scored) if one.kind == ALL)
        pairs = pair_errors(models.catalog, rows, scored, challenger).errors if challenger else ()
        self.challenger_errors = tuple(one for one in pairs if one.kind == ALL)
        self._seen = seen
