"""What the predictor leans on: gain, exact SHAP values and held-out permutation of its columns.

Gain and SHAP values tell what the fitted trees use; permutation of held-out rows tells what helps on an LLM never
seen. Both speak of the learner's part, the ratio above the estimate, unless descriptors are permuted: those feed
the estimate as well.
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
"""What is known step by step: other LLMs' typical value, the estimate at its priors, calibrated, and corrected."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A fitted predictor and the rows to judge it by.

    Parameters
    ----------
    predictor
        Fitted.
    rows : shape (n_judged,)
        Positions of the rows that it is judged by.
    """

    predictor: RatioModel
    rows: IndexArray


def fit_folds(predictor: RatioModel, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series) -> list[Fold]:
    """Return one predictor per fold, each to be judged by the groups that it never saw.

    Parameters
    ----------
    predictor
        Its settings are used; it is not fitted.
    X, y, groups
        As in `RatioModel.fit`.
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
    """Return the share of the members' training gain that each column's splits brought; the shares sum to 1.

    Gain is counted on the rows trained on, so a column that names an LLM looks as good as one that explains it.

    Parameters
    ----------
    regressor
        Fitted.
    names : shape (n_column,)
        Of its columns, in order.
    """
    total = np.zeros(len(names))
    for booster in regressor.boosters_:
        scores = booster.get_score(importance_type="total_gain")
        total += np.array([scores.get(f"f{i}", 0.0) for i in range(len(names))], dtype=float)
    return pd.Series(total / max(total.sum(), np.finfo(float).tiny), index=list(names), name="gain")


def shap_values(regressor: ResidualRegressor, features: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Return by how much each column moves each row's log ratio from the mean one, and that mean.

    The values are exact for trees (path-dependent TreeSHAP): a row's values and the mean sum to its prediction.

    Parameters
    ----------
    regressor
        Fitted.
    features : shape (n_row, n_column)

    Returns
    -------
    shape (n_row, n_column), in natural logarithms; the base value

    References
    ----------
    S. Lundberg et al., "From local explanations to global understanding with explainable AI for trees", Nature
    Machine Intelligence 2, 2020.
    """
    from xgboost import DMatrix  # noqa: PLC0415

    matrix = DMatrix(features.to_numpy(dtype=float), nthread=regressor.n_jobs)
    contributions = [booster.predict(matrix, pred_contribs=True) for booster in regressor.boosters_]
    mean: FloatArray = np.mean(np.array(contributions, dtype=np.float64), axis=0)
    return pd.DataFrame(mean[:, :-1], index=features.index, columns=features.columns), float(
        mean[0, -1]
    ) + regressor.median_


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
    """Return by how much the judged rows' error rises when a block of columns takes other rows' values.

    Values are drawn from all rows, those of other groups too: what tells LLMs apart hardly varies within one. Every
    fold and block sees the same permutations, and the columns of a block move together.

    Parameters
    ----------
    folds
        As `fit_folds` returns them. A fold judged by rows that it was fitted to flatters the columns.
    X, y, groups
        What the folds were fitted to.
    blocks
        Columns by block name; None for one block per column.
    table
        ``features`` disturbs the learner and leaves the estimate; ``descriptors`` disturbs both.
    n_repeat
        Permutations.
    seed
        Of the permutations.

    Returns
    -------
    index ``(metric, block)``, columns `mean`, the rise of the mean absolute log error, every group weighing the same;
    `seed_sd`, its standard deviation over permutations; `group_se`, its standard error over groups

    References
    ----------
    A. Fisher, C. Rudin and F. Dominici, "All models are wrong, but many are useful", JMLR 20, 2019.
    """
    names = FEATURE_NAMES if table == "features" else DESCRIPTOR_NAMES
    blocks = {name: [name] for name in names} if blocks is None else blocks
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(X)) for _ in range(n_repeat)]
    rises = pd.concat([_rises(fold, X, y, groups, blocks=blocks, table=table, orders=orders) for fold in folds])
    by_seed = rises.groupby(["metric", "block", "seed"], sort=False)["rise"].mean()
    by_group = rises.groupby(["metric", "block", "group"], sort=False)["rise"].mean()
    keys = ["metric", "block"]
    return pd.DataFrame(
        {
            "mean": by_seed.groupby(keys, sort=False).mean(),
            "seed_sd": by_seed.groupby(keys, sort=False).std(),
            "group_se": by_group.groupby(keys, sort=False).sem(),
        }
    )


def group_importance(values: pd.DataFrame) -> pd.DataFrame:
    """Return the columns summed by physical group, the part of their names before the dot.

    Of SHAP values it returns those of the groups, still additive: contributions that cancel within a group do
    cancel, as they would not in a sum of sizes.

    Parameters
    ----------
    values : shape (n_row, n_column)

    Returns
    -------
    shape (n_row, n_group)

    Examples
    --------
    >>> group_importance(pd.DataFrame({"model.a": [0.5], "memory.b": [0.25], "model.c": [-0.5]}))
       model  memory
    0    0.0    0.25
    """
    return pd.DataFrame({g: values[list(columns)].sum(axis=1) for g, columns in group_blocks(values.columns).items()})


def group_blocks(names: Sequence[str] | pd.Index[str]) -> dict[str, list[str]]:
    """Return the column names by physical group, in the order in which they come.

    Examples
    --------
    >>> group_blocks(["model.a", "memory.b", "model.c"])
    {'model': ['model.a', 'model.c'], 'memory': ['memory.b']}
    """
    blocks: dict[str, list[str]] = {}
    for name in names:
        blocks.setdefault(name.partition(".")[0], []).append(name)
    return blocks


def _rises(
    fold: Fold,
    X: pd.DataFrame,
    y: pd.DataFrame,
    groups: pd.Series,
    *,
    blocks: Mapping[str, Sequence[str]],
    table: Table,
    orders: Sequence[IndexArray],
) -> pd.DataFrame:
    """Return the rise of the fold's error by metric, block, seed and group, a row each."""
    whole = build_features(X, fold.predictor.coefficients_)[0] if table == "features" else X
    judged, keys = whole.iloc[fold.rows], list(itertools.product(blocks, range(len(orders))))
    stack = [judged]
    for block, seed in keys:
        columns = list(blocks[block])
        drawn = whole[columns].iloc[orders[seed][fold.rows]].to_numpy()
        stack.append(judged.assign(**dict(zip(columns, drawn.T, strict=True))))
    reference, *disturbed = _errors(fold, stack, X.iloc[fold.rows], y.iloc[fold.rows], table)
    index = pd.MultiIndex.from_tuples([(*key, group) for key in keys for group in groups.iloc[fold.rows]])
    rises = pd.DataFrame(np.concatenate(disturbed - reference), index=index, columns=list(fold.predictor.metrics_))
    rises.index.names = ["block", "seed", "group"]
    means = rises.groupby(level=rises.index.names, sort=False).mean().reset_index()
    return means.melt(rises.index.names, var_name="metric", value_name="rise").dropna(subset="rise")


def _errors(
    fold: Fold, stack: Sequence[pd.DataFrame], judged: pd.DataFrame, outcome: pd.DataFrame, kind: Table
) -> FloatArray:
    """Return the absolute log errors of tables of the same rows: shape (n_table, n_judged, n_metric)."""
    table = pd.concat(stack, ignore_index=True)
    if kind == "descriptors":
        logs = np.log(fold.predictor.predict(table).to_numpy())
    else:
        estimates = build_features(judged, fold.predictor.coefficients_)[1]
        logs = np.column_stack(
            [
                r.predict(table.to_numpy()) + np.tile(np.log(estimates[m]), len(stack))
                for m, r in fold.predictor.regressors_.items()
            ]
        )
    measured = outcome[list(fold.predictor.metrics_)].to_numpy(dtype=float)
    truth = log_ratio(measured, np.ones_like(measured))
    return np.asarray(np.abs(truth - logs.reshape(len(stack), *measured.shape)), dtype=np.float64)
