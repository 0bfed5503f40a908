"""The ratio model: the calibrated estimate times a boosted correction.

Trees predict log(measurement / estimate) of each metric. TTFT and TPOT determine E2E latency, and the throughput of a
closed loop; trees of these metrics serve the other loads.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import ENGINES, FEATURE_NAMES
from roofcast.features.descriptors.config_hash import CELL, config_hashes, joint_hash
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, Coefficients, CoefficientSource, OwnerOffsets
from roofcast.features.engine.estimate import Estimate
from roofcast.features.engine.estimate import estimate as estimate_queries
from roofcast.features.pipeline import METRICS, build_features, estimate_statistics, feature_matrix
from roofcast.features.queries import FloatArray, QueryTable, build_frame, descriptor_arrays, query_index
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.stacks import is_uploaded, separate_uploads, stack_owners
from roofcast.training.dataset.targets import log_ratio, row_weights
from roofcast.training.learner.boosted_trees import EvaluatedRows, ResidualRegressor, SupportGate, rearrange
from roofcast.training.learner.calibration import fit_coefficients
from roofcast.training.learner.derived_metrics import (
    DERIVED,
    E2E,
    SOURCES,
    THROUGHPUT,
    Loads,
    corrections_by_metric,
    reconcile,
    service_shares,
    source_shares,
)
from roofcast.training.learner.errors.group_keys import GroupKeys, build_group_keys
from roofcast.training.learner.estimator import Estimator, check_is_fitted
from roofcast.training.learner.upload_limit import limit_uploads

Progress = Callable[[Iterable[Any], int, str], Iterable[Any]]


N_THREAD: Final = 2
"""Folds fitted at once, by threads (XGBoost and NumPy release the interpreter) unless a joblib backend is set."""

GATED: Final = ("tpot_s", "itl_s", THROUGHPUT)
"""Metrics whose trees have a `SupportGate`."""

SMALL: Final = ("tpot_s", "itl_s")
"""Metrics with a third of the trees, each of them 2.4 times as strong: their estimate needs least correction."""

DATE: Final = ("config.date",)
ALL_OF_IT: Final = np.ones(len(ENGINES))

OF_LOAD: Final = (
    "workload.concurrency_log", "workload.n_input_token_log", "memory.capacity_log", "memory.pressure_log",
    "roofline.batch_log", "roofline.step_log", "roofline.prefill_log", "roofline.prefill_ratio",
    "roofline.queue_ratio", "roofline.overhead_ratio", "roofline.weight_time_ratio", "roofline.kv_time_ratio",
    "roofline.expert_time_ratio", "roofline.link_time_ratio",
)  # fmt: skip
HIDDEN: Final[Mapping[str, tuple[str, ...]]] = {
    THROUGHPUT: (),
    "ttft_s": (*DATE, *OF_LOAD, "workload.length_variation"),
    "nttft_s_per_token": (*DATE, *OF_LOAD, "workload.length_variation"),
}
"""Columns that the trees of a metric do not see, `DATE` by default: they tell who measured rather than how long it
takes. Throughput has the date, for its open loops are what the estimate knows least about. TTFT has nothing that
depends on load and prompt, so that it grows with both as the estimate does; on stacks left out its error is smaller.
The estimate itself knows the variation of lengths."""


@dataclass(frozen=True, slots=True)
class RatioPrediction:
    """Medians of the ratio model and what they are computed from; arrays have shape (n_query,).

    - `value`, `estimates`: Predictions and analytic estimates of the statistics that the queries name, by metric.
    - `mean_correction`: Predicted over estimated mean of `SOURCES`; empty where no derived metric is predicted from
      them.
    - `features`: shape (n_query, n_feature). Columns of the learner.
    - `estimate`, `loads`, `keys`, `index`: The estimate of means, the loads of the queries, their group keys about
      `TARGET_STACK`, and their index.
    """

    value: dict[str, FloatArray]
    estimates: dict[str, FloatArray]
    mean_correction: dict[str, FloatArray]
    features: FloatArray
    estimate: Estimate
    loads: Loads
    keys: GroupKeys
    index: pd.Index

    def apply_shifts(self, shifts: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Apply log shifts, of shapes that end in (n_query,), to the predictions and recompute derived metrics.

        A metric that `follows` needs no shift.
        """
        value = {m: self.value[m] * np.exp(shifts[m]) if m in shifts else self.value[m] for m in self.value}
        correction = {metric: factor * np.exp(shifts[metric]) for metric, factor in self.mean_correction.items()}
        return reconcile(value, self.estimates, correction, self.estimate, self.loads)

    def follows(self, metric: str) -> bool:
        """Return whether a metric is derived from `SOURCES` in all queries, so that its own error does not count."""
        return bool(self.mean_correction) and metric in DERIVED and bool(self.loads.is_derived[metric].all())

    def is_own(self, metric: str) -> npt.NDArray[np.bool_]:
        """Return whether a metric of each query neither follows from `SOURCES` nor is the rate: shape (n_query,)."""
        is_own = ~(self.loads.is_open_loop & (metric == THROUGHPUT))
        return is_own & ~self.loads.is_derived[metric] if self.mean_correction and metric in DERIVED else is_own

    def shares(self) -> dict[str, dict[str, FloatArray]]:
        """Return `source_shares` of each derived metric; empty where none is predicted from `SOURCES`."""
        if not self.mean_correction:
            return {}
        corrections = corrections_by_metric(self.value, self.estimates, self.mean_correction)
        return {metric: source_shares(c, self.estimate, self.loads) for metric, c in corrections.items()}

    def error_shares(self) -> dict[str, dict[str, FloatArray]]:
        """Return `shares` by which errors combine: throughput's are `service_shares`."""
        if not self.mean_correction:
            return {}
        of_latency = corrections_by_metric(self.value, self.estimates, self.mean_correction)[E2E]
        return {
            E2E: source_shares(of_latency, self.estimate, self.loads),
            THROUGHPUT: service_shares(self.mean_correction, self.estimate, self.loads),
        }


class RatioModel(Estimator):
    """Calibrated estimate times a boosted correction, without intervals.

    `coefficients` are those of the estimate; None to fit them, or take the priors, as `config.calibrate` says.

    - `coefficients_`: Of the estimate, for a stack that nobody measured.
    - `owner_offsets_`: What the owners of measured stacks add to them.
    - `regressors_`: Fitted `ResidualRegressor` by metric.
    - `gates_`: `SupportGate` by metric of `GATED`.
    - `metrics_`: The metrics that the training rows hold.
    - `carry_over_`: Share of the log correction that carries over to a stack that nobody measured, by metric: that of
      each engine, shape (n_engine,); 1 if absent.
    """

    carry_over_: Mapping[str, FloatArray] = MappingProxyType({})

    def __init__(
        self,
        config: TrainingConfig | None = None,
        metrics: tuple[str, ...] = METRICS,
        coefficients: Coefficients | None = None,
    ) -> None:
        self.config = config
        self.metrics = metrics
        self.coefficients = coefficients

    def fit(self, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series, *, stacks: pd.Series | None = None) -> Self:
        """Calibrate the estimate, fit one regressor a metric, and return the model.

        - `X`: shape (n_row, n_descriptor)
        - `y`: shape (n_row, n_metric). Columns `METRICS`; NaN where unknown.
        - `groups`: shape (n_row,). LLM lineage of each row.
        - `stacks`: shape (n_row,). Stack that measured each row; None for one stack. The estimate of a row has the
          offsets of its owner. The rows of an API key have a limited weight in the joint fit of the calibration and
          in the trees, and count as one lineage of the gates.
        """
        config = self.config or TrainingConfig()
        stacks = pd.Series("", index=X.index) if stacks is None else stacks
        self.coefficients_, self.owner_offsets_ = self.coefficients or DEFAULT_COEFFICIENTS, OwnerOffsets()
        self.carry_over_ = {}
        if config.calibrate and self.coefficients is None:
            self.coefficients_, self.owner_offsets_ = fit_coefficients(X, y, groups, stacks)
        features, estimates, _ = build_features(X, self.coefficients_on(stacks, X))
        hashes = config_hashes(X)
        cells = separate_uploads(pd.Series(joint_hash(hashes, CELL), index=X.index), stacks)
        lineages = groups.mask(is_uploaded(stacks), stack_owners(stacks))
        self.metrics_ = tuple(m for m in self.metrics if (y[m] > 0).any())
        columns, keys = features.to_numpy(), build_group_keys(X)
        settings = config.model_dump(exclude={"calibrate", "seed", "n_fold"})
        self.regressors_: dict[str, ResidualRegressor] = {}
        self.gates_: dict[str, SupportGate] = {}
        for metric in self.metrics_:
            target = log_ratio(y[metric].to_numpy(dtype=float), estimates[metric])
            rows = ~np.isnan(target)
            inputs = without_columns(columns[rows], HIDDEN.get(metric, DATE))
            regressor = ResidualRegressor(**settings, random_state=config.seed)
            if metric in SMALL:
                n_tree, rate = max(config.n_estimators // 3, 1), 2.4 * config.learning_rate
                regressor.set_params(n_estimators=n_tree, learning_rate=rate)
            weight = limit_uploads(
                row_weights(cells[rows]), stacks[rows], {name: codes[rows] for name, codes in hashes.items()}
            )
            self.regressors_[metric] = regressor.fit(inputs, target[rows], weight)
            if metric in GATED:
                self.gates_[metric] = SupportGate.fit(keys.take(rows), lineages[rows])
        return self

    def carried_over(
        self, calibration: float | FloatArray, correction: Mapping[str, FloatArray] = MappingProxyType({})
    ) -> Self:
        """Return the model whose answers for a stack that nobody measured rely less on what others measured.

        `calibration`: share of the way from the priors to the fitted coefficients, or that of each: shape (n_engine,
        n_coefficient); those of measured owners stay.
        `correction`: `carry_over_`.
        """
        other = copy.copy(self)
        other.coefficients_ = self.coefficients_.near_priors(calibration)
        other.owner_offsets_ = self.owner_offsets_.relative_to(other.coefficients_, self.coefficients_)
        other.carry_over_ = correction
        return other

    def coefficients_on(self, stacks: pd.Series, X: pd.DataFrame) -> CoefficientSource:
        """Return the coefficients of queries about stacks, the offsets of owners included where they are known."""
        owners = stack_owners(stacks).to_numpy(dtype=object)
        return self.owner_offsets_.of_owners(owners, X["config.engine"].to_numpy(), self.coefficients_)

    def predict_ratio(
        self,
        X: QueryTable,
        metrics: Collection[str] | None = None,
        estimate: Estimate | None = None,
        keys: GroupKeys | None = None,
        coefficients: CoefficientSource | None = None,
    ) -> RatioPrediction:
        """Return predictions of some metrics, or of all, with what they are computed from.

        `coefficients` are those of the queries, this model's by default; `estimate`, if given, is the queries'
        estimate by them, and `keys` are their group keys.
        """
        check_is_fitted(self)
        wanted = [m for m in self.metrics_ if metrics is None or m in metrics]
        d = descriptor_arrays(X)
        loads = Loads.of(d)
        is_derived = loads.is_derived if set(SOURCES) <= set(self.metrics_) else {}
        needs_sources = any(m in is_derived for m in wanted)
        needed = {*wanted, *(SOURCES if needs_sources else ())}
        coefficients = coefficients or self.coefficients_
        estimate = estimate or estimate_queries(d, coefficients)
        estimates = estimate_statistics(d, coefficients, estimate, needed)
        features, keys = feature_matrix(d, estimate), keys or build_group_keys(d)
        rows = EvaluatedRows.from_features(features, with_means=needs_sources)
        value, mean_correction = {}, {}
        for m in (metric for metric in self.metrics_ if metric in needed):
            if m in is_derived and is_derived[m].all():
                value[m] = estimates[m]
                continue
            log_correction = self.regressors_[m].predict_unchecked(rows.features)
            log_correction = log_correction * rows.repeat(self.correction_weight(m, keys, d["config.engine"]))
            value[m] = np.asarray(estimates[m] * np.exp(rearrange(log_correction, rows, _sign(m))))
            if needs_sources and m in SOURCES:
                mean_correction[m] = value[m] / estimates[m]
                mean_correction[m][rows.means] = np.exp(log_correction[len(log_correction) - len(rows.means) :])
        value = reconcile(value, estimates, mean_correction, estimate, loads)
        return RatioPrediction(
            {m: value[m] for m in wanted}, estimates, mean_correction, features, estimate, loads, keys, query_index(X)
        )

    def correction_weight(self, metric: str, keys: GroupKeys, engine: FloatArray) -> FloatArray:
        """Return the weight of the trees' log correction for each query: shape (n_query,)."""
        weight = self.carry_over_.get(metric, ALL_OF_IT)[engine.astype(np.intp)]
        return weight * self.gates_[metric].weight(keys, engine) if metric in self.gates_ else weight

    def predict(self, X: pd.DataFrame, stacks: pd.Series | None = None) -> pd.DataFrame:
        """Return the predicted medians: shape (n_query, n_metric); of the stack of each query, if given."""
        prediction = self.predict_ratio(X, coefficients=None if stacks is None else self.coefficients_on(stacks, X))
        return build_frame(prediction.value, tuple(prediction.value), X.index)


@dataclass(frozen=True, slots=True)
class HeldOutModel:
    """A ratio model and the rows that it never saw, or nothing of whose group: shape (n_test,)."""

    model: RatioModel
    test: npt.NDArray[np.intp]

    def carried_over(self, calibration: float | FloatArray, correction: Mapping[str, FloatArray]) -> HeldOutModel:
        """Return it with `RatioModel.carried_over`."""
        return HeldOutModel(self.model.carried_over(calibration, correction), self.test)


@dataclass(frozen=True, slots=True)
class FoldRows:
    """Training rows and test rows of a fold, by position."""

    rows: npt.NDArray[np.intp]
    test: npt.NDArray[np.intp]


class FoldStore(Protocol):
    """Store of fitted folds: see `roofcast.training.lifecycle.fold_store`."""

    def resume(
        self,
        predictor: RatioModel,
        tables: Mapping[str, pd.DataFrame | pd.Series | None],
        folds: Sequence[FoldRows],
        fit: Callable[[Sequence[FoldRows]], Iterable[HeldOutModel | None]],
    ) -> Iterable[HeldOutModel | None]:
        """Yield the fitted folds in order; those that the store lacks are fitted."""


FOLD_STORE: Final[ContextVar[FoldStore | None]] = ContextVar("FOLD_STORE", default=None)
"""Store of the folds that `fit_held_out` fits; without one, all of them are fitted."""


def fit_held_out(
    predictor: RatioModel,
    X: pd.DataFrame,
    y: pd.DataFrame,
    groups: pd.Series,
    progress: Progress | None = None,
    *,
    trainable: npt.NDArray[np.bool_] | None = None,
    held_out: pd.Series | None = None,
    stacks: pd.Series | None = None,
    judged: npt.NDArray[np.bool_] | None = None,
) -> list[HeldOutModel]:
    """Return a ratio model for each fold of rows that it does not see; rows of no API key decide the folds.

    - `predictor`: Its settings are used; it is not fitted.
    - `X`, `y`, `groups`, `stacks`: As in `RatioModel.fit`.
    - `progress`: Called as ``progress(folds, n_fold, label)``; passes the folds on.
    - `trainable`: shape (n_row,). Rows that may be trained on; None for all. Folds that leave none have no model.
    - `held_out`: shape (n_row,). What is held out in place of `groups`.
    - `judged`: shape (n_row,). Rows that are predicted later, None for all. Folds without any have no model.
    """
    from joblib import Parallel, delayed  # noqa: PLC0415  (serving fits nothing)

    allowed = np.ones(len(X), dtype=bool) if trainable is None else trainable
    wanted = np.ones(len(X), dtype=bool) if judged is None else judged
    n_fold = (predictor.config or TrainingConfig()).n_fold
    is_public = None if stacks is None else ~is_uploaded(stacks).to_numpy(dtype=bool)
    folds = list(leave_one_group_out(groups if held_out is None else held_out, n_fold, is_public))
    tables = {"X": X, "y": y, "groups": groups, "stacks": stacks}

    def fit(parts: Sequence[FoldRows]) -> Iterable[HeldOutModel | None]:
        pool = Parallel(n_jobs=_n_job(), prefer="threads", return_as="generator")
        fitted: Iterable[HeldOutModel | None] = pool(
            delayed(_fit_fold)(predictor, **tables, rows=part.rows, test=part.test) for part in parts
        )
        return fitted

    parts = [FoldRows(rows[allowed[rows]], test[wanted[test]]) for rows, test in folds]
    store = FOLD_STORE.get()
    fitted = store.resume(predictor, tables, parts, fit) if store else fit(parts)
    label = "held-out lineages" if held_out is None else "held-out stacks"
    return [fold for fold in (progress(fitted, len(folds), label) if progress else fitted) if fold is not None]


def _n_job() -> int | None:
    from joblib.parallel import get_active_backend  # noqa: PLC0415  (serving fits nothing)

    _, n_job = get_active_backend()
    return N_THREAD if n_job == 1 else None


def _fit_fold(
    predictor: RatioModel,
    *,
    X: pd.DataFrame,
    y: pd.DataFrame,
    groups: pd.Series,
    stacks: pd.Series | None,
    rows: npt.NDArray[np.intp],
    test: npt.NDArray[np.intp],
) -> HeldOutModel | None:
    if not len(rows) or not len(test):
        return None
    model = RatioModel(predictor.config, predictor.metrics, predictor.coefficients)
    own_stacks = None if stacks is None else stacks.iloc[rows]
    return HeldOutModel(model.fit(X.iloc[rows], y.iloc[rows], groups.iloc[rows], stacks=own_stacks), test)


def predict_by_fold(
    folds: Sequence[HeldOutModel],
    X: pd.DataFrame,
    stacks: pd.Series | None = None,
) -> pd.DataFrame:
    """Return the prediction of each row by the model that never saw its group; NaN where there is none.

    `stacks`: of each row; None if no model knows it.
    """
    predicted = pd.DataFrame(np.nan, index=X.index, columns=list(folds[0].model.metrics if folds else ()))
    for fold in folds:
        values = fold.model.predict(X.iloc[fold.test], None if stacks is None else stacks.iloc[fold.test])
        predicted.loc[values.index, values.columns] = values
    return predicted


def predict_by_model(
    folds: Sequence[HeldOutModel], X: pd.DataFrame, stacks: pd.Series
) -> tuple[npt.NDArray[np.intp], dict[str, FloatArray]]:
    """Return which fold held out each row, and the predictions of all rows on their stacks by the model of each fold.

    The fold has shape (n_row,), -1 where there is none. Predictions, shape (n_fold, n_row), are by metric; NaN if a
    model has none.
    """
    fold = np.full(len(X), -1)
    for i, one in enumerate(folds):
        fold[one.test] = i
    tables = [one.model.predict(X, stacks) for one in folds]
    metrics = folds[0].model.metrics if folds else ()
    return fold, {m: np.stack([t.reindex(columns=[m])[m].to_numpy(dtype=float) for t in tables]) for m in metrics}


def predict_held_out(
    predictor: RatioModel,
    X: pd.DataFrame,
    y: pd.DataFrame,
    groups: pd.Series,
    progress: Progress | None = None,
    *,
    trainable: npt.NDArray[np.bool_] | None = None,
    stacks: pd.Series | None = None,
    judged: npt.NDArray[np.bool_] | None = None,
) -> pd.DataFrame:
    """Return predictions of each row from a ratio model that never saw the row's group; see `fit_held_out`."""
    folds = fit_held_out(predictor, X, y, groups, progress, trainable=trainable, stacks=stacks, judged=judged)
    return predict_by_fold(folds, X, stacks=stacks).reindex(columns=list(predictor.metrics))


def without_columns(features: FloatArray, names: Collection[str]) -> FloatArray:
    """Return the learner's columns with some of them constant, on which no tree splits."""
    changed = features.copy()
    changed[:, [FEATURE_NAMES.index(name) for name in names]] = 0.0
    return changed


def _sign(metric: str) -> int:
    return -1 if metric == THROUGHPUT else 1
