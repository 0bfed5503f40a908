from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.training.dataset.folds import leave_one_group_out

GROUPS = st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=60).filter(lambda names: len(set(names)) > 1)


@given(names=GROUPS, max_fold=st.one_of(st.none(), st.integers(2, 10)))
def test_each_row_is_held_out_once_and_no_group_is_on_both_sides(names: list[str], max_fold: int | None) -> None:
    groups = pd.Series(names)
    held_out = []
    for train, test in leave_one_group_out(groups, max_fold):
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(len(groups)))
        assert len(train)
        assert len(test)
        held_out += test.tolist()
    assert sorted(held_out) == list(range(len(groups)))


@given(names=GROUPS)
def test_without_a_limit_there_is_a_fold_per_group(names: list[str]) -> None:
    folds = list(leave_one_group_out(pd.Series(names)))
    assert [set(np.array(names)[test]) for _, test in folds] == [{name} for name in dict.fromkeys(names)]


def test_groups_are_assigned_to_folds_of_similar_size() -> None:
    groups = pd.Series(list("aaaaaa" + "bbb" + "ccc" + "d"))
    assert [len(test) for _, test in leave_one_group_out(groups, 2)] == [7, 6]


@pytest.mark.parametrize("names", [[], ["a"], ["a", "a"]])
def test_fewer_than_two_groups_are_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="at least two groups"):
        list(leave_one_group_out(pd.Series(names, dtype=object)))


def test_one_fold_is_refused() -> None:
    with pytest.raises(ValueError, match="must be at least 2, got 1"):
        list(leave_one_group_out(pd.Series(["a", "b"]), 1))
