from __future__ import annotations

import numpy as np
import pytest

from roofcast.training.training_jobs.group_effects import TERMS, JobSpace, condition_effects
from roofcast.training.training_jobs.held_out import carry_over_share


def test_each_owner_has_one_vote_on_what_carries_over() -> None:
    owner = np.array(["a"] * 8 + ["b", "c"], dtype=object)
    share = np.array([0.9] * 8 + [0.4, 0.3])
    correction = np.resize([0.2, -0.2], 10)
    assert carry_over_share(correction, share * correction, owner) == pytest.approx(0.4)


@pytest.mark.parametrize(("factor", "share"), [(-1.0, 0.0), (2.0, 1.0)])
def test_a_correction_is_neither_turned_nor_enlarged(factor: float, share: float) -> None:
    correction = np.array([0.1, 0.2, -0.3])
    assert carry_over_share(correction, factor * correction, np.array(["a", "b", "c"], dtype=object)) == share


def test_without_a_correction_all_of_it_carries_over() -> None:
    assert carry_over_share(np.zeros(2), np.ones(2), np.array(["a", "b"], dtype=object)) == 1.0


def test_a_stack_is_an_owner_with_its_framework() -> None:
    keys = np.arange(2 * len(TERMS), dtype=np.uint64).reshape(2, -1)
    effects = condition_effects(
        np.full(len(TERMS) + 6, 0.3), JobSpace(1, np.zeros(2)), keys[:1], np.zeros((1, 2)), np.zeros(1)
    )
    other = keys[:1].copy()
    other[0, list(TERMS).index(("owner", "framework"))] = 99
    assert effects.knows_stack(np.vstack([keys, other])).tolist() == [True, False, False]
