from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from roofcast.data.errors import InputError
from roofcast.features.columns import FEATURE_NAMES
from roofcast.training.learner.boosted_trees import ResidualRegressor
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.bundles.tree_check import check_trees
from roofcast.training.lifecycle.bundles.ubjson import parse_ubjson
from tests.training.lifecycle.bundles.ubjson_writer import write_ubjson

Change = Callable[[Any], object]

N_TREE = 4


def a_regressor(**settings: Any) -> ResidualRegressor:
    X = np.random.default_rng(0).normal(size=(120, len(FEATURE_NAMES)))
    settings = {"n_estimators": N_TREE, "min_child_weight": 1.0, "max_depth": 2, "colsample_bytree": 1.0} | settings
    return ResidualRegressor(**settings).fit(X, X[:, 0] + X[:, 1])


def a_bundle(regressor: Any) -> ModelBundle:
    """Return a bundle that holds one regressor and nothing else."""
    predictor = RoofcastPredictor()
    predictor.regressors_ = {"tpot_s": regressor}
    return ModelBundle(predictor, "", "", (), {}, (), ())


def check(bundle: ModelBundle, problem: str = "") -> None:
    """Check a bundle, which has this problem, or none."""
    if not problem:
        check_trees(bundle, "f")
        return
    with pytest.raises(InputError, match=problem):
        check_trees(bundle, "f")


def change_member(regressor: ResidualRegressor, change: Change) -> ModelBundle:
    """Return a bundle in whose first member `change` has altered the learner."""
    model = parse_ubjson(regressor.members_[0])
    change(model["learner"])
    regressor.members_ = [write_ubjson(model), *regressor.members_[1:]]
    return a_bundle(regressor)


def booster(learner: Any) -> Any:
    return learner["gradient_booster"]["model"]


def set_node(field: str, node: int, value: float) -> Change:
    """Return a change of one node of the second tree."""

    def change(learner: Any) -> None:
        tree = booster(learner)["trees"][1]
        tree[field] = tree[field].copy()
        tree[field][node] = value

    return change


@pytest.mark.parametrize("settings", [{}, {"n_member": 2}, {"max_depth": 7}, {"max_depth": 0}])
def test_fitted_trees_are_sound(settings: dict[str, Any]) -> None:
    regressor = a_regressor(**settings)
    check(a_bundle(regressor))
    if settings.get("max_depth") != 0:
        check(a_bundle(regressor.build_cache()))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_node("left_children", 0, 10**6), "tree 1: its children are out of range or not unique"),
        (set_node("left_children", 0, -2), "tree 1: its children are out of range or not unique"),
        (set_node("left_children", 0, 0), "tree 1: its children are out of range or not unique"),
        (set_node("left_children", 0, 2), "tree 1: its children are out of range or not unique"),
        (set_node("left_children", 0, -1), "tree 1: a node has one child"),
        (set_node("split_indices", 0, len(FEATURE_NAMES)), "tree 1: a split column is out of range"),
        (set_node("split_indices", 0, -1), "tree 1: a split column is out of range"),
        (set_node("split_conditions", 0, np.nan), "tree 1: a threshold or leaf is not finite"),
        (set_node("split_conditions", -1, np.inf), "tree 1: a threshold or leaf is not finite"),
        (set_node("parents", 1, 10**6), "tree 1: its parents are not those of its children"),
        (set_node("parents", 0, 3), "tree 1: its root has a parent"),
        (set_node("split_type", 0, 1), "tree 1: it has categorical splits"),
    ],
)
def test_damaged_nodes_are_refused(change: Change, problem: str) -> None:
    message = rf"f cannot be used: the trees of .*tpot_s are damaged \({problem}.*retrain"
    check(change_member(a_regressor(), change), message)


def make_node_its_own_child(learner: Any) -> None:
    tree = booster(learner)["trees"][0]
    left, parents = tree["left_children"].copy(), tree["parents"].copy()
    left[0], left[1] = left[1], 1
    parents[left[0]], parents[1] = 0, 1
    tree["left_children"], tree["parents"] = left, parents


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (make_node_its_own_child, "tree 0: a child comes before its parent"),
        (lambda learner: booster(learner)["trees"][0].update(categories=np.ones(3, "i4")), "it has categories"),
        (lambda learner: booster(learner)["trees"][0].update(parents=np.zeros(3, "i4")), "arrays differ in length"),
        (lambda learner: booster(learner)["trees"][0].pop("parents"), "'parents'"),
        (lambda learner: booster(learner)["trees"][0]["tree_param"].update(num_nodes="99"), "differ in length"),
        (lambda learner: booster(learner)["trees"][0]["tree_param"].update(size_leaf_vector="9"), "it must have"),
        (lambda learner: booster(learner)["trees"].pop(), "the number of trees is another"),
        (lambda learner: booster(learner).update(tree_info=[0, 0, 0, 7]), "a tree is of another output"),
        (lambda learner: booster(learner).update(iteration_indptr=[0, 1, 2, 3, 99]), "a round has not one tree"),
        (lambda learner: booster(learner)["cats"].update(enc=[1]), "a column is categorical"),
        (lambda learner: learner["gradient_booster"].update(name="dart"), "the booster is not gbtree"),
        (lambda learner: learner["objective"].update(name="rank:ndcg"), "the objective is not that"),
        (lambda learner: learner["learner_model_param"].update(num_feature="9"), "the booster must have"),
        (lambda learner: learner["learner_model_param"].update(base_score="[nan]"), "the base score is not finite"),
    ],
)  # fmt: skip
def test_damaged_boosters_are_refused(change: Change, problem: str) -> None:
    check(change_member(a_regressor(), change), f"the trees of .*tpot_s are damaged .*{problem}.*; retrain")


@pytest.mark.parametrize(
    ("settings", "changes", "problem"),
    [
        *(({}, {"members_": members}, "are damaged") for members in ([b""], [b"{}"], ["text"], None, 3)),
        ({"max_depth": 3}, {"max_depth": 2}, "it is deeper than 2"),
        ({"n_member": 2}, {"members_": [a_regressor().members_[0], *a_regressor(n_estimators=N_TREE + 1).members_]},
         "members differ in their number of trees"),
    ],
)  # fmt: skip
def test_other_members_are_refused(settings: dict[str, Any], changes: dict[str, Any], problem: str) -> None:
    regressor = a_regressor(**settings)
    vars(regressor).update(changes)
    check(a_bundle(regressor), problem)


@pytest.mark.parametrize("name", [field.name for field in fields(a_regressor().build_cache()._booster)])
def test_tables_that_differ_from_the_trees_are_refused(name: str) -> None:
    regressor = a_regressor().build_cache()
    value = getattr(regressor._booster, name)
    for other in (value + 1, np.asarray(value, dtype=np.float16)):
        changes: dict[str, Any] = {name: other}
        regressor._booster = replace(regressor._booster, **changes)
        check(a_bundle(regressor), "the stored tables are not those of the trees")


def test_a_regressor_is_found_wherever_a_bundle_holds_it() -> None:
    damaged = change_member(a_regressor(), set_node("left_children", 0, 99)).predictor.regressors_["tpot_s"]
    predictor = RoofcastPredictor()
    distributions: Any = {"ttft_s": (1, [damaged])}
    predictor.error_distributions_ = distributions
    whole = replace(a_bundle(a_regressor()), predictor=predictor)
    check(whole, r"the trees of predictor\.error_distributions_\.ttft_s\.1\.0 are damaged")
