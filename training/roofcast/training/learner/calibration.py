"""Fit the coefficients of the analytic estimate to measurements, held to their priors."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from roofcast.features.arrays import descriptor_arrays
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.config_hash import CELL, config_hashes, joint_hash
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, NAMES, PRIORS, Coefficients
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.engine.kernels.row_kernels import MEASURED_ENGINES
from roofcast.features.pipeline import estimate_metrics
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.robust_least_squares import solve

FloatArray = npt.NDArray[np.float64]

SCALE: Final = {
    "ttft_s": 0.15,
    "itl_s": 0.08,
    "tpot_s": 0.08,
    "output_throughput_token_per_s": 0.15,
}
"""Error, in natural logarithms, up to which a metric counts quadratically: what is left after a good fit.

Normalised TTFT is left out: over requests of unlike lengths it tells of the lengths as much as of the engine.
Throughput counts only in rows that tell no latency: in a closed loop it follows from TTFT and TPOT, and static
batches of which the whole time is told are mostly of engines before their rewrite, which would draw away the
coefficients of today's."""

ROWS_PER_GROUP: Final = 6.0
"""Most rows that a group counts as against the priors: as many as it has engines and accelerators that choose its
kernels, say. Its other rows share these choices. A group of fewer rows counts as those; each metric that a row tells
counts by itself, so that a row of TTFT and TPOT counts twice."""

N_PER_CELL: Final = 40
"""Rows of one LLM, engine, accelerator, precision and kind of load that are fitted to, spread over their workloads:
more say the same again."""

UNMEASURED_SPREAD: Final = 3.0
"""How many times farther from the typical engine one may lie whose kernels are in no table."""

_STEP: Final = 1e-3


class Calibration(BaseEstimator):  # type: ignore[misc]
    """The analytic estimate with fitted coefficients, as a scikit-learn estimator.

    Attributes
    ----------
    coefficients_
        What was fitted; `report` lists it.

    Examples
    --------
    >>> Calibration().fit(X, y, groups).predict(X)  # doctest: +SKIP
    """

    def fit(self, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series) -> Self:
        """Fit to measurements and return the estimator; see `fit_coefficients`."""
        self.coefficients_ = fit_coefficients(X, y, groups)
        return self

    def predict(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the estimate of each metric: shape (n_question, n_metric)."""
        check_is_fitted(self)
        d = descriptor_arrays(X)
        return pd.DataFrame(estimate_metrics(d, estimate(d, self.coefficients_)), index=X.index)

    def estimate(self, X: pd.DataFrame) -> Estimate:
        """Return the estimate whole, with the times of every operator."""
        check_is_fitted(self)
        return estimate(descriptor_arrays(X), self.coefficients_)

    def report(self) -> pd.DataFrame:
        """Return one row a coefficient: typical value, unit, prior, distance from it, engines' values, source."""
        check_is_fitted(self)
        return coefficient_report(self.coefficients_)


def coefficient_report(coefficients: Coefficients) -> pd.DataFrame:
    """Return one row a coefficient; `prior_sd` says how many prior standard deviations it lies from its median."""
    rows = []
    for place, (name, prior) in enumerate(PRIORS.items()):
        engines = {e: coefficients.value(name, e) for i, e in enumerate(ENGINES) if coefficients.offset[i, place]}
        distance = (coefficients.typical[place] - np.log(prior.median)) / prior.log_sd
        row: dict[str, Any] = {"coefficient": name, "value": coefficients.value(name), "unit": prior.unit}
        row |= {"prior": prior.median, "prior_sd": round(float(distance), 2), "engines": engines}
        rows.append(row | {"meaning": prior.meaning, "source": prior.source})
    return pd.DataFrame(rows)


def fit_coefficients(descriptors: pd.DataFrame, measured: pd.DataFrame, groups: pd.Series) -> Coefficients:
    """Return the most probable coefficients: robust least squares of log ratios plus log-normal priors.

    The estimate speaks of typical requests, so rows of tail percentiles are left out.

    Parameters
    ----------
    descriptors : shape (n_row, n_descriptor)
    measured : shape (n_row, n_metric)
        Columns `METRICS`, NaN where unknown.
    groups : shape (n_row,)
        A group's rows count as `ROWS_PER_GROUP` at most, however many they are.

    Notes
    -----
    A row's weight multiplies its loss and not its residual, so that an error counts linearly from the same size on in
    groups of every size.

    Every coefficient has a typical value, and most a value of each engine that is shrunk towards it. A row depends
    on one engine alone, so the slopes of all engines cost no more evaluations than those of the typical values.
    """
    told = _told(measured)
    rows, count = _fitted_rows(descriptors, told)
    d = descriptor_arrays(descriptors.iloc[rows])
    outcome = {m: told[m].to_numpy()[rows] for m in SCALE if (told[m].iloc[rows] > 0).any()}
    if not outcome:
        return DEFAULT_COEFFICIENTS
    chosen = groups.iloc[rows]
    size = pd.Series(count, index=chosen.index).groupby(chosen).transform("sum").to_numpy()
    is_known = np.concatenate([values > 0 for values in outcome.values()])
    space = _Space(np.tile(d["config.engine"].astype(np.intp), len(outcome))[is_known])

    def residuals(c: Coefficients) -> FloatArray:
        values = estimate_metrics(d, estimate(d, c))
        parts = [log_ratio(outcome[m], values[m]) / SCALE[m] for m in outcome]
        return np.asarray(np.nan_to_num(np.concatenate(parts)[is_known]), dtype=np.float64)

    def slopes(x: FloatArray, at: FloatArray) -> FloatArray:
        c = space.coefficients(x)
        columns = [(residuals(c.shift(i, _STEP)) - at) / _STEP for i in range(len(NAMES))]
        return space.jacobian(np.stack(columns, axis=1))

    stands_for = np.tile(count * np.minimum(ROWS_PER_GROUP / size, 1.0), len(outcome))[is_known]
    return space.coefficients(solve(lambda x: residuals(space.coefficients(x)), slopes, space.size, stands_for))


def _fitted_rows(descriptors: pd.DataFrame, told: pd.DataFrame) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return places of rows of central statistics that tell something, and how many rows each stands for.

    They are `N_PER_CELL` of each cell at most.

    Request rates are left out unless there is nothing else: the estimate of one costs as much as twenty others, and
    its coefficients are theirs.
    """
    tells = (told > 0).any(axis=1) & (descriptors["workload.quantile"] == 0.5)
    is_open = descriptors["workload.request_rate_per_s"].notna()
    rows = np.flatnonzero(tells & ~is_open) if (tells & ~is_open).any() else np.flatnonzero(tells)
    some = descriptors.iloc[rows]
    load = some["workload.concurrency"].fillna(some["workload.request_rate_per_s"])
    table = pd.DataFrame({"cell": joint_hash(config_hashes(some), CELL), "load": load.to_numpy(), "row": rows})
    table = table.sort_values(["cell", "load", "row"])
    size = table.groupby("cell")["row"].transform("size")
    place = table.groupby("cell").cumcount()
    is_kept = (place * N_PER_CELL // size) != ((place - 1) * N_PER_CELL // size)
    kept = table.assign(count=np.maximum(size / N_PER_CELL, 1.0))[(size <= N_PER_CELL) | is_kept]
    kept = kept.sort_values("row")
    return kept["row"].to_numpy(), kept["count"].to_numpy(dtype=float)


def _told(measured: pd.DataFrame) -> pd.DataFrame:
    """Return what each row tells the fit, NaN where nothing: shape (n_row, len(SCALE))."""
    told = measured[list(SCALE)].astype(float)
    has_latency = measured[["ttft_s", "tpot_s", "itl_s", "e2e_s"]].notna().any(axis=1)
    return told.assign(
        output_throughput_token_per_s=told["output_throughput_token_per_s"].mask(has_latency),
        itl_s=told["itl_s"].where(told["tpot_s"].isna()),
    )


class _Space:
    """Where the solver moves: distances from the priors, in their standard deviations."""

    def __init__(self, engine: npt.NDArray[np.intp]) -> None:
        self.sd = np.array([prior.log_sd for prior in PRIORS.values()])
        engine_sd = np.array([prior.engine_log_sd for prior in PRIORS.values()])
        self.free = np.flatnonzero(engine_sd > 0)
        self.present = np.unique(engine)
        spread = np.where(np.isin(np.array(ENGINES)[self.present], MEASURED_ENGINES), 1.0, UNMEASURED_SPREAD)
        self.engine_sd = spread[:, None] * engine_sd[self.free]
        self.masks = [engine == place for place in self.present]
        self.size = len(NAMES) + len(self.present) * len(self.free)

    def coefficients(self, x: FloatArray) -> Coefficients:
        n = len(NAMES)
        offset = np.zeros((len(ENGINES), n))
        own = x[n:].reshape(self.engine_sd.shape) * self.engine_sd
        offset[np.ix_(self.present, self.free)] = own
        return Coefficients(DEFAULT_COEFFICIENTS.typical + x[:n] * self.sd, offset)

    def jacobian(self, slope: FloatArray) -> FloatArray:
        own = slope[:, self.free]
        parts = zip(self.masks, self.engine_sd, strict=True)
        return np.hstack([slope * self.sd, *(own * sd * mask[:, None] for mask, sd in parts)])
