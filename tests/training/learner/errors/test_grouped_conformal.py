import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.errors import OutOfRangeError
from roofcast.training.learner.errors.grouped_conformal import (
    MIN_COMPETENT_OWNER,
    MIN_OWNER,
    GroupedConformal,
    Origins,
    pool_scores,
)

ROWS = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(1e-9, 10)), min_size=1, max_size=80)


def conformal(rows: list[tuple[str, float]]) -> GroupedConformal:
    return GroupedConformal(np.array([score for _, score in rows]), pd.Series([name for name, _ in rows]))


def test_a_group_weighs_as_the_root_of_its_rows() -> None:
    """Of 2 : 1 : 1, a half, a quarter and a quarter."""
    c = conformal([("a", 0.1)] * 4 + [("b", 0.5), ("c", 0.9)])
    assert [c.quantile(level) for level in (0.499, 0.501, 0.749, 0.75)] == [0.1, 0.5, 0.5, 0.5]
    c = conformal([("a", 0.1)] * 4 + [("b", 0.5), ("c", 0.9), ("d", 0.9), ("e", 0.9)])
    assert [c.quantile(level) for level in (0.333, 0.334, 0.499, 0.501, 0.8)] == [0.1, 0.5, 0.5, 0.9, 0.9]


def test_a_group_has_one_vote_without_a_size_exponent() -> None:
    scores, groups = np.array([0.1, 0.1, 0.1, 0.1, 0.5, 0.9]), pd.Series(list("aaaabc"))
    c = GroupedConformal(scores, groups, size_exponent=0.0)
    assert [c.quantile(level) for level in (0.333, 0.334, 0.666, 0.667)] == [0.1, 0.5, 0.5, 0.9]


@given(rows=ROWS, levels=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)))
def test_quantiles_never_fall_with_the_level_and_are_scores(
    rows: list[tuple[str, float]], levels: tuple[float, float]
) -> None:
    c = conformal(rows)
    low, high = (c.quantile(min(level, c.highest_level)) for level in sorted(levels))
    assert low <= high
    assert {low, high} <= {score for _, score in rows}


@given(rows=ROWS)
def test_the_order_of_the_rows_does_not_matter(rows: list[tuple[str, float]]) -> None:
    forward, backward = conformal(rows), conformal(rows[::-1])
    for level in np.linspace(0.05, forward.highest_level, 7):
        assert forward.quantile(level) == backward.quantile(level)


@pytest.mark.parametrize(("n_group", "highest"), [(1, 0.5), (4, 0.8), (9, 0.9), (19, 0.95)])
def test_the_highest_level_follows_from_the_groups(n_group: int, highest: float) -> None:
    c = conformal([(str(i), float(i + 1)) for i in range(n_group)])
    assert c.highest_level == pytest.approx(highest)
    assert c.quantile(highest) == n_group
    with pytest.raises(OutOfRangeError, match=f"there are {n_group}; ask for at most {highest:.3f}"):
        c.quantile(highest + 0.01)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(OutOfRangeError, match="level must lie between 0 and 1"):
        conformal([("a", 1.0)]).quantile(level)


def test_rows_without_a_score_are_left_out() -> None:
    c = conformal([("a", 1.0), ("b", float("nan")), ("a", float("nan"))])
    assert c.n_group == 1
    assert c.quantile(0.5) == 1.0


def a_normal(n_group: int = 40) -> GroupedConformal:
    """Return the distribution of absolute normal scores of groups of five."""
    groups = pd.Series(np.repeat(np.arange(n_group), 5))
    return GroupedConformal(np.abs(np.random.default_rng(0).standard_normal(len(groups))), groups)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.6, 0.8, 0.9])
def test_the_bound_of_an_interval_has_its_probability(level: float) -> None:
    conformal = a_normal()
    end = np.array([conformal.quantile(level)])
    assert conformal.p_below(end)[0] == pytest.approx((1 + level) / 2)
    assert conformal.p_below(-end)[0] == pytest.approx((1 - level) / 2)
    assert conformal.z_at((1 + level) / 2) == pytest.approx(end[0])


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=30))
def test_probabilities_rise_with_the_limit_up_to_the_highest_level(z: list[float]) -> None:
    conformal = a_normal()
    p = conformal.p_below(np.sort(z))
    assert (np.diff(p) >= -1e-12).all()
    assert p.max() <= (1 + conformal.highest_level) / 2 + 1e-12
    assert p.min() >= (1 - conformal.highest_level) / 2 - 1e-12


def test_scores_of_stacks_count_alone_once_enough_owners_have_any() -> None:
    owner = pd.Series([f"owner {i}" for i in range(MIN_OWNER)])
    lineage = pd.Series(["a", "b", *["c"] * (MIN_OWNER - 2)])
    scores = np.stack([np.full(MIN_OWNER, size) for size in (9.0, 1.0, 5.0)])
    nobody = pd.Series(False, index=owner.index)
    alone = pool_scores(scores, Origins(lineage, owner, nobody))
    assert (alone.n_group, alone.quantile(0.9)) == (MIN_OWNER, 1.0)
    scores[1, 0] = np.nan
    pooled = pool_scores(scores, Origins(lineage, owner, nobody))
    assert (pooled.n_group, pooled.quantile(0.7), pooled.quantile(0.9)) == (MIN_OWNER - 1 + 3, 1.0, 5.0)


def test_scores_of_competent_operators_count_alone_up_to_the_level_that_they_support() -> None:
    owner = pd.Series([f"owner {i}" for i in range(MIN_OWNER)])
    scores = np.stack([np.where(np.arange(MIN_OWNER) < MIN_COMPETENT_OWNER, 1.0, 5.0)] * 3)
    competent = pool_scores(scores, Origins(owner, owner, pd.Series(scores[1] < 5)))
    assert competent.n_group == MIN_COMPETENT_OWNER
    assert (competent.quantile(0.9), competent.quantile(0.95)) == (1.0, 5.0)
    assert competent.everyone is not None
    assert competent.everyone.quantile(0.9) == 5.0
    assert competent.highest_level == competent.everyone.highest_level == pytest.approx(0.95)
    few = pd.Series(scores[1] < 5) & (owner != "owner 0")
    assert pool_scores(scores, Origins(owner, owner, few)).n_group == MIN_OWNER
