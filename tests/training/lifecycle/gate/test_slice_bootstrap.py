"""Paired bootstrap of slices, on simulated errors."""

import numpy as np
import pandas as pd
import pytest

from roofcast.training.lifecycle.gate.comparison import compare
from roofcast.training.lifecycle.gate.slice_bootstrap import REST, TOLERANCE, find_regressions

N_LINEAGE, N_ROW = 24, 960


def simulate(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return measured values, predictions that are off by 30 %, and slices: six accelerators, eight stacks."""
    rng = np.random.default_rng(seed)
    slices = pd.DataFrame(
        {
            "lineage": rng.integers(0, N_LINEAGE, N_ROW),
            "cell": rng.integers(0, 200, N_ROW),
            "accelerator": rng.integers(0, 6, N_ROW).astype(str),
            "stack": rng.integers(0, 8, N_ROW).astype(str),
        }
    )
    y = pd.DataFrame({"tpot_s": np.full(N_ROW, 0.02)})
    return y, y * np.exp(rng.normal(0, 0.3, (N_ROW, 1))), slices


def shaken(predicted: pd.DataFrame, seed: int, sd: float = 0.03) -> pd.DataFrame:
    """Return predictions as of another fit of the same recipe."""
    return predicted * np.exp(np.random.default_rng(seed).normal(0, sd, predicted.shape))


@pytest.mark.parametrize("n_small", range(5))
def test_another_fit_of_the_same_recipe_is_rarely_found_worse(n_small: int) -> None:
    y, predicted, slices = simulate()
    row = np.arange(4 * n_small)
    slices.loc[row, "stack"] = np.char.add("small ", (row // 4).astype(str))
    slices.loc[row, "lineage"] = slices.loc[row, "cell"] = 1000 + row // 4
    refused = [bool(find_regressions(y, shaken(predicted, seed), predicted, slices)) for seed in range(1, 11)]
    assert sum(refused) <= 1


def test_a_worse_slice_is_found_though_the_whole_is_better() -> None:
    y, rival, slices = simulate()
    is_hit = (slices["accelerator"] == "3").to_numpy()
    better = y * np.exp(0.7 * np.log(rival / y))
    worse = rival * np.exp(0.1 * np.sign(np.log(rival / y)))
    candidate = better.where(~is_hit[:, None], worse)
    found = find_regressions(y, candidate, rival, slices)
    assert {(r.kind, r.name) for r in found} == {("accelerator", "3")}
    decision = compare(y, candidate, rival, slices)
    assert decision.champion is not None
    assert decision.candidate < decision.champion
    assert not decision.promoted
    assert decision.reason.startswith("significantly worse than the champion on tpot_s of accelerator 3: 0.3")


def test_slices_of_few_lineages_and_cells_are_judged_together() -> None:
    y, rival, slices = simulate()
    is_small = np.arange(N_ROW) < 60
    slices["stack"] = slices["stack"].mask(is_small, "small " + (slices.index % 20).astype(str))
    slices.loc[is_small, "cell"] = 1000 + slices.index[is_small] % 20
    slices.loc[is_small, "lineage"] = 1000 + slices.index[is_small] % 20
    candidate = rival.mask(is_small[:, None], rival * np.exp(0.5 * np.sign(np.log(rival / y))))
    found = find_regressions(y, candidate, rival, slices)
    assert ("stack", REST) in {(r.kind, r.name) for r in found}


def test_a_single_cell_is_no_evidence() -> None:
    y, rival, slices = simulate()
    worse = rival * np.exp(0.1 * np.sign(np.log(rival / y)))
    assert not find_regressions(y, worse, rival, slices.assign(lineage=0, cell=0, accelerator="0", stack="0"))


def test_one_of_many_comparisons_needs_more_evidence_than_a_single_one() -> None:
    y, rival, slices = simulate()
    is_hit, noise = (slices["accelerator"] == "3").to_numpy(), np.random.default_rng(7).normal(0, 0.1, y.shape)
    found = []
    for size in (0.0, 0.025, 0.03):
        worse = rival * np.exp(size * np.sign(np.log(rival / y)) + noise)
        candidate = rival.where(~is_hit[:, None], worse)
        found.append([len(find_regressions(y, candidate, rival, slices, level)) for level in (0.05, 0.05 / 8)])
    single, one_of_eight = np.array(found).T
    assert (one_of_eight <= single).all()
    assert 0 < one_of_eight.sum() < single.sum()


def test_an_equal_candidate_is_found_worse_as_often_as_the_significance_says() -> None:
    """Errors exactly at the tolerance, on one slice: 100 draws at a significance of .2."""
    n, refused = 24, 0
    slices = pd.DataFrame({"lineage": range(n), "cell": range(n)})
    y = pd.DataFrame({"tpot_s": np.ones(n)})
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(0, 0.05, (2, n))
        candidate, rival = (
            pd.DataFrame({"tpot_s": np.exp(error)}) for error in (0.3 * (1 + TOLERANCE) + noise[0], 0.3 + noise[1])
        )
        refused += bool(find_regressions(y, candidate, rival, slices, significance=0.2))
    assert 12 <= refused <= 29


@pytest.mark.parametrize(("gain", "is_found"), [(0.0, True), (0.06, False)])
def test_a_lineage_weighs_as_the_root_of_its_rows(gain: float, is_found: bool) -> None:
    """Twelve lineages of nine rows are worse by .02; as many of one row outweigh them by three times as much."""
    is_large = np.repeat([True, False], [108, 12])
    lineage = np.concatenate([np.repeat(range(12), 9), range(12, 24)])
    y = pd.DataFrame({"tpot_s": np.ones(120)})
    candidate = np.exp(0.3 * (1 + TOLERANCE) + np.where(is_large, 0.02, -gain))
    slices = pd.DataFrame({"lineage": lineage, "cell": range(120)})
    assert bool(find_regressions(y, y.mul(candidate, axis=0), y * np.exp(0.3), slices)) is is_found
