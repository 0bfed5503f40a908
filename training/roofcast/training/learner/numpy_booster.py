"""Few rows through the trees of boosters at once: a call of the library takes longer than the trees do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from xgboost import Booster

FloatArray = npt.NDArray[np.float64]
SingleArray = npt.NDArray[np.float32]
IndexArray = npt.NDArray[np.intp]

_FIELDS: Final = ("left_children", "right_children", "split_indices", "split_conditions")
"""Of the library's JSON; the last holds the bounds, and in leaves the values."""

_END: Final = -1


@dataclass(frozen=True, slots=True)
class NumpyBooster:
    """NumpyBooster of boosters of one output, all filled up to one depth, nodes level by level from the left.

    Parameters
    ----------
    column, bound : shape ((2 ** depth - 1) * n_tree,)
        At each node of each tree, node by node, rows go left whose column is below the bound.
    value : shape (2 ** depth * n_tree,)
        Of the leaves.
    start : shape (n_booster,)
        What each booster adds its trees to, of which all have as many.
    depth, n_tree
        Of each tree, and how many there are in all.
    """

    column: IndexArray
    bound: SingleArray
    value: SingleArray
    start: SingleArray
    depth: int
    n_tree: int

    @classmethod
    def of(cls, boosters: Sequence[Booster]) -> Self:
        """Return the trees of boosters, of columns that are numbers and never missing."""
        models = [json.loads(booster.save_raw("json"))["learner"] for booster in boosters]
        trees = [tree for model in models for tree in model["gradient_booster"]["model"]["trees"]]
        left, right, split, number = (_padded(trees, name) for name in _FIELDS)
        node, columns, bounds = np.zeros((len(trees), 1), dtype=np.intp), [], []
        while True:
            at = np.arange(len(trees))[:, None], node
            is_leaf = left[at] == _END
            if is_leaf.all():
                break
            columns.append(np.where(is_leaf, 0, split[at]))
            bounds.append(np.where(is_leaf, np.inf, number[at]))
            below = [np.where(is_leaf, node, child[at]) for child in (left, right)]
            node = np.stack(below, axis=2).reshape(len(trees), -1).astype(np.intp)
        none = np.empty(0)
        start = [float(model["learner_model_param"]["base_score"].strip("[]")) for model in models]
        return cls(
            column=np.concatenate([none, *(part.T.ravel() for part in columns)]).astype(np.intp),
            bound=np.concatenate([none, *(part.T.ravel() for part in bounds)]).astype(np.float32),
            value=number[at].T.ravel().astype(np.float32),
            start=np.array(start, dtype=np.float32),
            depth=len(columns),
            n_tree=len(trees),
        )

    def predict(self, X: FloatArray) -> SingleArray:
        """Return what the library does, to the last bit: shape (n_booster, n_row)."""
        x, tree = X.astype(np.float32).ravel(), np.arange(self.n_tree)
        row = np.arange(len(X))[:, None] * X.shape[1]
        place = np.zeros((len(X), self.n_tree), dtype=np.intp)
        for level in range(self.depth):
            node = (place + (2**level - 1)) * self.n_tree + tree
            place = 2 * place + ~(x.take(self.column.take(node) + row) < self.bound.take(node))
        values = self.value.take(place * self.n_tree + tree).reshape(len(X), len(self.start), -1)
        values[:, :, 0] += self.start
        return np.asarray(values.cumsum(axis=2)[:, :, -1].T)  # one after the other, as the library adds


def _padded(trees: Sequence[Mapping[str, Any]], name: str) -> npt.NDArray[Any]:
    """Return one field of the nodes of all trees: shape (n_tree, n_node), filled up."""
    width = max(len(tree[name]) for tree in trees)
    return np.array([tree[name] + [_END] * (width - len(tree[name])) for tree in trees])
