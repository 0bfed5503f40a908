"""Out-of-memory classifier: P(the deployment runs), a monotone logistic regression on memory features.

Campaigns publish thousands of results and few failures. The failures are batches that ran out of memory, and inferred
ones: profiles of LLM-Pilot without rows that only memory can explain. The base rate is that of deployments that
somebody tried.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.features.engine.memory import Memory, estimate_memory
from roofcast.features.queries import BoolArray, FloatArray, QueryTable, descriptor_arrays
from roofcast.training.dataset.review import review
from roofcast.training.learner.errors.lazy_scipy import optimize
from roofcast.training.learner.estimator import Estimator, check_is_fitted

DEPLOYMENT: Final = ("model", "accelerator", "n_accelerator", "engine", "weight_precision", "tp", "pp", "dp", "ep")
"""Columns that identify a deployment."""

HEADROOM_LIMITS: Final = (0.1, 100.0)
"""Clip of the headroom: requests that fit, for each that must be held at once."""

LLM_PILOT: Final = "llm_pilot"
"""Campaign of the inferred failures."""

WITHOUT_FLASH_ATTENTION: Final = "nvidia-v100-pcie-16gb"
"""Its accelerator that does not run fused attention."""


class OutOfMemoryClassifier(Estimator):
    """Logistic regression in which the probability of the second class never rises with a column.

    `l2` is the penalty on the squared slopes of columns scaled to a variance of 1.

    - `slope_`: Change of the log odds with each column, zero or less: shape (n_column,).
    - `intercept_`: Log odds where all columns are zero.
    """

    def __init__(self, l2: float = 0.01) -> None:
        self.l2 = l2

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags  # noqa: PLC0415

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.target_tags.required = "classifier", True
        tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to columns, shape (n_row, n_column), and two classes, shape (n_row,); return the classifier."""
        from sklearn.utils.multiclass import type_of_target  # noqa: PLC0415
        from sklearn.utils.validation import validate_data  # noqa: PLC0415

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
            pull = -sign * _logistic(-margin)
            value = np.logaddexp(0.0, -margin).sum() + 0.5 * self.l2 * (b[1:] ** 2).sum()
            return float(value), np.concatenate([[pull.sum()], Z.T @ pull + self.l2 * b[1:]])

        bounds = [(None, None)] + [(None, 0.0)] * X.shape[1]
        best = optimize.minimize(loss, np.zeros(1 + X.shape[1]), jac=True, bounds=bounds, method="L-BFGS-B").x
        self.slope_ = best[1:] / scale
        self.intercept_ = float(best[0] - self.slope_ @ mean)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class: shape (n_row, 2)."""
        from sklearn.utils.validation import validate_data  # noqa: PLC0415

        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        second = self.predict_second_proba(X)
        return np.stack([1.0 - second, second], axis=1)

    def predict_second_proba(self, X: FloatArray) -> FloatArray:
        """Return the probability of the second class, of a matrix known to have the right columns: shape (n_row,)."""
        return _logistic(self.intercept_ + X @ self.slope_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the likelier class of each row: shape (n_row,)."""
        is_second = self.predict_proba(X)[:, 1] > 0.5
        return np.asarray(self.classes_[is_second.astype(int)])


def _logistic(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def memory_columns(descriptors: QueryTable, memory: Memory) -> FloatArray:
    """Return the features of `OutOfMemoryClassifier`, of which more is worse: shape (n_query, 3).

    They are the logarithm of needed over usable memory; that of the requests which must be held at once, all of a
    static batch and one otherwise, over those that fit; and whether attention is padded, whose buffers grow with the
    longest prompt.
    """
    d = descriptor_arrays(descriptors)
    load = d["workload.concurrency"]
    held = np.where((d["workload.is_static"] > 0) & ~np.isnan(load), load, 1.0)
    fill = np.log(memory.needed_byte / np.maximum(memory.usable_byte, 1.0))
    padded = (d["config.flash_attention"] < 0.5) * 1.0
    return np.stack([fill, -np.log(np.clip(memory.capacity / held, *HEADROOM_LIMITS)), padded], axis=1)


def memory_of(descriptors: QueryTable, coefficients: Coefficients = DEFAULT_COEFFICIENTS) -> Memory:
    """Return the memory of each query's replica."""
    d = descriptor_arrays(descriptors)
    return estimate_memory(d, coefficients.by_row(d["config.engine"]))


@dataclass(frozen=True, slots=True)
class Attempts:
    """Deployments that ran and that failed: `n_attempt` rows of one index.

    `rows` has the columns of measurements, and `is_inferred` for failures that nobody published; `X` the descriptors;
    `groups` the fold groups.
    """

    rows: pd.DataFrame
    X: pd.DataFrame
    ran: BoolArray
    groups: pd.Series


def build_attempts(
    rows: pd.DataFrame,
    failed: pd.DataFrame,
    models: Mapping[str, ModelSpec],
    accelerators: Mapping[str, AcceleratorSpec],
    starts: pd.DataFrame | None = None,
) -> Attempts:
    """Return the hardest run and the easiest failure of each deployment.

    - `rows`: Sound measurements. If LLM-Pilot's are among them, failures are inferred from its missing profiles.
    - `failed`: Measurements that ran out of memory; those that `review` would set aside had they run are left out.
    - `starts`: Starts of servers, see `tried_starts`, that held a request of their longest context or ran out of
      memory.
    """
    unsound = review(failed.assign(status="ok"), models, accelerators) if len(failed) else failed
    missing = missing_profiles(rows[rows["campaign"] == LLM_PILOT])
    parts = [(rows, True, False), (failed.drop(index=unsound.index), False, False), (missing, False, True)]
    if starts is not None:
        known = starts[starts["model"].isin(list(models)) & starts["accelerator"].isin(list(accelerators))]
        parts += [(known[known["status"] == status], status == "ok", False) for status in ("ok", "out_of_memory")]
    tried = pd.concat([part.assign(ran=ran, is_inferred=guess) for part, ran, guess in parts], ignore_index=True)
    X = describe(tried, models, accelerators)
    hardness = memory_columns(X, memory_of(X))[:, :2].sum(axis=1)
    order = tried.assign(hardness=np.where(tried["ran"], hardness, -hardness)).sort_values("hardness", kind="stable")
    selected = np.sort(order.drop_duplicates([*DEPLOYMENT, "ran"], keep="last").index.to_numpy())
    groups = tried["model"].map({name: spec.fold_group for name, spec in models.items()})
    ran = tried["ran"].to_numpy(dtype=bool)[selected]
    return Attempts(tried.loc[selected], X.loc[selected], ran, groups.loc[selected])


def missing_profiles(rows: pd.DataFrame) -> pd.DataFrame:
    """Return LLM-Pilot's profiles without rows of a model that only a lack of memory explains.

    Other reasons: some models are never split over accelerators, and fused attention does not run on V100.
    """
    first = rows.drop_duplicates("model").drop(columns=["accelerator", "n_accelerator", "tp"])
    every = first.merge(rows[["accelerator", "n_accelerator"]].drop_duplicates(), how="cross")
    every["tp"] = every["n_accelerator"]
    key = ["model", "accelerator", "n_accelerator"]
    is_measured = pd.MultiIndex.from_frame(every[key]).isin(pd.MultiIndex.from_frame(rows[key]))
    is_split = every["model"].isin(rows.loc[rows["n_accelerator"] > 1, "model"])
    can_split = is_split | (every["n_accelerator"] == 1)
    can_attend = (every["accelerator"] != WITHOUT_FLASH_ATTENTION) | ~every["flash_attention"].astype(bool)
    return every[~is_measured & can_split.to_numpy() & can_attend.to_numpy()]


def fit_out_of_memory(
    attempts: Attempts, coefficients: Coefficients = DEFAULT_COEFFICIENTS
) -> OutOfMemoryClassifier | None:
    """Return the classifier of attempts, with classes False and True; None if all ran or none did."""
    if attempts.ran.all() or not attempts.ran.any():
        return None
    return OutOfMemoryClassifier().fit(memory_columns(attempts.X, memory_of(attempts.X, coefficients)), attempts.ran)
