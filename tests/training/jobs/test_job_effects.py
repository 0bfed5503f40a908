import numpy as np
import pytest

from roofcast.training.jobs.job_effects import (
    SLOPES,
    SMOOTH,
    TERMS,
    JobEffects,
    JobPoints,
    JobSpace,
    KeyArray,
    select_runs,
)

SD = np.full(len(TERMS) + len(SLOPES) + len(SMOOTH) + 1, 0.3)
SPACE = JobSpace(n_part=1, unit=np.zeros(2))


def keys_of(*groups: int) -> KeyArray:
    """Return keys of runs that share all groups if their number is equal, and none otherwise."""
    return np.repeat(np.array(groups, dtype=np.uint64)[:, None] + 1, len(TERMS), axis=1)


def points(*groups: int) -> JobPoints:
    """Return runs of groups without a share of any part."""
    return SPACE.points(keys_of(*groups), np.zeros((len(groups), 2)))


def condition(runs: JobPoints, error: list[float]) -> JobEffects:
    effects = JobEffects()
    effects.sd_ = SD
    return effects.with_points(runs, np.array(error))


def effects() -> JobEffects:
    return condition(points(0, 0, 1), [1.0, 1.0, -1.0])


def test_a_run_of_unknown_groups_has_the_prior() -> None:
    mean, sd = effects().predict(points(7))
    assert mean[0] == 0.0
    assert sd[0] == pytest.approx(np.sqrt((SD**2).sum() - (SD[: len(SLOPES)] ** 2).sum()))


def test_measured_groups_shift_the_mean_and_shrink_the_spread() -> None:
    mean, sd = effects().predict(points(0, 1, 7))
    assert 0.8 < mean[0] < 1.0
    assert -mean[1] < mean[0]
    assert SD[-1] <= sd[0] < sd[1] < sd[2]


def test_runs_that_are_appended_equal_runs_that_were_known() -> None:
    appended = condition(points(0, 1), [1.0, -0.1]).condition_on(points(0), np.array([1.0]))
    joint, queries = condition(points(0, 1, 0), [1.0, -0.1, 1.0]), points(0, 1)
    np.testing.assert_allclose(appended.predict(queries), joint.predict(queries))


def test_runs_are_thinned_by_configuration() -> None:
    assert select_runs(keys_of(0, 0, 0, 1, 2), limit=3).tolist() == [0, 3, 4]


def test_the_deviation_of_effects_follows_the_errors() -> None:
    runs = points(*np.repeat(np.arange(40), 3).tolist())
    effect = np.repeat(np.random.default_rng(0).normal(size=40), 3)
    sd = JobEffects().fit(runs, effect).sd_
    assert sd[-1] < 0.1
    assert (sd[:-1] ** 2).sum() == pytest.approx(1.0, rel=0.4)


def test_a_part_that_is_slow_on_measured_stacks_is_slow_on_others() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    known = condition(SPACE.points(keys_of(0, 0, 1, 1), x), [0.0, -1.0, 0.0, -1.0])
    mean, _ = known.predict(SPACE.points(keys_of(7, 7), x[:2]))
    assert mean[0] == pytest.approx(0.0)
    assert mean[1] < -0.1


def test_like_jobs_of_a_stack_have_like_errors() -> None:
    space = JobSpace.fit(["share.compute_s", "log.n_token"], np.array([[0.5, 0.0], [0.5, 2.0]]), ["compute_s"])
    assert space.n_part == 1
    keys, x = keys_of(0, 0), np.array([[0.0, 0.0], [0.0, 8.0]])
    keys[:, -1] = [1, 2]
    mean, _ = condition(space.points(keys, x), [1.0, -1.0]).predict(space.points(keys[[0, 0]], x))
    assert mean[0] > mean[1]


def test_a_run_of_less_weight_moves_the_mean_less() -> None:
    whole, half = (
        effects().with_points(points(0), np.ones(1), weight).predict(points(0))[0]
        for weight in (np.ones(1), np.full(1, 0.5))
    )
    assert 0.0 < half[0] < whole[0]


def test_a_stack_is_an_owner_with_its_framework() -> None:
    known, other = np.arange(2 * len(TERMS), dtype=np.uint64).reshape(2, 1, -1)
    stranger = known.copy()
    stranger[0, list(TERMS).index(("owner", "framework"))] = 99
    process = condition(SPACE.points(known, np.zeros((1, 2))), [0.0])
    assert process.knows_stack(np.vstack([known, other, stranger])).tolist() == [True, False, False]
