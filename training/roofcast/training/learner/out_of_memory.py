"""Will it run at all: the probability that a deployment starts and serves what is asked, learnt from the memory.

Thousands of measurements tell what ran, a few tell what did not: campaigns publish results, not crashes. Shipped are
batches that ran out of memory, and the profiles of LLM-Pilot that a model has no rows for although nothing but memory
can be why, which is inferred. So the probabilities are those of a world where most deployments that are tried run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.arrays import descriptor_arrays
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.features.engine.memory import Memory, estimate_memory
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.review import review

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

DEPLOYMENT: Final = ("model", "accelerator", "n_accelerator", "engine", "weight_precision", "tp", "pp", "dp", "ep")
"""What attempts share that are one deployment."""

ROOM: Final = (0.1, 100.0)
"""Room, in requests for each that must be held at once, below and above which more or less makes no difference."""

RULE_CHANCE: Final = 0.99
"""Probability that a rule's yes or no is taken to mean where it is scored by its logarithm."""

SPLIT: Final = "llm_pilot"
UNFUSED: Final = "nvidia-v100-pcie-16gb"
"""Campaign of the inferred failures, and its accelerator that fused attention does not run on."""


class OutOfMemoryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression in which the second class never gets likelier as a column rises.

    Parameters
    ----------
    l2
        Penalty on the squares of the slopes, of columns scaled to a variance of 1.

    Attributes
    ----------
    classes_
        The two classes.
    slope_
        Change of the log odds with each column, zero or less: shape (n_column,).
    intercept_
        Log odds where all columns are zero.
    n_features_in_
        Number of columns seen in `fit`.
    """

    def __init__(self, l2: float = 0.01) -> None:
        self.l2 = l2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit and return the classifier.

        Parameters
        ----------
        X : shape (n_row, n_column)
        y : shape (n_row,)
            Two classes.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, code = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("there must be two classes, got one class")
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale[scale == 0] = 1.0
        Z, sign = (X - mean) / scale, 2.0 * code - 1.0

        def loss(b: FloatArray) -> tuple[float, FloatArray]:
            margin = sign * (b[0] + Z @ b[1:])
            pull = -sign * expit(-margin)
            value = np.logaddexp(0.0, -margin).sum() + 0.5 * self.l2 * (b[1:] ** 2).sum()
            return float(value), np.concatenate([[pull.sum()], Z.T @ pull + self.l2 * b[1:]])

        bounds = [(None, None)] + [(None, 0.0)] * X.shape[1]
        best = minimize(loss, np.zeros(1 + X.shape[1]), jac=True, bounds=bounds, method="L-BFGS-B").x
        self.slope_ = best[1:] / scale
        self.intercept_ = float(best[0] - self.slope_ @ mean)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class: shape (n_row, 2)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        second = expit(self.intercept_ + X @ self.slope_)
        return np.stack([1.0 - second, second], axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the likelier class of each row: shape (n_row,)."""
        is_second = self.predict_proba(X)[:, 1] > 0.5
        return np.asarray(self.classes_[is_second.astype(int)])


def memory_columns(descriptors: pd.DataFrame, memory: Memory) -> FloatArray:
    """Return what `OutOfMemoryClassifier` sees of questions: shape (n_question, 3).

    Each column is the worse the greater: the logarithm of needed over usable memory; that of the requests which must
    be held at once, the whole of a static batch and one else, over those that can be; and whether attention is
    padded, whose buffers grow with the longest prompt.

    Parameters
    ----------
    descriptors : shape (n_question, n_descriptor)
    memory
        Of the questions.
    """
    is_static = (descriptors["workload.is_static"] > 0).to_numpy()
    held = np.where(is_static, descriptors["workload.concurrency"].fillna(1.0).to_numpy(dtype=float), 1.0)
    fill = np.log(memory.needed_byte / np.maximum(memory.usable_byte, 1.0))
    padded = (descriptors["config.flash_attention"] < 0.5).to_numpy(dtype=float)
    return np.stack([fill, -np.log(np.clip(memory.capacity / held, *ROOM)), padded], axis=1)


def memory_of(descriptors: pd.DataFrame, coefficients: Coefficients = DEFAULT_COEFFICIENTS) -> Memory:
    """Return the memory of each question's replica."""
    d = descriptor_arrays(descriptors)
    return estimate_memory(d, coefficients.by_row(d["config.engine"]))


@dataclass(frozen=True, slots=True)
class Attempts:
    """Deployments that ran and that did not; the tables share one index.

    Parameters
    ----------
    told
        Columns of measurements, and `is_inferred`, where nobody published that it failed.
    X : shape (n_attempt, n_descriptor)
    ran : shape (n_attempt,)
    groups : shape (n_attempt,)
        Fold groups.
    """

    told: pd.DataFrame
    X: pd.DataFrame
    ran: BoolArray
    groups: pd.Series


def build_attempts(
    rows: pd.DataFrame,
    failed: pd.DataFrame,
    models: Mapping[str, ModelSpec],
    accelerators: Mapping[str, AcceleratorSpec],
) -> Attempts:
    """Return of each deployment the hardest question that ran and the easiest that did not.

    Parameters
    ----------
    rows
        Sound measurements. If LLM-Pilot's are among them, profiles that can only be missing for memory failed.
    failed
        Measurements that ran out of memory; those that `review` would set aside had they run are left out.
    models, accelerators
        Specs by the ids that the measurements name.
    """
    unsound = review(failed.assign(status="ok"), models, accelerators) if len(failed) else failed
    missing = missing_profiles(rows[rows["campaign"] == SPLIT])
    parts = [(rows, True, False), (failed.drop(index=unsound.index), False, False), (missing, False, True)]
    told = pd.concat([part.assign(ran=ran, is_inferred=guess) for part, ran, guess in parts], ignore_index=True)
    X = describe(told, models, accelerators)
    hardness = memory_columns(X, memory_of(X))[:, :2].sum(axis=1)
    order = told.assign(hardness=np.where(told["ran"], hardness, -hardness)).sort_values("hardness", kind="stable")
    kept = np.sort(order.drop_duplicates([*DEPLOYMENT, "ran"], keep="last").index.to_numpy())
    groups = told["model"].map({name: spec.fold_group for name, spec in models.items()})
    return Attempts(told.loc[kept], X.loc[kept], told["ran"].to_numpy(dtype=bool)[kept], groups.loc[kept])


def missing_profiles(rows: pd.DataFrame) -> pd.DataFrame:
    """Return LLM-Pilot's profiles that a model has no rows of, where nothing but memory can be why.

    Its servers never split some models over accelerators, and do not run fused attention on V100.
    """
    first = rows.drop_duplicates("model").drop(columns=["accelerator", "n_accelerator", "tp"])
    every = first.merge(rows[["accelerator", "n_accelerator"]].drop_duplicates(), how="cross")
    every["tp"] = every["n_accelerator"]
    key = ["model", "accelerator", "n_accelerator"]
    is_measured = pd.MultiIndex.from_frame(every[key]).isin(pd.MultiIndex.from_frame(rows[key]))
    is_split = every["model"].isin(rows.loc[rows["n_accelerator"] > 1, "model"])
    can_split = is_split | (every["n_accelerator"] == 1)
    can_attend = (every["accelerator"] != UNFUSED) | ~every["flash_attention"].astype(bool)
    return every[~is_measured & can_split.to_numpy() & can_attend.to_numpy()]


def fit_feasibility(
    attempts: Attempts, coefficients: Coefficients = DEFAULT_COEFFICIENTS
) -> OutOfMemoryClassifier | None:
    """Return the classifier of attempts, of classes False and True; None if all ran or none did."""
    if attempts.ran.all() or not attempts.ran.any():
        return None
    return OutOfMemoryClassifier().fit(memory_columns(attempts.X, memory_of(attempts.X, coefficients)), attempts.ran)


def held_out_chances(attempts: Attempts, coefficients: Coefficients = DEFAULT_COEFFICIENTS) -> FloatArray:
    """Return the probability that each attempt runs, by a classifier that never saw its lineage."""
    columns, chance = memory_columns(attempts.X, memory_of(attempts.X, coefficients)), np.empty(len(attempts.ran))
    for train, test in leave_one_group_out(attempts.groups):
        fold = OutOfMemoryClassifier().fit(columns[train], attempts.ran[train])
        chance[test] = fold.predict_proba(columns[test])[:, 1]
    return chance


def scores(ran: BoolArray, chance: FloatArray) -> dict[str, float]:
    """Return the Brier score and the mean logarithmic loss of probabilities.

    Examples
    --------
    >>> scores(np.array([True, False]), np.array([0.8, 0.2]))
    {'brier': 0.04, 'log_loss': 0.223}
    """
    loss = -np.log(np.where(ran, chance, 1.0 - chance))
    return {"brier": round(float(((chance - ran) ** 2).mean()), 4), "log_loss": round(float(loss.mean()), 3)}


def feasibility_figures(attempts: Attempts) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return scores of the held-out probabilities beside the plain rule's, and the calibration of both.

    The rule says that what fits runs; where its logarithm is asked, with probability `RULE_CHANCE`.
    """
    rule = np.where(memory_of(attempts.X).fits, RULE_CHANCE, 1.0 - RULE_CHANCE)
    methods = {"classifier": held_out_chances(attempts), "rule": rule}
    is_pilot = (attempts.told["campaign"] == SPLIT).to_numpy()
    lines, bins = [], []
    for method, chance in methods.items():
        for name, some in (("all", np.ones(len(rule), dtype=bool)), (SPLIT, is_pilot)):
            counts = {"n": int(some.sum()), "n_failed": int((~attempts.ran[some]).sum())}
            lines.append({"attempts": name, "method": method, **counts, **scores(attempts.ran[some], chance[some])})
        table = pd.DataFrame({"said": chance, "ran": attempts.ran})
        part = pd.cut(table["said"], [0.0, 0.1, 0.5, 0.9, 0.98, 1.0])
        summary = table.groupby(part, observed=True).agg(
            n=("ran", "size"), said=("said", "mean"), ran=("ran", "mean")
        )
        bins.append(summary.rename_axis("between").reset_index().assign(method=method))
    return pd.DataFrame(lines), pd.concat(bins, ignore_index=True)
