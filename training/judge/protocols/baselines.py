"""Baselines: the estimate alone, the nearest measurement, and trees without physics."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from roofcast.features.engine.coefficients import Coefficients
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import estimate_statistics
from roofcast.features.queries import descriptor_arrays
from roofcast.training.learner.boosted_trees import ResidualRegressor

FloatArray = npt.NDArray[np.float64]

LOAD: Final = (
    "workload.n_input_token", "workload.n_output_token", "workload.concurrency", "workload.request_rate_per_s",
    "workload.prefix_cache_ratio", "config.n_accelerator", "config.tp", "config.dp", "config.ep",
)  # fmt: skip
"""Descriptors by which `copy_nearest` measures distance."""

CAPABILITIES: Final = (
    "hardware.memory_byte", "hardware.bandwidth_byte_per_s", "hardware.flop_per_s", "hardware.dense_flop_per_s",
    "hardware.link_byte_per_s", "hardware.link_domain_size", "model.n_param", "model.n_param_dense", "model.n_layer",
    "model.hidden_size", "model.kv_width", "model.n_expert", "model.n_expert_per_token", "config.engine", "config.pp",
    "config.weight_byte_per_element", "config.kv_byte_per_element", "config.n_prefill_accelerator",
    "config.n_draft_token", "workload.is_mean", "workload.quantile", *LOAD,
)  # fmt: skip
"""Descriptors that `capability_forest` learns from."""


def analytic_estimate(queries: pd.DataFrame, coefficients: Coefficients, columns: Sequence[str]) -> pd.DataFrame:
    """Return the estimate of the requested statistic by column; NaN if infinite or saturated."""
    d = descriptor_arrays(queries)
    estimates = estimate(d, coefficients)
    values = estimate_statistics(d, coefficients, estimates)
    table = pd.DataFrame({name: values[name] for name in columns}, index=queries.index)
    return table.where(np.isfinite(table)).mask(pd.Series(estimates.is_saturated, index=queries.index), axis=0)


def nearest_measured(
    train: pd.DataFrame,
    measured: pd.DataFrame,
    queries: pd.DataFrame,
    columns: Sequence[str],
    *,
    is_standardised: bool = True,
) -> pd.DataFrame:
    """Return the measurement of the nearest row that has one, by distance of (standardised) logarithms.

    - `train`: shape (n_row, n_descriptor)
    - `measured`: shape (n_row, n_metric)
    - `queries`: shape (n_row, n_descriptor)

    Returns
    -------
    shape (n_row, n_column)
    """
    predicted = pd.DataFrame(np.nan, index=queries.index, columns=list(columns))
    for name, rows in _measured_rows(measured, columns):
        scaler = StandardScaler() if is_standardised else "passthrough"
        neighbour = make_pipeline(scaler, KNeighborsRegressor(n_neighbors=1))
        neighbour.fit(_logarithms(train.iloc[rows]), measured[name].iloc[rows])
        predicted[name] = neighbour.predict(_logarithms(queries))
    return predicted


def copy_nearest(
    train: pd.DataFrame,
    measured: pd.DataFrame,
    queries: pd.DataFrame,
    columns: Sequence[str],
    keys: tuple[pd.Series, pd.Series],
) -> pd.DataFrame:
    """Return the measurement of the nearest `LOAD` among rows of the same key; NaN where none has it.

    Parameters and result are those of `nearest_measured`, with the keys of training rows and of queries.
    """
    known, wanted = keys
    alike = known.groupby(known).indices
    predicted = pd.DataFrame(np.nan, index=queries.index, columns=list(columns))
    for key, places in wanted.groupby(wanted).indices.items():
        if key in alike:
            rows, part = alike[key], queries[list(LOAD)].iloc[places]
            copied = nearest_measured(
                train[list(LOAD)].iloc[rows], measured.iloc[rows], part, columns, is_standardised=False
            )
            predicted.iloc[places] = copied.to_numpy()
    return predicted


def boosted_raw(
    train: pd.DataFrame, measured: pd.DataFrame, queries: pd.DataFrame, columns: Sequence[str]
) -> pd.DataFrame:
    """Return predictions of gradient boosting on raw descriptors with a logarithmic target.

    Parameters and result are those of `nearest_measured`.
    """
    return _regress_logarithms(ResidualRegressor, train, measured, queries, columns)


def capability_forest(
    train: pd.DataFrame, measured: pd.DataFrame, queries: pd.DataFrame, columns: Sequence[str]
) -> pd.DataFrame:
    """Return predictions of a forest on `CAPABILITIES` with a logarithmic target.

    Parameters and result are those of `nearest_measured`.
    """
    known, wanted = train[list(CAPABILITIES)], queries[list(CAPABILITIES)]
    return _regress_logarithms(_forest, known, measured, wanted, columns)


def _forest() -> ExtraTreesRegressor:
    return ExtraTreesRegressor(n_estimators=50, min_samples_leaf=2, random_state=0)


def _regress_logarithms(
    new_model: Callable[[], Any],
    train: pd.DataFrame,
    measured: pd.DataFrame,
    queries: pd.DataFrame,
    columns: Sequence[str],
) -> pd.DataFrame:
    predicted = pd.DataFrame(np.nan, index=queries.index, columns=list(columns))
    for name, rows in _measured_rows(measured, columns):
        trees = new_model().fit(_finite(train.iloc[rows]), np.log(measured[name].iloc[rows]))
        predicted[name] = np.exp(trees.predict(_finite(queries)))
    return predicted


def _measured_rows(measured: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, npt.NDArray[np.intp]]]:
    rows = {name: np.flatnonzero(measured[name] > 0) for name in columns}
    return [(name, subset) for name, subset in rows.items() if len(subset)]


def _finite(descriptors: pd.DataFrame) -> FloatArray:
    """Return the descriptors with zero for unknown and unlimited values."""
    return np.asarray(np.nan_to_num(descriptors.to_numpy(dtype=np.float64), posinf=0.0), dtype=np.float64)


def _logarithms(descriptors: pd.DataFrame) -> FloatArray:
    """Return the inverse hyperbolic sine of the descriptors: logarithmic for large values, defined at zero."""
    return np.asarray(np.arcsinh(_finite(descriptors)), dtype=np.float64)
