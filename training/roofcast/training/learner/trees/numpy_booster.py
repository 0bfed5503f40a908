"""NumPy re-implementation of XGBoost inference, faster than a call of the library for few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from roofcast.training.learner.trees.library_booster import LibraryBooster

FloatArray = npt.NDArray[np.float64]
SingleArray = npt.NDArray[np.float32]
IndexArray = npt.NDArray[np.intp]

_FIELDS: Final = ("left_children", "right_children", "split_indices", "split_conditions")
"""Fields of a tree in XGBoost's JSON; the last holds the thresholds of splits and the values of leaves."""

_NO_CHILD: Final = -1


@dataclass(frozen=True, slots=True)
class NumpyBooster:
    """Trees of boosters of one output, padded to one depth, nodes level by level from the left.

    Parameters
    ----------
    column, threshold : shape ((2 ** depth - 1) * n_tree,)
        Of each node of each tree, node by node; rows go left whose column is below the threshold.
    value : shape (2 ** depth * n_tree,)
        Of the leaves.
    base_score : shape (n_booster,)
        Of each booster; all have the same number of trees.
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
    """Return one field of the nodes of all trees, padded: shape (n_tree, n_node)."""
    width = max(len(tree[name]) for tree in trees)
    return np.array([tree[name] + [_NO_CHILD] * (width - len(tree[name])) for tree in trees])
