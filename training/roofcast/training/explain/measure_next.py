"""Which measurement would narrow the predictions most, before any is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.pipeline import build_features
from roofcast.training.learner.group_keys import build_group_keys
from roofcast.training.learner.predictor import RoofcastPredictor

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NextMeasurement:
    """A measurement worth taking after those before it.

    Parameters
    ----------
    row
        Position among the candidates.
    narrower
        By metric, the share that it takes off the logarithmic width of the questions' intervals, on average.
    """

    row: int
    narrower: dict[str, float]


def rank_measurements(
    predictor: RoofcastPredictor, X: pd.DataFrame, metrics: Sequence[str], n: int = 5
) -> list[NextMeasurement]:
    """Return the settings to measure, one after another, so that the others become known best.

    Parameters
    ----------
    predictor
        Fitted.
    X : shape (n_setting, n_descriptor)
        What might be measured, and is to be predicted.
    metrics
        That one run measures together, all of equal weight.
    n
        Measurements at most.

    Notes
    -----
    A measurement at c takes ``cov(q, c) ** 2 / var(c)`` off the variance at q, whatever it turns out to be: that is
    what conditioning a Gaussian process does, so nothing needs to be measured to know it. Each pick takes the
    greatest share off the variances summed over the settings, a mean over the metrics; then the covariance is
    updated by rank one, and the next pick counts what is left. `var(c)` contains the scatter of repeats.

    References
    ----------
    A. Krause, A. Singh and C. Guestrin, "Near-optimal sensor placements in Gaussian processes", JMLR 9, 2008.
    """
    processes = [_Process.of(predictor, X, metric) for metric in metrics]
    chosen: list[NextMeasurement] = []
    while len(chosen) < min(n, len(X)):
        gain = np.mean([process.gain() for process in processes], axis=0)
        gain[[picked.row for picked in chosen]] = -np.inf
        row = int(gain.argmax())
        narrower = {m: process.measure(row) for m, process in zip(metrics, processes, strict=True)}
        chosen.append(NextMeasurement(row, narrower))
    return chosen


@dataclass(slots=True)
class _Process:
    """Covariance of one metric's errors at the settings, and the variance of a repeat."""

    covariance: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, predictor: RoofcastPredictor, X: pd.DataFrame, metric: str) -> _Process:
        features, _, _ = build_features(X, predictor.coefficients_)
        uncertainty = predictor.error_distributions_[metric]
        size = uncertainty.scale.predict(features.to_numpy())
        _, shared = uncertainty.effects.predict_joint(build_group_keys(X))
        return cls(shared * np.outer(size, size), (uncertainty.effects.sd_[-1] * size) ** 2)

    @property
    def variance(self) -> FloatArray:
        return np.maximum(np.diag(self.covariance), 0.0) + self.noise

    def gain(self) -> FloatArray:
        """Return the share of all variance that a measurement at each setting takes off."""
        off = (self.covariance**2).sum(axis=0) / self.variance
        return np.asarray(off / self.variance.sum(), dtype=np.float64)

    def measure(self, row: int) -> float:
        """Condition on a measurement and return how much narrower the intervals became, on average."""
        before = np.sqrt(self.variance)
        column = self.covariance[:, row]
        self.covariance = self.covariance - np.outer(column, column) / self.variance[row]
        return float(np.mean(1 - np.sqrt(self.variance) / before))
