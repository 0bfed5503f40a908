import numpy as np
import pytest

from roofcast.features.queries import FloatArray
from roofcast.training.jobs.group_effects import (
    SLOPES,
    SMOOTH,
    TERMS,
    GroupEffects,
    JobSpace,
    KeyArray,
    condition_effects,
    fit_standard_deviations,
    select_runs,
)

SD = np.append(np.full(len(TERMS) + len(SLOPES) + len(SMOOTH), 0.3), 0.3)
SPACE = JobSpace(n_part=1, unit=np.zeros(2))


def keys_of(*groups: int) -> KeyArray:
    """Return keys of runs that share all groups if their number is equal, and none otherwise."""
    return np.repeat(np.array(groups, dtype=np.uint64)[:, None] + 1, len(TERMS), axis=1)


def blank(n: int) -> FloatArray:
    """Return columns of jobs without a share of any part."""
    return np.zeros((n, 2))


def condition(keys: KeyArray, error: list[float]) -> GroupEffects:
    return condition_effects(SD, SPACE, keys, blank(len(keys)), np.array(error))


def effects() -> GroupEffects:
    return condition(keys_of(0, 0, 1), [1.0, 1.0, -1.0])


def test_a_run_of_unknown_groups_has_the_prior() -> None:
    mean, sd = effects().predict(keys_of(7), blank(1))
    assert mean[0] == 0.0
    assert sd[0] == pytest.approx(np.sqrt((SD**2).sum() - (SD[: len(SLOPES)] ** 2).sum()))


def test_measured_groups_shift_the_mean_and_shrink_the_spread() -> None:
    mean, sd = effects().predict(keys_of(0, 1, 7), blank(3))
    assert 0.8 < mean[0] < 1.0
    assert -mean[1] < mean[0]
    assert SD[-1] <= sd[0] < sd[1] < sd[2]


def test_runs_that_are_appended_equal_runs_that_were_known() -> None:
    appended = condition(keys_of(0, 0), [1.0, 1.0]).append(keys_of(1), blank(1), np.array([-0.1]))
    joint, queries = condition(keys_of(0, 0, 1), [1.0, 1.0, -0.1]), (keys_of(0, 1), blank(2))
    for one, other in zip(appended.predict(*queries), joint.predict(*queries), strict=True):
        np.testing.assert_allclose(one, other)


def test_runs_are_thinned_by_configuration() -> None:
    assert select_runs(keys_of(0, 0, 0, 1, 2), limit=3).tolist() == [0, 3, 4]


def test_the_deviation_of_effects_follows_the_errors() -> None:
    keys = keys_of(*np.repeat(np.arange(40), 3).tolist())
    effect = np.repeat(np.random.default_rng(0).normal(size=40), 3)
    sd = fit_standard_deviations(SPACE, keys, blank(len(keys)), effect)
    assert sd[-1] < 0.1
    assert (sd[:-1] ** 2).sum() == pytest.approx(1.0, rel=0.4)


def test_a_part_that_is_slow_on_measured_stacks_is_slow_on_others() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    known = condition_effects(SD, SPACE, keys_of(0, 0, 1, 1), x, np.array([0.0, -1.0, 0.0, -1.0]))
    mean, _ = known.predict(keys_of(7, 7), x[:2])
    assert mean[0] == pytest.approx(0.0)
    assert mean[1] < -0.1


def test_like_jobs_of_a_stack_have_like_errors() -> None:
    space = JobSpace.fit(["share.compute_s", "log.n_token"], np.array([[0.5, 0.0], [0.5, 2.0]]), ["compute_s"])
    assert space.n_part == 1
    keys, x = keys_of(0, 0), np.array([[0.0, 0.0], [0.0, 8.0]])
    keys[:, -1] = [1, 2]
    mean, _ = condition_effects(SD, space, keys, x, np.array([1.0, -1.0])).predict(keys[[0, 0]], x)
    assert mean[0] > mean[1]
