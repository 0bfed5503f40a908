from __future__ import annotations

import numpy as np
import pytest

from roofcast.training.training_jobs.group_effects import (
    TERMS,
    GroupEffects,
    KeyArray,
    condition_effects,
    fit_standard_deviations,
    select_runs,
)

SD = np.full(len(TERMS) + 1, 0.3)


def keys_of(*groups: int) -> KeyArray:
    """Return keys of runs that share all groups if their number is equal, and none otherwise."""
    return np.repeat(np.array(groups, dtype=np.uint64)[:, None] + 1, len(TERMS), axis=1)


def effects() -> GroupEffects:
    return condition_effects(SD, keys_of(0, 0, 1), np.array([1.0, 1.0, -1.0]))


def test_a_run_of_unknown_groups_has_the_prior() -> None:
    mean, sd = effects().predict(keys_of(7))
    assert mean[0] == 0.0
    assert sd[0] == pytest.approx(np.sqrt((SD**2).sum()))


def test_measured_groups_shift_the_mean_and_shrink_the_spread() -> None:
    mean, sd = effects().predict(keys_of(0, 1, 7))
    assert 0.8 < mean[0] < 1.0
    assert -mean[1] < mean[0]
    assert SD[-1] <= sd[0] < sd[1] < sd[2]


def test_runs_that_are_appended_equal_runs_that_were_known() -> None:
    appended = condition_effects(SD, keys_of(0, 0), np.array([1.0, 1.0])).append(keys_of(1), np.array([-0.1]))
    joint = condition_effects(SD, keys_of(0, 0, 1), np.array([1.0, 1.0, -0.1]))
    for one, other in zip(appended.predict(keys_of(0, 1)), joint.predict(keys_of(0, 1)), strict=True):
        np.testing.assert_allclose(one, other)


def test_runs_are_thinned_by_configuration() -> None:
    assert select_runs(keys_of(0, 0, 0, 1, 2), limit=3).tolist() == [0, 3, 4]


def test_the_deviation_of_effects_follows_the_errors() -> None:
    keys = keys_of(*np.repeat(np.arange(40), 3).tolist())
    effect = np.repeat(np.random.default_rng(0).normal(size=40), 3)
    sd = fit_standard_deviations(keys, effect)
    assert sd[-1] < 0.1
    assert (sd[:-1] ** 2).sum() == pytest.approx(1.0, rel=0.4)
