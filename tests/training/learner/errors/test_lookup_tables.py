import pickle
from dataclasses import replace

import numpy as np

from roofcast.training.learner.errors.group_keys import TERMS, FloatArray, GroupKeys, select_training_points
from roofcast.training.learner.errors.random_effects import RandomEffects
from tests.training.builders import places_of, random_places

NAMES = ("accelerator", "engine", "precision", "load", "split", "model", "kind")


def crowded(n: int = 60, seed: int = 3) -> tuple[GroupKeys, FloatArray]:
    """Return keys of few configurations with several workloads each, and their errors."""
    X = random_places(n, seed=seed, n_model=3, n_other=1)
    rows = select_training_points(X)
    return X.take(rows), np.random.default_rng(seed).normal(0, 0.8, n)[rows]


def fitted(n: int = 60) -> RandomEffects:
    return RandomEffects(n_iteration=0).fit(*crowded(n))


def asked_of(effects: RandomEffects) -> GroupKeys:
    """Return anchors, anchors at other workloads, and questions that share some of their keys or none."""
    rng = np.random.default_rng(5)
    shift = rng.normal(0, 1, (len(effects.errors_), 3))
    moved = replace(effects.training_points_, workload=effects.training_points_.workload + shift)
    strange = [random_places(40, seed=seed, n_model=9, n_other=3, first=first) for seed, first in ((1, 1), (2, 2))]
    return effects.training_points_.append(moved).append(strange[0]).append(strange[1])


def plain(effects: RandomEffects, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation by the formula, with the whole covariance."""
    cross = effects.covariance(X, effects.training_points_)
    noise = effects.sd_[-1] ** 2 * np.eye(len(effects.errors_))
    inverse = np.linalg.inv(effects.covariance(effects.training_points_, effects.training_points_) + noise)
    variance = (effects.sd_**2).sum() - np.einsum("ni,ij,nj->n", cross, inverse, cross)
    return cross @ inverse @ effects.errors_, np.sqrt(np.maximum(variance, effects.sd_[-1] ** 2))


def assert_formula(effects: RandomEffects, X: GroupKeys) -> None:
    for found, wanted in zip(effects.predict(X), plain(effects, X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_tables_say_what_the_formula_says() -> None:
    effects = fitted()
    counts = np.unique(effects.training_points_.keys[:, -1], return_counts=True)[1]
    assert counts.max() == 12, "four of each of three stacks"
    assert_formula(effects, asked_of(effects))


def test_tables_hold_every_query_about_the_target_stack() -> None:
    effects = fitted()
    X = asked_of(effects).on_target_stack()
    assert effects._tables.look_up(X.keys, X.workload)[2].all()
    assert_formula(effects, X)


def test_a_configuration_of_another_kind_is_solved_without_tables() -> None:
    """Only attention without padding differs: the last key is an anchor's, others are not."""
    one = dict.fromkeys(NAMES, np.ones(5))
    workload = np.random.default_rng(0).uniform(0, 4, (5, 3))
    effects = RandomEffects(n_iteration=0).fit(places_of(one, workload), np.arange(5) / 5)
    X = places_of(one | {"kind": np.full(5, 2.0)}, workload + 0.3)
    assert X.keys[0, -1] == effects.training_points_.keys[0, -1]
    assert not effects._tables.look_up(X.keys, X.workload)[2].any()
    assert_formula(effects, X)


def test_equal_keys_of_two_terms_are_distinct() -> None:
    keys = np.full((4, len(TERMS)), 7, dtype=np.uint64)
    keys[:, -1] = np.arange(4)
    keys[1, 1] = 9
    X = GroupKeys(keys, np.zeros((4, 3)), np.zeros(4, dtype=np.uint64))
    assert_formula(RandomEffects(n_iteration=0).fit(X, np.arange(4.0)), X)


def test_a_pickle_holds_no_tables() -> None:
    effects = fitted().build_cache()
    X = asked_of(effects)
    kept = pickle.dumps(effects)
    assert len(kept) < 4 * len(pickle.dumps((effects.training_points_, effects.errors_)))
    for found, wanted in zip(pickle.loads(kept).predict(X), effects.predict(X), strict=True):  # noqa: S301  (our own)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
