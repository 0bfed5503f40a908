"""How much of what the training rows teach carries over to a stack that nobody measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import NAMES
from roofcast.features.queries import BoolArray, FloatArray
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.derived_metrics import SOURCES, THROUGHPUT
from roofcast.training.learner.errors.grouped_conformal import MIN_COMPETENT_OWNER, Origins
from roofcast.training.learner.ratio_model import HeldOutModel, RatioPrediction

CALIBRATION_SHARES: Final = (1.0, 0.75, 0.5, 0.25, 0.0)

TOLERANCE: Final = 0.01
"""Of the logarithm of a product of errors; less than it varies with the stacks that are left out."""

SMALLEST_ERROR: Final = 1e-9

QUEUEING: Final = (
    "request_overhead_s", "startup_s", "batch_overhead_s", "prefill_interference", "lockstep", "burst", "collision",
    "wait_step", "poll_ratio",
)  # fmt: skip
"""Coefficients of clients and queues, which all engines have alike."""

ObjectArray = npt.NDArray[np.object_]


def fit_carry_over(
    folds: Sequence[HeldOutModel], X: pd.DataFrame, y: pd.DataFrame, origins: Origins
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the shares of least absolute log error over stacks left out, as `RatioModel.carried_over` takes them.

    They are learnt from rows of competent operators, whom a question is about by default; those of engines that none
    of them runs, the calibration of `QUEUEING` excepted, from all rows of such engines. With fewer than
    `MIN_COMPETENT_OWNER` owners of competent rows, all are from all rows. An owner of n rows has the weight sqrt(n).
    The share of the correction of a metric is `clear_share`; derived metrics have none, for they follow from
    others. The share of the calibration is the smallest whose product of the errors of TTFT, TPOT and
    throughput is within `TOLERANCE` of the least one, for the priors have seen none of these stacks.

    - `folds`: Models and the rows of the stacks that they did not see.
    - `X`, `y`: shapes (n_row, n_descriptor) and (n_row, n_metric)
    - `origins`: Of the rows.
    """
    judged, engine = origins.is_competent.to_numpy(), X["config.engine"].to_numpy(dtype=np.intp)
    if origins.owner[judged].nunique() < MIN_COMPETENT_OWNER:
        judged = np.ones(len(X), dtype=bool)
    trial = _Trial(folds, X, y, origins.owner.to_numpy(dtype=object))
    calibration = np.ones((len(ENGINES), len(NAMES)))
    calibration, shares = trial.among(judged).best(calibration, calibration > 0)
    correction = {metric: np.full(len(ENGINES), share) for metric, share in shares.items()}
    others = ~np.isin(np.arange(len(ENGINES)), engine[judged])
    if others[engine].any():
        own = others[:, None] & ~np.isin(NAMES, QUEUEING)
        calibration, shares = trial.among(others[engine]).best(calibration, own)
        for metric, share in shares.items():
            correction[metric][others] = share
    return calibration, correction


@dataclass(frozen=True, slots=True)
class _Trial:
    """Models of stacks left out, and the measurements that judge shares: of rows with these owners."""

    folds: Sequence[HeldOutModel]
    X: pd.DataFrame
    y: pd.DataFrame
    owner: ObjectArray

    def among(self, judged: BoolArray) -> _Trial:
        folds = [replace(fold, test=fold.test[judged[fold.test]]) for fold in self.folds if judged[fold.test].any()]
        return replace(self, folds=folds)

    def best(self, calibration: FloatArray, chosen: BoolArray) -> tuple[FloatArray, dict[str, float]]:
        """Return the best shares: of the calibration, one value for those `chosen`, and of corrections by metric."""
        are_fitted = all(fold.model.coefficients is None for fold in self.folds)
        shares = CALIBRATION_SHARES if are_fitted else CALIBRATION_SHARES[:1]
        tried = [self._judge(np.where(chosen, share, calibration)) for share in shares]
        least = min(error for error, _ in tried)
        if not least:  # nothing is judged
            return tried[0][1]
        return next(found for error, found in reversed(tried) if error <= least + TOLERANCE)

    def _judge(self, calibration: FloatArray) -> tuple[float, tuple[FloatArray, dict[str, float]]]:
        """Return the logarithm of the product of errors with this calibration, and all shares."""
        parts = [
            _Part(
                fold.model.carried_over(calibration).predict_ratio(self.X.iloc[fold.test]),
                self.y.iloc[fold.test],
                self.owner[fold.test],
            )
            for fold in self.folds
        ]
        shares: dict[str, float] = {}
        for metric in dict.fromkeys(metric for part in parts for metric in part.prediction.value):
            corrections = [part.own_errors(metric) for part in parts if metric in part.prediction.value]
            shares[metric] = clear_share(*map(np.concatenate, zip(*corrections, strict=True)))
        total = 0.0
        for metric in shares.keys() & {*SOURCES, THROUGHPUT}:
            errors = [part.remaining_errors(metric, shares) for part in parts if metric in part.prediction.value]
            error, owners = map(np.concatenate, zip(*errors, strict=True))
            if len(error):
                total += float(np.log(np.average(np.abs(error), weights=owner_weights(owners)) + SMALLEST_ERROR))
        return total, (calibration, shares)


@dataclass(frozen=True, slots=True)
class _Part:
    """Predictions of rows whose stack the model never saw, the rows' measurements, and their owners."""

    prediction: RatioPrediction
    measured: pd.DataFrame
    owner: ObjectArray

    def own_errors(self, metric: str) -> tuple[FloatArray, FloatArray, ObjectArray]:
        """Return log correction, error of the estimate, and owner of rows whose metric follows from no other."""
        p = self.prediction
        error = log_ratio(self.measured[metric].to_numpy(dtype=float), p.estimates[metric])
        rows = ~np.isnan(error) & p.is_own(metric)
        return np.log(p.value[metric] / p.estimates[metric])[rows], error[rows], self.owner[rows]

    def remaining_errors(self, metric: str, shares: Mapping[str, float]) -> tuple[FloatArray, ObjectArray]:
        """Return the error, and the owner, of rows where these shares of the corrections are applied."""
        p = self.prediction
        shifts = {m: (shares[m] - 1) * np.log(p.value[m] / p.estimates[m]) for m in p.value}
        error = log_ratio(self.measured[metric].to_numpy(dtype=float), p.apply_shifts(shifts)[metric])
        return error[~np.isnan(error)], self.owner[~np.isnan(error)]


def carry_over_share(
    correction: FloatArray, error: FloatArray, owner: ObjectArray, *, size_exponent: float = 0.5
) -> float:
    """Return the factor from 0 to 1 of the correction with the least sum of ``|error - factor * correction|``.

    An owner of n rows weighs ``n ** size_exponent``.

    Examples
    --------
    >>> carry_over_share(np.array([1.0, -1.0, 2.0]), np.array([0.5, -0.4, 1.0]), np.array(["a", "a", "b"]))
    0.5
    """
    moves = np.abs(correction) > SMALLEST_ERROR
    correction, error, owner = correction[moves], error[moves], owner[moves]
    if not len(correction):
        return 1.0
    weight = owner_weights(owner, size_exponent)
    ratio, influence = error / correction, np.abs(correction) * weight
    order = np.argsort(ratio, kind="stable")
    middle = np.searchsorted(np.cumsum(influence[order]), influence.sum() / 2)
    return float(np.clip(ratio[order][middle], 0.0, 1.0))


def clear_share(correction: FloatArray, error: FloatArray, owner: ObjectArray) -> float:
    """Return `carry_over_share`, or 0 where it gains no more than the standard error of its gain over owners.

    Examples
    --------
    >>> clear_share(np.array([1.0, 1.0, 1.0]), np.array([0.5, 0.6, 0.4]), np.array(["a", "b", "c"]))
    0.5
    >>> clear_share(np.array([1.0, 1.0, 1.0]), np.array([1.0, 0.1, -0.9]), np.array(["a", "b", "c"]))
    0.0
    """
    share = carry_over_share(correction, error, owner)
    gain = owner_weights(owner) * (np.abs(error) - np.abs(error - share * correction))
    by_owner = pd.Series(gain).groupby(owner.astype(str)).sum()
    is_moved = bool((np.abs(correction) > SMALLEST_ERROR).any())
    return share if not is_moved or by_owner.sum() > by_owner.std() * np.sqrt(len(by_owner)) else 0.0


def owner_weights(owner: ObjectArray, size_exponent: float = 0.5) -> FloatArray:
    """Return the weight of each row, by which an owner of n rows weighs ``n ** size_exponent``: shape (n_row,)."""
    _, code, size = np.unique(owner.astype(str), return_inverse=True, return_counts=True)
    return np.asarray(size[code] ** (size_exponent - 1.0), dtype=np.float64)
