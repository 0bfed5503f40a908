"""Check of the trees of a bundle before XGBoost reads them, which follows indices that are out of range."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError
from roofcast.training.learner.boosted_trees import MAX_NUMPY_DEPTH, NumpyBooster, ResidualRegressor
from roofcast.training.lifecycle.bundles.bundle_file import Classes
from roofcast.training.lifecycle.bundles.bundle_io import Bundle
from roofcast.training.lifecycle.bundles.ubjson import parse_ubjson

NO_CHILD: Final = -1
NO_PARENT: Final = 2**31 - 1

NODE_FIELDS: Final = (
    "base_weights", "default_left", "left_children", "loss_changes", "parents", "right_children", "split_conditions",
    "split_indices", "split_type", "sum_hessian",
)  # fmt: skip
EMPTY_FIELDS: Final = ("categories", "categories_nodes", "categories_segments", "categories_sizes")

MODEL_PARAMETERS: Final = {"num_class": "0", "num_target": "1"}
TREE_PARAMETERS: Final = {"num_deleted": "0", "size_leaf_vector": "1"}


def check_trees(bundle: Bundle, name: str) -> None:
    """Check the trees of each regressor, and that its stored tables are those of its trees.

    Raises `InputError` if a child or a column is out of range, nodes form no tree, a threshold or leaf is not finite,
    a tree is deeper than its regressor's `max_depth`, or a stored table differs.
    """
    for path, regressor in _find_regressors(bundle, "", bundle.classes):
        try:
            settings = (regressor.objective, regressor.max_depth, bundle.n_feature(path))
            n_tree = [check_member(member, *settings) for member in regressor.members_]
            _require(len(set(n_tree)) == 1, "members differ in their number of trees")
            _check_tables(regressor)
        except Exception as error:  # a parser of a damaged file raises many kinds
            problem = f"{name} cannot be used: the trees of {path} are damaged ({error}); retrain"
            raise InputError("bundle", problem) from error


def _find_regressors(value: Any, path: str, classes: Classes) -> Iterator[tuple[str, ResidualRegressor]]:
    if isinstance(value, ResidualRegressor):
        yield path, value
        return
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    elif type(value) in classes:
        parts = ((name, getattr(value, name, None)) for name in classes[type(value)])
    for name, part in parts:
        yield from _find_regressors(part, f"{path}.{name}".lstrip("."), classes)


def _require(condition: object, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def check_member(member: bytes, objective: str, max_depth: int, n_feature: int) -> int:
    """Check a booster of one output, and return its number of trees.

    Raises `ValueError` if it differs from the objective, depth or number of columns, or a tree is damaged.
    """
    learner = parse_ubjson(member)["learner"]
    booster = learner["gradient_booster"]
    model = booster["model"]
    trees, parameters = model["trees"], learner["learner_model_param"]
    _require(booster["name"] == "gbtree", "the booster is not gbtree")
    _require(learner["objective"]["name"] == objective, "the objective is not that of the regressor")
    expected = MODEL_PARAMETERS | {"num_feature": str(n_feature)}
    _require(expected.items() <= parameters.items(), f"the booster must have {expected}")
    _require(np.isfinite(float(parameters["base_score"].strip("[]"))), "the base score is not finite")
    _require(len(trees) == int(model["gbtree_model_param"]["num_trees"]) > 0, "the number of trees is another")
    _require(not any(model["tree_info"]), "a tree is of another output")
    _require([*model["iteration_indptr"]] == [*range(len(trees) + 1)], "a round has not one tree")
    _require(not any(map(len, model.get("cats", {}).values())), "a column is categorical")
    for index, tree in enumerate(trees):
        try:
            _check_tree(tree, max_depth, n_feature)
        except ValueError as error:
            raise ValueError(f"tree {index}: {error}") from error
    return len(trees)


def _check_tree(tree: Mapping[str, Any], max_depth: int, n_feature: int) -> None:
    node = {name: np.asarray(tree[name]) for name in NODE_FIELDS}
    n_node = int(tree["tree_param"]["num_nodes"])
    expected = TREE_PARAMETERS | {"num_feature": str(n_feature)}
    _require(expected.items() <= tree["tree_param"].items(), f"it must have {expected}")
    _require(n_node > 0 and {len(part) for part in node.values()} == {n_node}, "its arrays differ in length")
    _require(not any(len(tree[name]) for name in EMPTY_FIELDS), "it has categories")
    _require(not node["split_type"].any(), "it has categorical splits")
    _require(np.isfinite(node["split_conditions"]).all(), "a threshold or leaf is not finite")
    left, right = node["left_children"], node["right_children"]
    inner = np.flatnonzero(left != NO_CHILD)
    _require(np.array_equal(inner, np.flatnonzero(right != NO_CHILD)), "a node has one child")
    column = node["split_indices"][inner]
    _require(((column >= 0) & (column < n_feature)).all(), "a split column is out of range")
    children, parents = np.concatenate([left[inner], right[inner]]), np.tile(inner, 2)
    _require(np.array_equal(np.sort(children), np.arange(1, n_node)), "its children are out of range or not unique")
    _require((children > parents).all(), "a child comes before its parent")
    _require(np.array_equal(node["parents"][children], parents), "its parents are not those of its children")
    _require(node["parents"][0] == NO_PARENT, "its root has a parent")
    _require(not max_depth or _depth(left, right, max_depth) <= max_depth, f"it is deeper than {max_depth}")


def _depth(left: npt.NDArray[Any], right: npt.NDArray[Any], max_depth: int) -> int:
    level, depth = np.zeros(1, dtype=np.intp), 0
    while depth <= max_depth:
        inner = level[left[level] != NO_CHILD]
        if not len(inner):
            break
        level, depth = np.concatenate([left[inner], right[inner]]), depth + 1
    return depth


def _check_tables(regressor: ResidualRegressor) -> None:
    stored: NumpyBooster | None = vars(regressor).get("_booster")
    if stored is None:
        return
    _require(0 < regressor.max_depth <= MAX_NUMPY_DEPTH, "such deep trees have no tables")
    built = NumpyBooster.from_boosters(regressor.boosters_)
    pairs: Sequence[tuple[Any, Any]] = [(getattr(stored, f.name), getattr(built, f.name)) for f in fields(built)]
    _require(all(_is_same(one, other) for one, other in pairs), "the stored tables are not those of the trees")


def _is_same(one: Any, other: Any) -> bool:
    return np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype
