"""Blank doubt: variance added to a prediction whose query leaves columns blank, so that usual values replace them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.descriptors.config_hash import config_hashes, joint_hash
from roofcast.features.pipeline import METRICS
from roofcast.features.queries import QueryTable
from roofcast.training.dataset.blanked_rows import BlankedRows
from roofcast.training.learner.derived_metrics import E2E, SOURCES, THROUGHPUT, Loads
from roofcast.training.learner.ratio_model import RatioModel

if TYPE_CHECKING:
    from roofcast.training.learner.predictor import CalibrationPoints

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

NEAR: Final = ("accelerator", "engine")
"""Columns of `config_hashes` within which own runs share what they leave blank."""

EVIDENCE: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "ttft_s": (("ttft_s",),),
    "nttft_s_per_token": (("nttft_s_per_token",), ("ttft_s",)),
    "tpot_s": (("tpot_s",), ("itl_s",)),
    "itl_s": (("itl_s",), ("tpot_s",)),
    E2E: ((E2E,), SOURCES),
    THROUGHPUT: ((THROUGHPUT,), SOURCES),
}
"""Sets of metrics by metric: a run that measured one of the sets shows the metric."""

OPEN_LOOP: Final = "open_loop"
OTHER_LOAD: Final = "other_load"


@dataclass(frozen=True, slots=True)
class BlankDoubt:
    """Variance that a blank column adds to a log prediction, beyond that of an average query.

    It is the mean squared change of measured rows' log predictions when the column is blanked, times the share of
    rows that state it. Intervals come from errors of measured rows, and errors of the other rows, which leave the
    column blank, include this variance already.

    Parameters
    ----------
    variance
        By kind of load, column and metric.
    """

    variance: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)

    @classmethod
    def fit(cls, model: RatioModel, X: pd.DataFrame, blanked: Mapping[str, BlankedRows]) -> Self:
        """Return the doubt of each blanked column; `X`, shape (n_row, n_descriptor), has the rows as they are."""
        variance: dict[str, dict[str, dict[str, float]]] = {load: {} for load in (OTHER_LOAD, OPEN_LOOP)}
        for column, rows in blanked.items():
            stated = X.loc[rows.X.index]
            change = np.log(model.predict(rows.X) / model.predict(stated))
            is_open = Loads.of(stated).is_open_loop
            for load, mask in ((OTHER_LOAD, ~is_open), (OPEN_LOOP, is_open)):
                if mask.any():
                    mean_square = (change[mask] ** 2).mean() * rows.stated_share
                    variance[load][column] = {str(m): float(v) for m, v in mean_square.items() if np.isfinite(v)}
        return cls(variance)

    def predict(
        self, is_open_loop: BoolArray, assumed: Sequence[str], metrics: Collection[str] = METRICS
    ) -> dict[str, FloatArray]:
        """Return the variance that the blank columns of each query add, by metric: shapes (n_query,).

        `assumed` names the columns of each query, separated by spaces. Throughput of an open loop is the rate, and no
        blank changes it.
        """
        loads = np.where(is_open_loop, OPEN_LOOP, OTHER_LOAD).tolist()
        cases = list(zip(loads, assumed, strict=True))
        total = {case: self._sum(*case) for case in set(cases)}
        return {metric: np.array([total[case].get(metric, 0.0) for case in cases]) for metric in metrics}

    def predict_given_runs(
        self, is_open_loop: BoolArray, assumed: Sequence[str], X: QueryTable, runs: CalibrationPoints | None
    ) -> dict[str, FloatArray]:
        """Return the variance of `predict` without that of the columns that own runs show; see `unshared_blanks`.

        A run shows the effect of its settings on the metrics that it measured, and on those that follow from them.
        `X` has the queries: shape (n_query, n_descriptor).
        """
        if runs is None:
            return self.predict(is_open_loop, assumed)
        measured = runs.y.reindex(columns=list(METRICS)).notna()
        variance: dict[str, FloatArray] = {}
        for metric, evidence in EVIDENCE.items():
            shows = np.any([measured[[*names]].all(axis=1) for names in evidence], axis=0)
            own_assumed = list(compress(runs.assumed, shows))
            blanks = unshared_blanks(X, assumed, runs.X[shows], own_assumed) if own_assumed else assumed
            variance |= self.predict(is_open_loop, blanks, (metric,))
        return variance

    def _sum(self, load: str, assumed: str) -> dict[str, float]:
        total: dict[str, float] = {}
        for column in assumed.split():
            for metric, variance in self.variance.get(load, {}).get(column, {}).items():
                total[metric] = total.get(metric, 0.0) + variance
        if load == OPEN_LOOP:
            total.pop(THROUGHPUT, None)
        return total


def unshared_blanks(
    X: QueryTable, assumed: Sequence[str], own_X: QueryTable, own_assumed: Sequence[str]
) -> Sequence[str]:
    """Return the blank columns of each query that no own run on its accelerator and engine leaves blank too.

    A setting that a run and a query on the same hardware both leave blank has the same unknown value in both, and the
    measured run already shows its effect.

    Parameters
    ----------
    X, own_X : shapes (n_query, n_descriptor) and (n_run, n_descriptor)
    assumed, own_assumed : shapes (n_query,) and (n_run,)
        Blank columns, separated by spaces.
    """
    here, there = (joint_hash(config_hashes(table), NEAR).tolist() for table in (X, own_X))
    shared: dict[int, set[str]] = {}
    for key, columns in zip(there, own_assumed, strict=True):
        shared.setdefault(key, set()).update(columns.split())
    none: set[str] = set()
    return [
        " ".join(column for column in columns.split() if column not in shared.get(key, none))
        for key, columns in zip(here, assumed, strict=True)
    ]
