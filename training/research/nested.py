"""Learners of the residual compared under nested folds: what is chosen is chosen inside the training lineages.

Outer folds hold out whole lineages and judge. Inside each, inner folds of the remaining lineages choose a learner's
settings, and what each learner's correction is worth. The coefficients of the estimate are fitted to the training
rows of every fold, outer or inner, once for all learners.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import optuna
from lightgbm import LGBMRegressor
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from roofcast.features.descriptors.config_hash import CELL, config_hashes, joint_hash
from roofcast.features.engine.coefficients import Coefficients
from roofcast.features.pipeline import build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.targets import log_ratio, row_weights
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.boosted_residual import ResidualRegressor

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
Settings = dict[str, Any]

NONE: Final = "none"
PRESENT: Final = "present"
WEIGHTED: Final = "weighted"
BLEND: Final = "blend"

SEED: Final = 0

N_RANDOM: Final = 5
"""Settings drawn by chance before the search follows what was found."""

N_TREE: Final = (50, 600)
RATE: Final = (0.02, 0.15)
N_LEAF: Final = (3, 24)
COLUMN_SHARE: Final = (0.2, 0.8)
"""Where settings are sought."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that tell a metric, under some coefficients.

    Parameters
    ----------
    features : shape (n_row, n_feature)
    target : shape (n_row,)
        Logarithm of measurement over estimate.
    weight : shape (n_row,)
        By which learners are fitted.
    row : shape (n_row,)
        Place of each row in the training set.
    """

    features: FloatArray
    target: FloatArray
    weight: FloatArray
    row: IndexArray


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to fit to, and means and medians of lineages held out, under coefficients that never saw those."""

    train: Part
    test: Part


@dataclass(frozen=True, slots=True)
class Learner:
    """A way to learn a correction.

    Parameters
    ----------
    build
        Makes a regressor that takes ``sample_weight``, from settings.
    seek
        Proposes settings; None where there is nothing to choose.
    """

    build: Callable[..., Any]
    seek: Callable[[optuna.Trial], Settings] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a learner did in one outer fold, for one metric.

    Parameters
    ----------
    settings
        Chosen inside.
    inner, outer
        Logarithm of measurement over prediction: of the training lineages, each held out in an inner fold, and of the
        lineages of the outer fold.
    row : shape (n_outer,)
        Place of each outer row in the training set.
    """

    settings: Settings
    inner: FloatArray
    outer: FloatArray
    row: IndexArray


def _present() -> ResidualRegressor:
    known = ResidualRegressor().get_params()
    return ResidualRegressor(**{k: v for k, v in TrainingConfig().model_dump().items() if k in known})


def _xgboost(trial: optuna.Trial) -> Settings:
    return {
        "n_estimators": trial.suggest_int("n_estimators", *N_TREE, log=True),
        "learning_rate": trial.suggest_float("learning_rate", *RATE, log=True),
        "max_depth": trial.suggest_int("max_depth", 2, 5),
        "colsample_bytree": trial.suggest_float("colsample_bytree", *COLUMN_SHARE),
        "min_child_weight": trial.suggest_float("min_child_weight", 1.0, 50.0, log=True),
        "reg_lambda": trial.suggest_float("reg_lambda", 0.3, 30.0, log=True),
    }


def _lightgbm(trial: optuna.Trial) -> Settings:
    return {
        "n_estimators": trial.suggest_int("n_estimators", *N_TREE, log=True),
        "learning_rate": trial.suggest_float("learning_rate", *RATE, log=True),
        "num_leaves": trial.suggest_int("num_leaves", *N_LEAF, log=True),
        "colsample_bytree": trial.suggest_float("colsample_bytree", *COLUMN_SHARE),
        "min_child_samples": trial.suggest_int("min_child_samples", 5, 200, log=True),
    }


def _hist(trial: optuna.Trial) -> Settings:
    return {
        "max_iter": trial.suggest_int("max_iter", *N_TREE, log=True),
        "learning_rate": trial.suggest_float("learning_rate", *RATE, log=True),
        "max_leaf_nodes": trial.suggest_int("max_leaf_nodes", *N_LEAF, log=True),
        "max_features": trial.suggest_float("max_features", *COLUMN_SHARE),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 5, 200, log=True),
    }


class _ScaledRidge(Ridge):  # type: ignore[misc]
    """Ridge regression of columns of mean 0 and variance 1."""

    def fit(self, X: FloatArray, y: FloatArray, sample_weight: FloatArray) -> Self:
        self.scaler_ = StandardScaler().fit(X)
        super().fit(self.scaler_.transform(X), y, sample_weight)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return np.asarray(super().predict(self.scaler_.transform(X)), dtype=np.float64)


LEARNERS: Final = {
    PRESENT: Learner(_present),
    "xgboost": Learner(ResidualRegressor, _xgboost),
    "lightgbm": Learner(
        partial(
            LGBMRegressor,
            objective="mae", subsample=0.7, subsample_freq=1, n_jobs=1, random_state=SEED, verbose=-1
        ),
        _lightgbm,
    ),
    "hist": Learner(
        partial(HistGradientBoostingRegressor, loss="absolute_error", early_stopping=False, random_state=SEED),
        _hist,
    ),
    "ridge": Learner(_ScaledRidge, lambda trial: {"alpha": trial.suggest_float("alpha", 1.0, 1e5, log=True)}),
}  # fmt: skip
"""What is fitted; beside them stand the bare estimate, the present learner at a weight, and a blend of all."""

METHODS: Final = (NONE, *LEARNERS, WEIGHTED, BLEND)


def build_splits(
    data: TrainingSet, train: IndexArray, test: IndexArray, coefficients: Coefficients, metrics: Sequence[str]
) -> dict[str, Split]:
    """Return by metric the rows of a fold with their features under coefficients fitted to its training rows."""
    features, estimates, _ = build_features(data.X, coefficients)
    matrix, cells = features.to_numpy(), joint_hash(config_hashes(data.X), CELL)
    is_central = (data.X["workload.quantile"] == 0.5).to_numpy()
    splits = {}
    for metric in metrics:
        target = log_ratio(data.y[metric].to_numpy(dtype=float), estimates[metric])
        parts = [rows[~np.isnan(target[rows])] for rows in (train, test[is_central[test]])]
        splits[metric] = Split(*(Part(matrix[r], target[r], row_weights(cells[r]), r) for r in parts))
    return splits


def compare(outer: Split, inner: Sequence[Split], n_trial: int) -> dict[str, Outcome]:
    """Return what each of `METHODS` does in an outer fold, for one metric.

    Parameters
    ----------
    outer
        Judges.
    inner
        Splits of the outer training lineages, by which everything is chosen.
    n_trial
        Settings tried for each learner.
    """
    chosen = {name: seek(learner, inner, n_trial) for name, learner in LEARNERS.items()}
    held_out = np.stack([corrections(LEARNERS[name], s, inner) for name, s in chosen.items()], axis=1)
    asked = np.stack([corrections(LEARNERS[name], s, [outer]) for name, s in chosen.items()], axis=1)
    known = np.concatenate([split.test.target for split in inner])
    weights = {NONE: np.zeros(len(chosen))}
    weights |= {name: np.eye(len(chosen))[i] for i, name in enumerate(chosen)}
    weights[WEIGHTED] = blend_weights(held_out[:, :1], known)[0] * weights[PRESENT]
    weights[BLEND] = blend_weights(held_out, known)
    settings = {NONE: {}, **chosen, WEIGHTED: {"weight": float(weights[WEIGHTED][0])}}
    settings[BLEND] = {f"weight_{name}": float(w) for name, w in zip(chosen, weights[BLEND], strict=True)}
    return {
        name: Outcome(settings[name], known - held_out @ w, outer.test.target - asked @ w, outer.test.row)
        for name, w in weights.items()
    }


def seek(learner: Learner, inner: Sequence[Split], n_trial: int) -> Settings:
    """Return the settings whose mean absolute error over the inner folds is least, of `n_trial` tried."""
    if learner.seek is None:
        return {}
    propose, known = learner.seek, np.concatenate([split.test.target for split in inner])

    def error(trial: optuna.Trial) -> float:
        return float(np.abs(known - corrections(learner, propose(trial), inner)).mean())

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=SEED, n_startup_trials=N_RANDOM))
    study.optimize(error, n_trials=n_trial)
    return dict(study.best_params)


def corrections(learner: Learner, settings: Settings, splits: Sequence[Split]) -> FloatArray:
    """Return the corrections that a learner gives the rows held out of each split, one after the other."""
    fitted = (
        (learner.build(**settings).fit(s.train.features, s.train.target, sample_weight=s.train.weight), s.test)
        for s in splits
    )
    return np.concatenate([regressor.predict(test.features) for regressor, test in fitted])


def blend_weights(corrections: FloatArray, target: FloatArray) -> FloatArray:
    """Return the non-negative weights of corrections under which the sum of absolute errors is least.

    Parameters
    ----------
    corrections : shape (n_row, n_learner)
        Of rows that the learners were not fitted to.
    target : shape (n_row,)

    Returns
    -------
    shape (n_learner,)

    Examples
    --------
    The second learner says twice too much, the first nothing of use:

    >>> import numpy as np
    >>> blend_weights(np.array([[1.0, 2.0], [-1.0, 4.0], [0.5, -2.0]]), np.array([1.0, 2.0, -1.0])).round(3).tolist()
    [0.0, 0.5]

    References
    ----------
    L. Breiman, "Stacked Regressions", Machine Learning 24, 1996.
    """
    n_row, n_learner = corrections.shape
    one = eye_array(n_row)
    cost = np.concatenate([np.zeros(n_learner), np.ones(2 * n_row)])
    rows = hstack([csr_array(corrections), one, -one], format="csr")
    best = linprog(cost, A_eq=rows, b_eq=target, method="highs").x
    return np.asarray(best, dtype=np.float64)[:n_learner]
