"""Attempts of API keys to spoil others' predictions, on reduced training sets; see `benchmarks.poison`."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.poison import (
    ALL,
    CONFIG,
    METRICS,
    SCENARIOS,
    Bench,
    build_bench,
    hidden_errors,
    honest,
    joined,
    run,
    take,
    upload,
)
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.training_set import TrainingSet
from tests.training.builders import a_campaign

FEW_TREES = TrainingConfig(n_estimators=20, n_member=3, calibrate=False)
N_NIGHT = 10
MAX_HARM = 0.027
"""Of the worst control of `benchmarks.poison`, true repeats."""


@pytest.fixture(scope="module")
def small_bench() -> Bench:
    data, rng = a_campaign(), np.random.default_rng(0)
    is_central = (data.X["workload.quantile"] == 0.5) & (data.y[list(METRICS)] > 0).all(axis=1)
    data = take(data, is_central)
    data = take(data, np.isin(np.arange(len(data.X)), rng.permutation(len(data.X))[:600]))
    lineages = rng.permutation(data.groups.unique())
    is_hidden = data.groups.isin(lineages[: len(lineages) // 4]).to_numpy()
    return Bench(take(data, ~is_hidden), take(data, is_hidden), FEW_TREES)


def poisoned(bench: Bench, factor: float, *, is_new: bool) -> TrainingSet:
    """Return the public rows and those of a key each night, which are new or have been stored for long."""
    stored = bench.public
    for night in range(N_NIGHT):
        rows = upload(bench.public, factor, 100, np.random.default_rng(night), night)
        key = rows.stacks if is_new else pd.Series(f"key:evil-{night}/rig", index=rows.X.index)
        stored = joined(stored, replace(rows, stacks=key))
    return stored


@pytest.mark.parametrize("factor", [0.5, 0.7, 3.0])
def test_a_new_key_each_night_harms_others_no_more_than_chance_does(small_bench: Bench, factor: float) -> None:
    clean, harmed = (
        hidden_errors(small_bench, data)[ALL]
        for data in (small_bench.public, poisoned(small_bench, factor, is_new=True))
    )
    assert harmed / clean - 1 <= MAX_HARM


def test_without_a_month_as_new_the_same_keys_would_do_harm(small_bench: Bench) -> None:
    clean, harmed = (
        hidden_errors(small_bench, data)[ALL]
        for data in (small_bench.public, poisoned(small_bench, 0.5, is_new=False))
    )
    assert harmed / clean - 1 > 2 * MAX_HARM


@pytest.mark.parametrize("owner", ["key:honest", "key:~unproven"])
def test_the_true_rows_of_one_key_teach_about_its_lineages(small_bench: Bench, owner: str) -> None:
    is_own = np.arange(len(small_bench.hidden.X)) % 2 == 0
    own = take(small_bench.hidden, is_own)
    own = replace(own, stacks=pd.Series(f"{owner}/rig", index=own.X.index))
    bench = replace(small_bench, hidden=take(small_bench.hidden, ~is_own))
    before, after = (hidden_errors(bench, data)[ALL] for data in (bench.public, joined(bench.public, own)))
    assert after < before


@pytest.fixture(scope="module")
def bench() -> Bench:
    return build_bench(900, CONFIG)


@pytest.fixture(scope="module")
def chance(bench: Bench) -> float:
    """The most that true repeats move others, promoted or not: what the bench cannot tell from no harm."""
    return max(float(run(bench, honest, seed)["limited"]) for seed in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_scenario_harms_others_by_one_percent_more_than_true_repeats(
    bench: Bench, chance: float, scenario: str
) -> None:
    figures = run(bench, SCENARIOS[scenario])
    assert figures["harm"] <= max(chance, 0.0) + 0.01, figures
