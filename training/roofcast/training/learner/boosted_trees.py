"""Boosted trees of log(measurement / estimate): the regressor, its rows and NumPy inference, and its support gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import ENGINES, FEATURE_NAMES
from roofcast.features.descriptors.config_hash import HashArray
from roofcast.features.descriptors.descriptor_table import QUANTILE
from roofcast.features.engine.kernels.row_kernels import MEASURED_ENGINES
from roofcast.features.queries import FloatArray, IndexArray, SingleArray
from roofcast.training.learner.errors.group_keys import TERMS, GroupKeys
from roofcast.training.learner.estimator import Estimator, check_is_fitted
from roofcast.training.learner.library_booster import LibraryBooster

if TYPE_CHECKING:
    from xgboost import Booster


MAX_NUMPY_ROW: Final = 20
"""Rows up to which `NumpyBooster` is faster than a call of the library."""

MAX_NUMPY_DEPTH: Final = 6
"""Depth up to which trees are padded for `NumpyBooster`; its memory doubles with each level."""

_CACHES: Final = ("_booster", "boosters_")


class ResidualRegressor(Estimator):
    """Average of gradient-boosted trees around the median of the targets.

    Averaging members with different seeds, which count up from `random_state`, removes most of the scatter that a
    single seed has on few groups. Settings are those of XGBoost.

    - `median_`: Of the targets.
    - `members_`: Boosters fitted to the targets less their median, as XGBoost's UBJSON.

    References
    ----------
    T. Chen and C. Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016.
    """

    def __init__(
        self,
        *,
        n_member: int = 1,
        n_estimators: int = 300,
        max_depth: int = 3,
        learning_rate: float = 0.05,
        subsample: float = 0.7,
        colsample_bytree: float = 0.5,
        min_child_weight: float = 5.0,
        reg_lambda: float = 1.0,
        objective: str = "reg:absoluteerror",
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.n_member = n_member
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.objective = objective
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags  # noqa: PLC0415

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags, tags.target_tags.required = "regressor", RegressorTags(), True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit every member and return the regressor."""
        from sklearn.utils.validation import _check_sample_weight, validate_data  # noqa: PLC0415

        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, ensure_non_negative=True, allow_all_zero_weights=False
            )
        self.median_ = float(np.median(y))
        self._set_members(self._fit_members(X, y - self.median_, sample_weight))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the mean prediction of the members: shape (n_row,)."""
        from sklearn.utils.validation import validate_data  # noqa: PLC0415

        check_is_fitted(self)
        return self.predict_unchecked(validate_data(self, X, dtype=np.float64, reset=False))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the variance that the prediction explains."""
        from sklearn.metrics import r2_score  # noqa: PLC0415

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def predict_unchecked(self, X: FloatArray) -> FloatArray:
        """Return the prediction of a matrix known to have the right columns, without the time of checks."""
        booster: NumpyBooster | None = self.__dict__.get("_booster")
        residuals = (
            booster.predict(X)
            if booster and len(X) <= MAX_NUMPY_ROW
            else [booster.predict(X) for booster in self.boosters_]
        )
        return np.asarray(self.median_ + sum(residuals) / len(residuals), dtype=np.float64)

    def build_cache(self) -> Self:
        """Build the NumPy trees that predict few rows faster, and return the regressor; deep trees have none."""
        check_is_fitted(self)
        if self.max_depth <= MAX_NUMPY_DEPTH:
            self._booster = NumpyBooster.from_boosters(self.boosters_)
        return self

    @cached_property
    def boosters_(self) -> list[LibraryBooster]:
        """Members as boosters of XGBoost's library."""
        return [LibraryBooster(member, self.n_jobs) for member in self.members_]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without caches."""
        return {name: value for name, value in vars(self).items() if name not in _CACHES}

    def _set_members(self, boosters: list[Booster]) -> None:
        self.__dict__.pop("_booster", None)
        self.members_ = [bytes(booster.save_raw("ubj")) for booster in boosters]
        self.boosters_ = [LibraryBooster(member, self.n_jobs) for member in self.members_]

    def _fit_members(self, X: FloatArray, y: FloatArray, weight: FloatArray | None) -> list[Booster]:
        from xgboost import XGBRegressor  # noqa: PLC0415

        settings = self.get_params() | {"tree_method": "hist"}
        n_member, seed = settings.pop("n_member"), settings.pop("random_state")
        members = [XGBRegressor(**settings, random_state=seed + i) for i in range(n_member)]
        return [member.fit(X, y, sample_weight=weight).get_booster() for member in members]


_FIELDS: Final = ("left_children", "right_children", "split_indices", "split_conditions")
"""Fields of a tree in XGBoost's JSON; the last holds the thresholds of splits and the values of leaves."""

_NO_CHILD: Final = -1


@dataclass(frozen=True, slots=True)
class NumpyBooster:
    """Trees of boosters of one output, padded to one depth, nodes level by level from the left.

    - `column`, `threshold`: shape ((2 ** depth - 1) * n_tree,). Of each node of each tree, node by node; rows go left
      whose column is below the threshold.
    - `value`: shape (2 ** depth * n_tree,). Of the leaves.
    - `base_score`: shape (n_booster,). Of each booster; all have the same number of trees.
    """

    column: IndexArray
    threshold: SingleArray
    value: SingleArray
    base_score: SingleArray
    depth: int
    n_tree: int

    @classmethod
    def from_boosters(cls, boosters: Sequence[LibraryBooster]) -> Self:
        """Return the trees of boosters whose columns are numeric and never missing."""
        models = [booster.to_json()["learner"] for booster in boosters]
        trees = [tree for model in models for tree in model["gradient_booster"]["model"]["trees"]]
        left, right, split, number = (_padded(trees, name) for name in _FIELDS)
        node, columns, thresholds = np.zeros((len(trees), 1), dtype=np.intp), [], []
        while True:
            at = np.arange(len(trees))[:, None], node
            is_leaf = left[at] == _NO_CHILD
            if is_leaf.all():
                break
            columns.append(np.where(is_leaf, 0, split[at]))
            thresholds.append(np.where(is_leaf, np.inf, number[at]))
            below = [np.where(is_leaf, node, child[at]) for child in (left, right)]
            node = np.stack(below, axis=2).reshape(len(trees), -1).astype(np.intp)
        none = np.empty(0)
        base_score = [float(model["learner_model_param"]["base_score"].strip("[]")) for model in models]
        return cls(
            column=np.concatenate([none, *(part.T.ravel() for part in columns)]).astype(np.intp),
            threshold=np.concatenate([none, *(part.T.ravel() for part in thresholds)]).astype(np.float32),
            value=number[at].T.ravel().astype(np.float32),
            base_score=np.array(base_score, dtype=np.float32),
            depth=len(columns),
            n_tree=len(trees),
        )

    def predict(self, X: FloatArray) -> SingleArray:
        """Return the library's predictions, bit for bit: shape (n_booster, n_row)."""
        x, tree = X.astype(np.float32).ravel(), np.arange(self.n_tree)
        row = np.arange(len(X))[:, None] * X.shape[1]
        index = np.zeros((len(X), self.n_tree), dtype=np.intp)
        for level in range(self.depth):
            node = (index + (2**level - 1)) * self.n_tree + tree
            index = 2 * index + ~(x.take(self.column.take(node) + row) < self.threshold.take(node))
        values = self.value.take(index * self.n_tree + tree).reshape(len(X), len(self.base_score), -1)
        values[:, :, 0] += self.base_score
        return np.asarray(values.cumsum(axis=2)[:, :, -1].T)  # summed in order, as the library does


def _padded(trees: Sequence[Mapping[str, Any]], name: str) -> npt.NDArray[Any]:
    width = max(len(tree[name]) for tree in trees)
    return np.array([tree[name] + [_NO_CHILD] * (width - len(tree[name])) for tree in trees])


_QUANTILES: Final = tuple(sorted(set(QUANTILE.values())))

QUANTILE_INDEX: Final = FEATURE_NAMES.index("workload.quantile")
IS_MEAN_INDEX: Final = FEATURE_NAMES.index("workload.is_mean")


def at_quantile(features: FloatArray, quantile: float) -> FloatArray:
    """Return the learner's columns, shape (n, n_feature), with another quantile; means stay means."""
    changed = features.copy()
    changed[features[:, IS_MEAN_INDEX] <= 0, QUANTILE_INDEX] = quantile
    return changed


@dataclass(frozen=True, slots=True)
class EvaluatedRows:
    """Rows that the trees evaluate: the queries, then their lower quantiles, then their means.

    `lower` holds the queries of each block of lower quantiles, `means` those of the block of means.
    """

    features: FloatArray
    lower: tuple[npt.NDArray[np.intp], ...]
    means: npt.NDArray[np.intp]

    @classmethod
    def from_features(cls, features: FloatArray, *, with_means: bool) -> Self:
        """Return the rows of queries, shape (n_query, n_feature), with their means or without."""
        quantile = features[:, QUANTILE_INDEX]
        lower = [(q, rows) for q in _QUANTILES if len(rows := np.flatnonzero(quantile > q))]
        means = np.flatnonzero((features[:, IS_MEAN_INDEX] < 0.5) & with_means)
        as_means = features[means]
        as_means[:, [IS_MEAN_INDEX, QUANTILE_INDEX]] = 1.0, 0.5
        parts = [features, *(at_quantile(features[rows], q) for q, rows in lower), as_means]
        return cls(np.concatenate(parts), tuple(rows for _, rows in lower), means)

    def repeat(self, values: FloatArray) -> FloatArray:
        """Return the values of queries, shape (n_query,), for each evaluated row."""
        return np.concatenate([values, *(values[rows] for rows in self.lower), values[self.means]])


def rearrange(log_correction: FloatArray, rows: EvaluatedRows, sign: int) -> FloatArray:
    """Return the queries' log corrections, no less for a quantile than for a lower one.

    Absolute loss refits leaves after the trees have grown, which breaks monotone constraints, so the correction of a
    quantile is the greatest of those up to it. The estimate rises with the quantile by itself.

    References
    ----------
    V. Chernozhukov, I. Fernandez-Val and A. Galichon, "Quantile and Probability Curves Without Crossing",
    Econometrica 2010.
    """
    signed = sign * log_correction
    start = len(signed) - sum(map(len, rows.lower)) - len(rows.means)  # the number of queries
    greatest = signed[:start]
    for queries in rows.lower:
        greatest[queries] = np.maximum(greatest[queries], signed[start : start + len(queries)])
        start += len(queries)
    return sign * greatest


NEIGHBOURHOOD: Final = ("accelerator", "engine", "load")
"""Term of `TERMS` whose lineages support a correction."""

HALF_LINEAGE: Final = 3.0
"""Lineages at which the trees have half of their weight."""

_NEIGHBOURHOOD_INDEX: Final = tuple(TERMS).index(NEIGHBOURHOOD)
_HAS_KERNELS: Final = np.isin(ENGINES, MEASURED_ENGINES)


@dataclass(frozen=True, slots=True)
class SupportGate:
    """Weight of the trees' log correction: ``n / (n + 3)`` with n training lineages of `NEIGHBOURHOOD`.

    It applies to engines with kernel tables: on a stack that nobody measured their estimate is better than what trees
    learn from other stacks. The weight of other engines is 1.

    `keys`: shape (n_key,): hashes of the measured neighbourhoods, sorted. `n_lineage`: shape (n_key,).
    """

    keys: HashArray
    n_lineage: FloatArray

    @classmethod
    def fit(cls, rows: GroupKeys, groups: pd.Series) -> Self:
        """Return the gate of training rows and their lineages."""
        key = rows.keys[:, _NEIGHBOURHOOD_INDEX]
        table = pd.DataFrame({"key": key, "group": groups.to_numpy()}).drop_duplicates()
        keys, n_lineage = np.unique(table["key"].to_numpy(), return_counts=True)
        return cls(keys, n_lineage.astype(float))

    def weight(self, queries: GroupKeys, engine: FloatArray) -> FloatArray:
        """Return the weight of the trees for each query, given its code of `ENGINES` too: shape (n_query,)."""
        keys = queries.keys[:, _NEIGHBOURHOOD_INDEX]
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        n = np.where(self.keys[place] == keys, self.n_lineage[place], 0.0)
        return np.where(_HAS_KERNELS[engine.astype(np.intp)], n / (n + HALF_LINEAGE), 1.0)
