"""Nested cross-validation of residual learners; settings are selected inside the training lineages.

Outer folds hold out lineages for evaluation. Inner folds of the remaining lineages select each learner's settings and
the weight of its correction. The coefficients of the estimate are fitted once per fold, outer or inner, for all
learners.
"""

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
from roofcast.training.learner.boosted_trees import ResidualRegressor
from roofcast.training.learner.ratio_model import DATE, HIDDEN, without_columns

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
Settings = dict[str, Any]

NONE: Final = "none"
PRESENT: Final = "present"
WEIGHTED: Final = "weighted"
BLEND: Final = "blend"

SEED: Final = 0

N_RANDOM: Final = 5
"""Random trials before the guided search."""

N_TREE: Final = (50, 600)
RATE: Final = (0.02, 0.15)
N_LEAF: Final = (3, 24)
COLUMN_SHARE: Final = (0.2, 0.8)
"""Search ranges."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows with a measured metric, as regression data under given coefficients.

    - `features`: shape (n_row, n_feature)
    - `target`: shape (n_row,). log(measurement / estimate).
    - `weight`: shape (n_row,). Sample weight.
    - `row`: shape (n_row,). Index of each row in the training set.
    """

    features: FloatArray
    target: FloatArray
    weight: FloatArray
    row: IndexArray


@dataclass(frozen=True, slots=True)
class Split:
    """Training rows, and mean and median rows of held-out lineages; coefficients are fitted to training rows only."""

    train: Part
    test: Part


@dataclass(frozen=True, slots=True)
class Learner:
    """Learner of the correction.

    `build`: makes a regressor with ``sample_weight`` support from settings. `seek`: proposes settings for a trial;
    None if there are none to tune.
    """

    build: Callable[..., Any]
    seek: Callable[[optuna.Trial], Settings] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Errors of a learner in one outer fold, for one metric.

    - `settings`: Selected in the inner folds.
    - `inner`, `outer`: log(measurement / prediction): on the training lineages, each held out in an inner fold, and
      on the lineages of the outer fold.
    - `row`: shape (n_outer,). Index of each outer row in the training set.
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
"""Fitted learners. `METHODS` adds the plain estimate, the weighted production learner, and a blend of all."""

METHODS: Final = (NONE, *LEARNERS, WEIGHTED, BLEND)


def build_splits(
    data: TrainingSet, train: IndexArray, test: IndexArray, coefficients: Coefficients, metrics: Sequence[str]
) -> dict[str, Split]:
    """Return the split of a fold by metric, with features under coefficients fitted to its training rows."""
    features, estimates, _ = build_features(data.X, coefficients)
    matrix, cells = features.to_numpy(), joint_hash(config_hashes(data.X), CELL)
    is_central = (data.X["workload.quantile"] == 0.5).to_numpy()
    splits = {}
    for metric in metrics:
        target = log_ratio(data.y[metric].to_numpy(dtype=float), estimates[metric])
        parts = [rows[~np.isnan(target[rows])] for rows in (train, test[is_central[test]])]
        inputs = without_columns(matrix, HIDDEN.get(metric, DATE))
        splits[metric] = Split(*(Part(inputs[r], target[r], row_weights(cells[r]), r) for r in parts))
    return splits


def compare(outer: Split, inner: Sequence[Split], n_trial: int) -> dict[str, Outcome]:
    """Evaluate `METHODS` in an outer fold, for one metric.

    - `outer`: Split for the evaluation.
    - `inner`: Splits of the outer training lineages, for selection.
    - `n_trial`: Trials per learner.
    """
    selected = {name: seek(learner, inner, n_trial) for name, learner in LEARNERS.items()}
    held_out = np.stack([corrections(LEARNERS[name], s, inner) for name, s in selected.items()], axis=1)
    outer_corrections = np.stack([corrections(LEARNERS[name], s, [outer]) for name, s in selected.items()], axis=1)
    target = np.concatenate([split.test.target for split in inner])
    weights = {NONE: np.zeros(len(selected))}
    weights |= {name: np.eye(len(selected))[i] for i, name in enumerate(selected)}
    weights[WEIGHTED] = blend_weights(held_out[:, :1], target)[0] * weights[PRESENT]
    weights[BLEND] = blend_weights(held_out, target)
    settings = {NONE: {}, **selected, WEIGHTED: {"weight": float(weights[WEIGHTED][0])}}
    settings[BLEND] = {f"weight_{name}": float(w) for name, w in zip(selected, weights[BLEND], strict=True)}
    return {
        name: Outcome(
            settings[name], target - held_out @ w, outer.test.target - outer_corrections @ w, outer.test.row
        )
        for name, w in weights.items()
    }


def seek(learner: Learner, inner: Sequence[Split], n_trial: int) -> Settings:
    """Return the settings with the lowest mean absolute error over the inner folds, in `n_trial` trials."""
    if learner.seek is None:
        return {}
    propose, target = learner.seek, np.concatenate([split.test.target for split in inner])

    def error(trial: optuna.Trial) -> float:
        return float(np.abs(target - corrections(learner, propose(trial), inner)).mean())

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=SEED, n_startup_trials=N_RANDOM))
    study.optimize(error, n_trials=n_trial)
    return dict(study.best_params)


def corrections(learner: Learner, settings: Settings, splits: Sequence[Split]) -> FloatArray:
    """Return the corrections of the test rows of all splits, concatenated."""
    fitted = (
        (learner.build(**settings).fit(s.train.features, s.train.target, sample_weight=s.train.weight), s.test)
        for s in splits
    )
    return np.concatenate([regressor.predict(test.features) for regressor, test in fitted])


def blend_weights(corrections: FloatArray, target: FloatArray) -> FloatArray:
    """Return the non-negative weights of corrections that minimise the sum of absolute errors.

    `corrections`: shape (n_row, n_learner): corrections of rows held out of the learners' fits. `target`: shape
    (n_row,).

    Returns
    -------
    shape (n_learner,)

    Examples
    --------
    The second learner is twice too large, the first is uninformative:

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
