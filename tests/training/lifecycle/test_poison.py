"""Attempts of API keys to spoil others' predictions, on reduced training sets; see `benchmarks.poison`."""

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.poison import (
    ALL,
    CONFIG,
    SCENARIOS,
    Bench,
    Scenario,
    all_lineages,
    as_own,
    build_bench,
    fresh_keys,
    invented_models,
    joined,
    small_steps,
    take,
    uploaded,
)

FEWEST, FEW, MANY = 5, 10, 30
MAX_HARM = 0.01
MAX_STANDARD_ERROR = 0.008
FIXED, CALIBRATED = False, True
"""Whether the coefficients of the estimate are fitted too, which takes most of the time."""


@functools.cache
def bench_of(seed: int, calibrate: bool) -> Bench:
    return build_bench(900, CONFIG.model_copy(update={"calibrate": calibrate}), seed)


def mean_harm(harm: Callable[[Bench], pd.Series], n_seed: int, calibrate: bool = FIXED) -> tuple[float, float]:
    """Return the mean relative increase of others' error over seeds, and its standard error."""
    each = np.array([harm(bench_of(seed, calibrate))[ALL] for seed in range(n_seed)])
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(n_seed))


CASES = [(one, FIXED, MANY) for one in SCENARIOS.values()] + [(small_steps, CALIBRATED, FEW)]


@pytest.mark.parametrize(
    ("scenario", "calibrate", "n_seed"),
    [(fresh_keys, FIXED, FEW), *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES)],
)
def test_without_the_gate_no_scenario_clearly_harms_others_by_more_than_one_percent(
    scenario: Scenario, calibrate: bool, n_seed: int
) -> None:
    mean, standard_error = mean_harm(lambda bench: bench.harm(uploaded(bench, scenario)), n_seed, calibrate)
    assert standard_error <= MAX_STANDARD_ERROR
    assert mean <= MAX_HARM + 2 * standard_error


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [all_lineages, invented_models, small_steps, fresh_keys])
def test_without_limits_of_weight_the_same_rows_harm_others(scenario: Scenario) -> None:
    mean, standard_error = mean_harm(lambda bench: bench.harm(as_own(uploaded(bench, scenario))), FEW)
    assert mean > MAX_HARM + 2 * standard_error


@pytest.mark.parametrize("owner", ["key:honest", "key:~unproven"])
def test_the_true_rows_of_one_key_teach_about_its_lineages(owner: str) -> None:
    def harm(bench: Bench) -> pd.Series:
        is_own = np.arange(len(bench.hidden.X)) % 2 == 0
        own = take(bench.hidden, is_own)
        own = replace(own, stacks=pd.Series(f"{owner}/rig", index=own.X.index))
        return replace(bench, hidden=take(bench.hidden, ~is_own)).harm(joined(bench.public, own))

    assert mean_harm(harm, FEWEST)[0] < 0
