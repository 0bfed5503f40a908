from typing import Any

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


@pytest.mark.parametrize(
    ("names", "options", "problem"),
    [
        ([], (), "at least two groups"),
        (["a"], (), "at least two groups"),
        (["a", "a"], (), "at least two groups"),
        (["a", "b"], (2, np.array([True, False])), "at least two groups, got 1"),
        (["a", "b"], (1,), "must be at least 2, got 1"),
    ],
)
def test_fewer_than_two_groups_or_folds_are_refused(names: list[str], options: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(leave_one_group_out(pd.Series(names, dtype=object), *options))


@given(names=GROUPS, extra=st.lists(st.sampled_from("abcxyz"), max_size=200), at=st.booleans())
def test_rows_that_do_not_count_leave_the_folds_of_the_others(names: list[str], extra: list[str], at: bool) -> None:
    alone = list(leave_one_group_out(pd.Series(names), 3))
    groups = pd.Series(extra + names if at else names + extra)
    counts = np.concatenate([np.zeros(len(extra), bool), np.ones(len(names), bool)])
    counts = counts if at else counts[::-1]
    first = len(extra) if at else 0
    together = list(leave_one_group_out(groups, 3, counts))
    assert [sorted(test[counts[test]] - first) for _, test in together] == [sorted(test) for _, test in alone]
    assert all(counts[train].any() for train, _ in together)
    assert sorted(row for _, test in together for row in test) == list(range(len(groups)))
    assert not any(set(groups[train]) & set(groups[test]) for train, test in together)
