"""Active learning: the measurements that would narrow the prediction intervals most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.pipeline import build_features
from roofcast.features.queries import FloatArray
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.predictor import RoofcastPredictor


@dataclass(frozen=True, slots=True)
class NextMeasurement:
    """A recommended measurement, conditional on those recommended before it.

    `narrower`: mean relative reduction of the logarithmic interval width of all targets, by metric.
    """

    row: int
    narrower: dict[str, float]


def rank_measurements(
    predictor: RoofcastPredictor,
    X: pd.DataFrame,
    metrics: Sequence[str],
    n: int = 5,
    target: npt.NDArray[np.bool_] | None = None,
    *,
    is_measured: npt.NDArray[np.bool_] | None = None,
) -> list[NextMeasurement]:
    """Return the settings to measure, in order, that reduce the predictive variance of the targets most.

    - `X`: shape (n_setting, n_descriptor). Candidate measurements, which are also the settings to predict.
    - `metrics`: Metrics of one run, equally weighted.
    - `target`: shape (n_setting,). Whether the variance of a setting counts; None for all.
    - `is_measured`: shape (n_setting,). Whether a setting is only to predict, because it is measured already; None
      for none.

    Notes
    -----
    A measurement at c reduces the variance at q by ``cov(q, c) ** 2 / var(c)``, whatever its outcome: the posterior
    covariance of a Gaussian process does not depend on the observations. Each step selects the candidate with the
    largest relative reduction of the summed variance, averaged over the metrics, and then updates the covariance by
    rank one. `var(c)` includes the noise of repeats.

    References
    ----------
    A. Krause, A. Singh and C. Guestrin, "Near-optimal sensor placements in Gaussian processes", JMLR 9, 2008.
    """
    is_target = np.ones(len(X), dtype=bool) if target is None else target
    processes = [_Process.of(predictor, X, metric, is_target) for metric in metrics]
    is_left_out = np.zeros(len(X), dtype=bool) if is_measured is None else is_measured.copy()
    selected: list[NextMeasurement] = []
    while len(selected) < n and not is_left_out.all():
        gain = np.mean([process.gain() for process in processes], axis=0)
        gain[is_left_out] = -np.inf
        row = int(gain.argmax())
        narrower = {m: process.measure(row) for m, process in zip(metrics, processes, strict=True)}
        selected.append(NextMeasurement(row, narrower))
        is_left_out[row] = True
    return selected


@dataclass(slots=True)
class _Process:
    covariance: FloatArray
    noise: FloatArray
    is_target: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, predictor: RoofcastPredictor, X: pd.DataFrame, metric: str, is_target: npt.NDArray[np.bool_]
    ) -> _Process:
        features, _, _ = build_features(X, predictor.coefficients_)
        uncertainty = predictor.error_distributions_[metric]
        size = uncertainty.scale.predict(features.to_numpy())
        _, shared = uncertainty.effects.predict_joint(build_group_keys(X))
        return cls(shared * np.outer(size, size), (uncertainty.effects.sd_[-1] * size) ** 2, is_target)

    @property
    def variance(self) -> FloatArray:
        return np.maximum(np.diag(self.covariance), 0.0) + self.noise

    def gain(self) -> FloatArray:
        reduction = (self.covariance[self.is_target] ** 2).sum(axis=0) / self.variance
        return np.asarray(reduction / self.variance[self.is_target].sum(), dtype=np.float64)

    def measure(self, row: int) -> float:
        before = np.sqrt(self.variance)
        column = self.covariance[:, row]
        self.covariance = self.covariance - np.outer(column, column) / self.variance[row]
        return float(np.mean((1 - np.sqrt(self.variance) / before)[self.is_target]))
