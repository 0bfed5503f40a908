from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from roofcast.features.descriptors.config_hash import config_hashes, joint_hash
from roofcast.training.learner.errors.group_keys import (
    CONFIGURATION,
    NOISE_SD,
    STACK_TERM_INDEX,
    STACK_TERMS,
    TARGET_STACK,
    TERMS,
    WORKLOAD_GRID,
    WORKLOAD_SD,
    FloatArray,
    GroupKeys,
    build_group_keys,
    select_informative_rows,
    select_training_points,
)
from roofcast.training.learner.errors.lookup_tables import LENGTH_SCALE
from roofcast.training.learner.errors.random_effects import RandomEffects
from tests.builders import a_question, describe_questions
from tests.training.builders import places_of, random_places

PRIOR_SD = np.array([*TERMS.values(), *STACK_TERMS.values(), WORKLOAD_SD, NOISE_SD])


def prior() -> RandomEffects:
    """Return random effects with the prior medians."""
    return RandomEffects(n_iteration=0)


def distinct_points(n: int, **settings: Any) -> GroupKeys:
    """Return keys of distinct configurations."""
    drawn = random_places(4 * n, **settings)
    _, first = np.unique(drawn.keys[:, -1], return_index=True)
    assert len(first) >= n
    return drawn.take(np.sort(first)[:n])


def errors_of(n: int, seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).normal(0, 0.8, n)


def plain_covariance(X: GroupKeys, other: GroupKeys, sd: FloatArray) -> FloatArray:
    """Return the covariance of two sets of errors without their noise, pair by pair."""
    table = np.zeros((len(X.keys), len(other.keys)))
    for i, j in np.ndindex(table.shape):
        of_stack = (
            dict(zip(STACK_TERM_INDEX, sd[len(TERMS) : -2], strict=True)) if X.stack[i] == other.stack[j] else {}
        )
        for place, size in enumerate(sd[: len(TERMS)]):
            if X.keys[i, place] == other.keys[j, place]:
                table[i, j] += size**2 + of_stack.get(place, 0.0) ** 2
        if X.keys[i, -1] == other.keys[j, -1]:
            distance = np.linalg.norm(X.workload[i] - other.workload[j]) / LENGTH_SCALE
            table[i, j] += sd[-2] ** 2 * np.exp(-(distance**2) / 2)
    return table


def plain_process(X: GroupKeys, y: FloatArray, asked: GroupKeys, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of errors, without their own noise, by the textbook's formula and an inverse."""
    inverse = np.linalg.inv(plain_covariance(X, X, sd) + sd[-1] ** 2 * np.eye(len(y)))
    cross = plain_covariance(asked, X, sd)
    return cross @ inverse @ y, plain_covariance(asked, asked, sd) - cross @ inverse @ cross.T


def assert_process(
    effects: RandomEffects, X: GroupKeys, y: FloatArray, asked: GroupKeys, sd: FloatArray | None = None
) -> None:
    """Compare with the process of the textbook that has these errors, and the fitted deviations or others."""
    wanted_mean, wanted = plain_process(X, y, asked, effects.sd_ if sd is None else sd)
    np.testing.assert_allclose(effects.predict(asked)[0], wanted_mean, rtol=1e-8, atol=1e-10)
    if sd is None:
        np.testing.assert_allclose(effects.predict(asked)[1] ** 2, np.diag(wanted) + effects.sd_[-1] ** 2, rtol=1e-8)
    mean, covariance = effects.predict_joint(asked)
    np.testing.assert_allclose(mean, wanted_mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(covariance, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n_iteration", [0, 5])
def test_it_is_the_process_of_the_textbook(n_iteration: int) -> None:
    X, y = distinct_points(20), errors_of(20)
    assert_process(RandomEffects(n_iteration).fit(X, y), X, y, random_places(15, seed=9))


@pytest.mark.parametrize(
    ("term", "size"), [(("accelerator", "engine", "precision"), 1.0), (("model", "engine", "accelerator"), 0.9)]
)
def test_known_deviations_are_recovered(term: tuple[str, ...], size: float) -> None:
    """One effect and noise of 0.2: the effect comes out greatest, both near their truth."""
    X = distinct_points(400, n_model=30, n_other=9, seed=3)
    rng = np.random.default_rng(4)
    _, level = np.unique(X.keys[:, list(TERMS).index(term)], return_inverse=True)
    effect = rng.normal(0, 1, level.max() + 1)
    effect *= size / effect.std()  # few levels scatter; it is theirs that can be found
    found = RandomEffects().fit(X, effect[level] + rng.normal(0, 0.2, len(level))).sd_
    assert list(TERMS)[int(found[:-2].argmax())] == term
    assert found[list(TERMS).index(term)] == pytest.approx(size, rel=0.4)
    spare = np.delete(found, list(TERMS).index(term))
    assert np.sqrt((spare[spare < 0.2] ** 2).sum()) < 0.6 * size
    assert found[-1] < 0.35


def test_pure_noise_is_fitted_as_noise() -> None:
    X = distinct_points(100, n_model=20, n_other=6)
    thrice = X.take(np.repeat(np.arange(100), 3))
    found = RandomEffects().fit(thrice, np.random.default_rng(0).normal(0, 1.0, 300)).sd_
    assert found[-1] == pytest.approx(1.0, rel=0.1)
    assert found[:-1].max() < 0.3


def test_the_left_out_deviation_is_that_of_the_process_without_the_group() -> None:
    X, y = distinct_points(24), errors_of(24)
    groups = np.arange(24) % 5
    fitted = RandomEffects(3).fit(X, y)
    asked, of = random_places(30, seed=7), np.arange(30) % 6
    sd = fitted.predict_sd_left_out(asked, of, groups)
    for group in range(6):
        inside, rest = of == group, groups != group
        _, wanted = plain_process(X.take(rest), y[rest], asked.take(inside), fitted.sd_)
        np.testing.assert_allclose(sd[inside] ** 2, np.diag(wanted) + fitted.sd_[-1] ** 2, rtol=1e-7)


def test_the_left_out_mean_is_that_of_the_process_without_the_fold_given_the_errors_of_its_model() -> None:
    X, errors, folds = distinct_points(24), errors_of(4 * 24).reshape(4, 24), np.arange(24) % 4
    X = replace(X, stack=np.ones(24, dtype=np.uint64))
    fitted = RandomEffects(3).fit(X, errors[0])
    errors[:, ::5] *= 6
    asked, of = random_places(30, seed=7), np.arange(30) % 4
    mean = fitted.predict_mean_left_out(asked, of, folds, errors)
    for fold in range(4):
        inside, rest = of == fold, folds != fold
        wanted, _ = plain_process(
            X.take(rest),
            np.clip(errors[fold, rest], -RandomEffects.clip, RandomEffects.clip),
            asked.take(inside),
            fitted.sd_,
        )
        np.testing.assert_allclose(mean[inside], wanted, rtol=1e-7, atol=1e-10)


def test_other_points_replace_those_of_the_fit() -> None:
    X, y, asked = distinct_points(20), errors_of(20), random_places(15, seed=9)
    fitted = RandomEffects(3).fit(distinct_points(12, seed=7), errors_of(12))
    assert_process(fitted.with_points(X, y[::-1]), X, y[::-1], asked, fitted.sd_)


def test_a_process_without_points_is_the_prior() -> None:
    fitted, asked = prior().fit(distinct_points(12), errors_of(12)), random_places(15, seed=9)
    empty = fitted.with_points(asked.take(np.empty(0, dtype=np.intp)), np.empty(0))
    mean, sd = empty.predict(asked)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(sd, np.sqrt((PRIOR_SD**2).sum()))
    calibrated = empty.condition_on(asked, errors_of(15)).predict(asked)
    assert (calibrated[1] < sd).all()


@pytest.mark.parametrize("differs", ["accelerator", "stack"])
def test_nothing_carries_over_to_another_accelerator_nor_between_stacks_apart(differs: str) -> None:
    """The workload is the same, and so is everything else; some of it carries over to another engine."""
    one = dict.fromkeys((*CONFIGURATION, "kind"), np.ones(2))
    stack = np.array([5, 6 if differs == "stack" else 5])
    keys = one if differs == "stack" else one | {differs: np.array([1.0, 2.0])}
    X = places_of(keys, np.zeros((2, 3)), stack).within_stacks()
    fitted = prior().fit(X.take(np.array([0])), np.array([1.0]))
    assert fitted.predict(X.take(np.array([1])))[0] == 0.0
    assert fitted.predict(X.take(np.array([0])))[0] > 0.3
    other = places_of(one | {"engine": np.array([1.0, 2.0])}, np.zeros((2, 3)), np.full(2, 5)).within_stacks()
    assert 0.0 < fitted.predict(other.take(np.array([1])))[0] < fitted.predict(X.take(np.array([0])))[0]


@pytest.mark.parametrize("change", [{"date": "2023-11-01"}, {"statistic": "p50"}, {"concurrency": 64}])
def test_a_measurement_says_less_of_another_date_statistic_and_load(change: dict[str, Any]) -> None:
    X = build_group_keys(describe_questions(a_question(date="2025-11-01"), a_question(date="2025-11-01") | change))
    mean, sd = prior().fit(X.take(np.array([0])), np.array([1.0])).predict(X)
    assert mean[1] < mean[0]
    assert sd[1] > sd[0]


def test_conditioning_on_what_is_likely_is_the_process_with_the_rows_added() -> None:
    X, y, asked = distinct_points(20), 0.3 * errors_of(20), random_places(10, seed=5)
    some, rest = np.arange(20) < 14, np.arange(20) >= 14
    before = prior().fit(X.take(some), y[some])
    mean, sd = before.predict(asked)
    later = before.condition_on(X.take(rest), y[rest])
    assert_process(later, X, y, asked)
    assert_process(later, X, y, replace(asked, stack=np.full_like(asked.stack, 7)))
    assert later.get_params() == before.get_params()
    again = before.predict(asked)
    np.testing.assert_array_equal(again[0], mean)
    np.testing.assert_array_equal(again[1], sd)


def test_a_group_left_out_is_predicted_from_the_points_of_the_others() -> None:
    fitted = prior().fit(distinct_points(20), errors_of(20))
    points, y = random_places(12, seed=5), 0.3 * errors_of(12, seed=6)
    groups, is_point = np.arange(12) // 3, np.arange(12) % 3 > 0
    mean, sd = fitted.predict_left_out(points, y, groups, is_point)
    for group in range(4):
        own, others = groups == group, (groups != group) & is_point
        wanted = fitted.condition_on(points.take(others), y[others]).predict(points.take(own))
        np.testing.assert_allclose(mean[own], wanted[0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(sd[own], wanted[1], rtol=1e-8)
    alone = fitted.predict_left_out(points, y, np.zeros(12), is_point)
    np.testing.assert_allclose(alone[0], fitted.predict(points)[0], rtol=1e-8, atol=1e-10)


def test_calibration_points_never_widen_the_posterior() -> None:
    asked = random_places(30, seed=8)
    now = prior().fit(distinct_points(20), errors_of(20))
    sure = now.predict(asked)[1]
    for given in range(5):
        now = now.condition_on(asked.take(np.array([given])), np.zeros(1))
        surer = now.predict(asked)[1]
        assert (surer <= sure + 1e-9).all()
        assert surer[given] < 0.97 * sure[given]
        sure = surer
    assert (sure >= now.sd_[-1]).all(), "a new measurement has its noise, whatever is known"


def test_a_query_that_shares_nothing_has_the_prior() -> None:
    fitted = RandomEffects(3).fit(distinct_points(20), errors_of(20))
    mean, sd = fitted.predict(random_places(6, first=1000))
    general = fitted.sd_[0] ** 2
    assert np.abs(mean).max() < 3 * fitted.sd_[0], "all queries share the general effect"
    total = (fitted.sd_**2).sum()
    assert ((sd**2 <= total) & (sd**2 >= total - general - fitted.sd_[len(TERMS)] ** 2)).all()


@pytest.mark.parametrize("rows", [range(0), [7], range(0, 5000, 311)], ids=["none", "one", "some"])
def test_predictions_do_not_depend_on_other_queries(rows: Sequence[int]) -> None:
    asked, at = random_places(5000, seed=6, n_model=40, n_other=4), np.array(rows, dtype=int)
    fitted = prior().fit(distinct_points(20), errors_of(20))
    for every, few in zip(fitted.predict(asked), fitted.predict(asked.take(at)), strict=True):
        np.testing.assert_allclose(few, every[at], atol=1e-12)


def test_a_configuration_correlates_most_with_itself() -> None:
    X = distinct_points(30)
    shared = prior().fit(X, errors_of(30)).correlation(X, X)
    assert shared.argmax(axis=1).tolist() == list(range(30))
    np.testing.assert_allclose(np.diag(shared), 1.0)
    assert (shared >= 0).all()


def test_training_points_are_the_least_the_middle_two_and_the_greatest_load() -> None:
    keys = dict.fromkeys(CONFIGURATION, np.r_[np.ones(8), 2, 2]) | {"kind": np.ones(10)}
    load = np.array([3.0, 1, 7, 2, 6, 4, 5, 8, 9, 8])
    rows = select_training_points(places_of(keys, np.column_stack([np.zeros((10, 2)), load])))
    assert sorted(load[rows[:-2]]) == [1, 4, 5, 8]
    assert rows[-2:].tolist() == [8, 9]


def test_beyond_the_limit_the_points_are_those_that_inform_most() -> None:
    X = random_places(400, n_model=40, n_other=6)
    X = replace(X, stack=np.maximum(X.stack, np.uint64(5)))
    every, some = select_training_points(X), select_training_points(X, 60)
    assert len(every) > 300
    assert len(some) == 60
    assert set(some.tolist()) <= set(every.tolist())
    assert (np.diff(some) > 0).all()
    for i, term in enumerate(TERMS):
        n_level = len(np.unique(X.keys[every, i]))
        assert len(np.unique(X.keys[some, i])) >= min(n_level, 40), term

    def explained(rows: Any) -> float:
        fitted = prior().fit(X.take(rows), np.zeros(len(rows)))
        return float((fitted.predict(X.on_target_stack())[1] ** 2).mean())

    rng = np.random.default_rng(0)
    chance = [explained(rng.choice(every, 60, replace=False)) for _ in range(10)]
    assert explained(some) < min(chance)


def test_the_users_own_points_come_first() -> None:
    X = random_places(400, n_model=40, n_other=6)
    own = np.flatnonzero(X.stack == TARGET_STACK)
    assert set(select_informative_rows(X, len(own)).tolist()) == set(own.tolist())


def test_group_keys_come_from_descriptors() -> None:
    closed, opened = a_question(concurrency=16), a_question(concurrency=np.nan, request_rate=4)
    X = describe_questions(closed, opened, a_question(concurrency=np.nan, load="offline"))
    found = build_group_keys(X)
    told = np.log([[1000, 200, 16], [1000, 200, 4], [1000, 200, 1]])
    assert np.abs(found.workload[:, :3] - told).max() <= WORKLOAD_GRID / 2
    np.testing.assert_allclose(found.workload[:, 2], told[:, 2])  # powers of two are whole octaves
    keys = config_hashes(X)
    for i, term in enumerate(TERMS):
        np.testing.assert_array_equal(found.keys[:, i], joint_hash(keys, term))
    pair = found.take(np.array([0])).append(found.take(np.array([1])))
    np.testing.assert_array_equal(pair.keys, found.keys[:2])


def test_a_stack_without_a_name_is_the_target_stack() -> None:
    X = describe_questions(a_question(), a_question(), a_question(), a_question())
    found = build_group_keys(X, pd.Series(["ours", "", "theirs", "ours"])).stack
    assert found[1] == TARGET_STACK == build_group_keys(X).stack[0]
    assert found[0] == found[3]
    assert len({*found.tolist()}) == 3
    np.testing.assert_array_equal(build_group_keys(X, pd.Series(["ours"] * 4)).on_target_stack().stack, TARGET_STACK)


def test_few_rows_of_the_target_stack_outweigh_many_of_others() -> None:
    """Sixteen of four stacks say twice as slow, two of one's own twice as fast, all of one configuration."""
    error = np.r_[np.full(16, 0.7), np.full(2, -0.7)]
    of_stack = np.r_[np.repeat([5, 6, 7, 8], 4), TARGET_STACK, TARGET_STACK]
    X = places_of(
        dict.fromkeys((*CONFIGURATION, "kind"), np.ones(18)), np.linspace(0, 3, 54).reshape(18, 3), of_stack
    )
    fitted = prior().fit(X, error)
    assert len(fitted.errors_) == 18
    mine = X.take(np.array([16]))
    assert fitted.predict(mine)[0] < -0.2
    assert fitted.predict(replace(mine, stack=np.array([9], dtype=np.uint64)))[0] > 0.1


def test_it_keeps_the_rules_of_scikit_learn() -> None:
    X, y = distinct_points(12), errors_of(12)
    settings = RandomEffects(4)
    kept = X.keys.copy(), X.workload.copy(), y.copy()
    assert settings.fit(X, y) is settings
    assert clone(settings).get_params() == settings.get_params() == {"n_iteration": 4}
    for now, before in zip((X.keys, X.workload, y), kept, strict=True):
        np.testing.assert_array_equal(now, before)
    np.testing.assert_array_equal(clone(settings).fit(X, y).sd_, settings.sd_)
    blank = RandomEffects()
    asks = (
        blank.predict,
        blank.predict_joint,
        lambda it: blank.correlation(it, it),
        lambda it: blank.condition_on(it, y),
    )
    for ask in asks:
        with pytest.raises(NotFittedError):
            ask(X)


def test_errors_are_winsorised() -> None:
    X, y = distinct_points(12), errors_of(12)
    wild, capped = y.copy(), y.copy()
    wild[3], capped[3] = 50.0, RandomEffects.clip
    for one, other in zip(prior().fit(X, wild).predict(X), prior().fit(X, capped).predict(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert wild[3] == 50.0
