from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from roofcast.features.queries import FloatArray
from roofcast.training.learner.robust_least_squares import Blocks, levenberg_marquardt


def linear(design: FloatArray, wanted: FloatArray) -> FloatArray:
    return levenberg_marquardt(lambda x: design @ x - wanted, lambda _x, _r: design, design.shape[1])


def cost(design: FloatArray, wanted: FloatArray, x: FloatArray) -> float:
    r = design @ x - wanted
    return float(2 * (np.sqrt(1 + r * r) - 1).sum() + x @ x)


def test_nothing_measured_leaves_the_prior() -> None:
    np.testing.assert_array_equal(linear(np.zeros((0, 3)), np.zeros(0)), np.zeros(3))


def test_one_wild_observation_pulls_no_harder_than_a_far_one() -> None:
    near, wild = (linear(np.ones((11, 1)), np.append(np.zeros(10), far))[0] for far in (10.0, 1e6))
    assert near == pytest.approx(wild, rel=0.05)
    assert 0 < wild < 0.1


def test_nothing_goes_beyond_four_deviations() -> None:
    assert linear(np.ones((1000, 1)), np.full(1000, 100.0)).tolist() == [4.0]


def test_it_finds_the_least_cost_that_a_general_solver_finds() -> None:
    random = np.random.default_rng(0)
    design, wanted = random.normal(size=(40, 5)), random.standard_t(2, 40)
    found = linear(design, wanted)
    best = minimize(partial(cost, design, wanted), np.zeros(5)).fun
    assert cost(design, wanted, found) == pytest.approx(best, rel=1e-3)


def test_curved_residuals_are_followed() -> None:
    x = levenberg_marquardt(lambda x: 100 * (np.exp(x) - 3.0), lambda x, _: np.diag(100 * np.exp(x)), 1)
    assert x[0] == pytest.approx(np.log(3.0), rel=1e-3)


def test_blocks_give_the_solution_of_the_whole_problem() -> None:
    """Three groups of observations share two coordinates, and each has two of its own and an origin."""
    random = np.random.default_rng(1)
    block = random.integers(0, 3, 60)
    local, wanted = random.normal(size=(60, 4)), random.standard_t(3, 60)
    shared, own = random.normal(size=(3, 4, 2)), random.normal(size=(3, 4, 2))
    origin = random.normal(size=(3, 4))
    blocks = Blocks(shared, own, origin)
    design = np.zeros((60, 8))
    design[:, :2] = np.einsum("ik,ikn->in", local, shared[block])
    for i in range(60):
        design[i, 2 + 2 * block[i] : 4 + 2 * block[i]] = local[i] @ own[block[i]]
    found = levenberg_marquardt(
        lambda x: (local * blocks.local(x)[block]).sum(axis=1) - wanted, lambda _x, _r: local, blocks, block=block
    )
    with pytest.raises(ValueError, match="block: residuals of several blocks"):
        levenberg_marquardt(lambda _x: wanted, lambda _x, _r: local, blocks)
    wanted -= (local * origin[block]).sum(axis=1)
    np.testing.assert_allclose(found, linear(design, wanted), rtol=1e-9, atol=1e-12)
