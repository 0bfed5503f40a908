"""Feature importance for analyses: gain, held-out permutation of columns, and errors of the stages of a prediction.

Gain describes the fitted trees; permutation on held-out rows describes the effect on unseen LLMs. Both concern the
learned ratio over the estimate, unless descriptors are permuted, which also feed the estimate.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import DESCRIPTOR_NAMES, FEATURE_NAMES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.pipeline import build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.boosted_residual import ResidualRegressor
from roofcast.training.learner.ratio_model import RatioModel

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
Table = Literal["features", "descriptors"]

STAGES: Final = ("guess", "prior", "estimate", "prediction")
"""Stages of a prediction: median of other LLMs, estimate at its priors, calibrated estimate, corrected estimate."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A fitted predictor and the rows that evaluate it.

    Parameters
    ----------
    rows : shape (n_test,)
        Indices of the test rows.
    """

    predictor: RatioModel
    rows: IndexArray


def fit_folds(predictor: RatioModel, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series) -> list[Fold]:
    """Return one predictor per fold, to be evaluated on groups that it was not fitted to.

    Parameters
    ----------
    predictor
        Source of the settings; it is not fitted.
    """
    folds = []
    for train, test in leave_one_group_out(groups, TrainingConfig().n_fold):
        fold = RatioModel(predictor.config, predictor.metrics, predictor.coefficients)
        folds.append(Fold(fold.fit(X.iloc[train], y.iloc[train], groups.iloc[train]), test))
    return folds


def stage_errors(folds: Sequence[Fold], X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series) -> pd.DataFrame:
    """Return the mean absolute log error of each stage of a prediction, by metric and held-out group.

    Returns
    -------
    shape (n_metric x n_group, n_stage), columns `STAGES`, index ``(metric, group)``
    """
    prior = build_features(X, DEFAULT_COEFFICIENTS)[1]
    errors: dict[tuple[str, str], dict[str, float]] = {}
    for fold in folds:
        others = np.setdiff1d(np.arange(len(X)), fold.rows)
        values = fold.predictor.predict(X.iloc[fold.rows])
        estimates = build_features(X.iloc[fold.rows], fold.predictor.coefficients_)[1]
        for metric in fold.predictor.metrics_:
            measured = y[metric].to_numpy(dtype=float)
            typical = np.full(len(fold.rows), y[metric].iloc[others].median())
            answers = (typical, prior[metric][fold.rows], estimates[metric], values[metric].to_numpy())
            table = {s: np.abs(log_ratio(measured[fold.rows], a)) for s, a in zip(STAGES, answers, strict=True)}
            for group, part in pd.DataFrame(table).groupby(groups.iloc[fold.rows].to_numpy()):
                errors[metric, str(group)] = {stage: float(part[stage].mean()) for stage in STAGES}
    frame = pd.DataFrame.from_dict(errors, orient="index", columns=list(STAGES))
    frame.index = pd.MultiIndex.from_tuples(frame.index, names=["metric", "group"])
    return frame.dropna(subset="prediction")


def gain_importance(regressor: ResidualRegressor, names: Sequence[str] = FEATURE_NAMES) -> pd.Series:
    """Return each column's share of the training gain of all members; the shares sum to 1.

    Gain is measured on training rows, so a column that identifies an LLM scores as high as one that explains it.

    Parameters
    ----------
    names : shape (n_column,)
        Names of the columns, in order.
    """
    total = np.zeros(len(names))
    for booster in regressor.boosters_:
        scores = booster.get_score(importance_type="total_gain")
        total += np.array([scores.get(f"f{i}", 0.0) for i in range(len(names))], dtype=float)
    return pd.Series(total / max(total.sum(), np.finfo(float).tiny), index=list(names), name="gain")


def permutation_importance(
    folds: Sequence[Fold],
    X: pd.DataFrame,
    y: pd.DataFrame,
    groups: pd.Series,
    blocks: Mapping[str, Sequence[str]] | None = None,
    *,
    table: Table = "features",
    n_repeat: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the increase of the held-out error when a block of columns is permuted.

    Values are permuted over all rows, including other groups: columns that distinguish LLMs are nearly constant
    within one. All folds and blocks use the same permutations, and the columns of a block move together.

    Parameters
    ----------
    folds
        Result of `fit_folds`. Folds evaluated on their training rows overstate importance.
    X, y, groups
        Data that the folds were fitted to.
    blocks
        Columns by block name; None for one block per column.
    table
        ``features`` permutes the inputs of the learner only; ``descriptors`` also those of the estimate.
    n_repeat
        Number of permutations.

    Returns
    -------
    index ``(metric, block)``, columns `mean`, the increase of the mean absolute log error with equal weights of
    groups; `seed_sd`, its standard deviation over permutations; `group_se`, its standard error over groups

    References
    ----------
    A. Fisher, C. Rudin and F. Dominici, "All models are wrong, but many are useful", JMLR 20, 2019.
    """
    names = FEATURE_NAMES if table == "features" else DESCRIPTOR_NAMES
    blocks = {name: [name] for name in names} if blocks is None else blocks
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(X)) for _ in range(n_repeat)]
    increases = pd.concat(
        [_error_increases(fold, X, y, groups, blocks=blocks, table=table, orders=orders) for fold in folds]
    )
    by_seed = increases.groupby(["metric", "block", "seed"], sort=False)["rise"].mean()
    by_group = increases.groupby(["metric", "block", "group"], sort=False)["rise"].mean()
    keys = ["metric", "block"]
    return pd.DataFrame(
        {
            "mean": by_seed.groupby(keys, sort=False).mean(),
            "seed_sd": by_seed.groupby(keys, sort=False).std(),
            "group_se": by_group.groupby(keys, sort=False).sem(),
        }
    )


def _error_increases(
    fold: Fold,
    X: pd.DataFrame,
    y: pd.DataFrame,
    groups: pd.Series,
    *,
    blocks: Mapping[str, Sequence[str]],
    table: Table,
    orders: Sequence[IndexArray],
) -> pd.DataFrame:
    """Return the increase of a fold's error by metric, block, seed and group, one per row."""
    all_rows = build_features(X, fold.predictor.coefficients_)[0] if table == "features" else X
    test_rows, keys = all_rows.iloc[fold.rows], list(itertools.product(blocks, range(len(orders))))
    stack = [test_rows]
    for block, seed in keys:
        columns = list(blocks[block])
        drawn = all_rows[columns].iloc[orders[seed][fold.rows]].to_numpy()
        stack.append(test_rows.assign(**dict(zip(columns, drawn.T, strict=True))))
    reference, *disturbed = _errors(fold, stack, X.iloc[fold.rows], y.iloc[fold.rows], table)
    index = pd.MultiIndex.from_tuples([(*key, group) for key in keys for group in groups.iloc[fold.rows]])
    increases = pd.DataFrame(
        np.concatenate(disturbed - reference), index=index, columns=list(fold.predictor.metrics_)
    )
    increases.index.names = ["block", "seed", "group"]
    means = increases.groupby(level=increases.index.names, sort=False).mean().reset_index()
    return means.melt(increases.index.names, var_name="metric", value_name="rise").dropna(subset="rise")


def _errors(
    fold: Fold, stack: Sequence[pd.DataFrame], test_rows: pd.DataFrame, outcome: pd.DataFrame, kind: Table
) -> FloatArray:
    """Return the absolute log errors of several tables of the same rows: shape (n_table, n_test, n_metric)."""
    table = pd.concat(stack, ignore_index=True)
    if kind == "descriptors":
        logs = np.log(fold.predictor.predict(table).to_numpy())
    else:
        estimates = build_features(test_rows, fold.predictor.coefficients_)[1]
        logs = np.column_stack(
            [
                r.predict(table.to_numpy()) + np.tile(np.log(estimates[m]), len(stack))
                for m, r in fold.predictor.regressors_.items()
            ]
        )
    measured = outcome[list(fold.predictor.metrics_)].to_numpy(dtype=float)
    truth = log_ratio(measured, np.ones_like(measured))
    return np.asarray(np.abs(truth - logs.reshape(len(stack), *measured.shape)), dtype=np.float64)
