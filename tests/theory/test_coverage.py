"""Coverage of the intervals by simulation: valid for a new group, unlike that of pooled rows."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import binom

from roofcast.training.learner.errors.grouped_conformal import GroupedConformal

N_DRAW = 2000
N_GROUP = 9

FloatArray = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator], FloatArray]
Quantile = Callable[[list[FloatArray], float], float]


def draw_equal_group(random: np.random.Generator) -> FloatArray:
    """Return the absolute errors of a group with random bias and scatter."""
    return _errors(random, 20)


def draw_unequal_group(random: np.random.Generator) -> FloatArray:
    """Return a group of 1 to 300 rows, most of them few."""
    return _errors(random, int(np.ceil(300 * random.uniform() ** 6)))


def draw_large_easy_group(random: np.random.Generator) -> FloatArray:
    """Return a group that has many rows if its errors are small."""
    is_easy = random.uniform() < 0.5
    return np.abs(0.1 * random.standard_normal(200) if is_easy else 1 + 0.1 * random.standard_normal(2))


def _errors(random: np.random.Generator, n_row: int) -> FloatArray:
    return np.abs(random.normal() + random.uniform(0.05, 0.5) * random.standard_normal(n_row))


def grouped_quantile(groups: list[FloatArray], level: float) -> float:
    names = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return GroupedConformal(np.concatenate(groups), pd.Series(names)).quantile(level)


def one_vote_quantile(groups: list[FloatArray], level: float) -> float:
    names = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return GroupedConformal(np.concatenate(groups), pd.Series(names), size_exponent=0.0).quantile(level)


def pooled_quantile(groups: list[FloatArray], level: float) -> float:
    return float(np.quantile(np.concatenate(groups), level, method="higher"))


def coverage(
    draw: Draw, quantile: Quantile, level: float, n_group: int = N_GROUP, *, size_exponent: float = 0.5
) -> float:
    """Return how often a random row of a new group lies below the quantile of the `n_group` before it.

    The new group of n rows counts as ``n ** size_exponent``.
    """
    random = np.random.default_rng(7)
    covered, weight = np.empty(N_DRAW), np.empty(N_DRAW)
    for i in range(N_DRAW):
        *calibration, new = (draw(random) for _ in range(n_group + 1))
        covered[i], weight[i] = random.choice(new) <= quantile(calibration, level), len(new) ** size_exponent
    return float(np.average(covered, weights=weight))


def binomial_floor(level: float) -> float:
    """Return the share that a method of exactly this level would undercut once in ten thousand simulations.

    Unequal weights leave the worth of half of the draws, or more, in every world here.
    """
    return float(binom.ppf(1e-4, N_DRAW // 2, level)) / (N_DRAW // 2)


UNEQUAL = (draw_unequal_group, draw_large_easy_group)


@pytest.mark.parametrize("level", [*(pytest.param(level, marks=pytest.mark.slow) for level in (0.5, 0.8)), 0.9])
@pytest.mark.parametrize("draw", [draw_equal_group, *UNEQUAL])
def test_a_new_group_is_covered_at_the_level(draw: Draw, level: float) -> None:
    assert coverage(draw, grouped_quantile, level) >= binomial_floor(level * N_GROUP / (N_GROUP + 1))


@pytest.mark.parametrize("level", [*(pytest.param(level, marks=pytest.mark.slow) for level in (0.5, 0.8)), 0.9])
@pytest.mark.parametrize("draw", [draw_equal_group, *(pytest.param(d, marks=pytest.mark.slow) for d in UNEQUAL)])
def test_the_coverage_of_many_groups_approaches_the_level(draw: Draw, level: float) -> None:
    assert coverage(draw, grouped_quantile, level, n_group=60) == pytest.approx(level, abs=0.04)


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_the_coverage_does_not_exceed_the_level_by_much(level: float) -> None:
    assert coverage(draw_equal_group, grouped_quantile, level) <= level + 0.03


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_pooled_quantiles_undercover_if_groups_differ(level: float) -> None:
    assert coverage(draw_unequal_group, pooled_quantile, level) < level - 0.07


@pytest.mark.parametrize("level", [*(pytest.param(level, marks=pytest.mark.slow) for level in (0.5, 0.8)), 0.9])
@pytest.mark.parametrize("draw", [draw_equal_group, *UNEQUAL])
def test_one_vote_a_group_covers_new_groups_whatever_their_size(draw: Draw, level: float) -> None:
    share = coverage(draw, one_vote_quantile, level, size_exponent=0.0)
    assert binomial_floor(level * N_GROUP / (N_GROUP + 1)) <= share <= level + 0.04


def test_roots_of_rows_undercover_new_groups_whose_predecessors_with_many_rows_were_easy() -> None:
    assert coverage(draw_large_easy_group, grouped_quantile, 0.5, n_group=60, size_exponent=0.0) < 0.5 - 0.07
