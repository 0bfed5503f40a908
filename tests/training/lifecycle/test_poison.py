"""Six attempts of one API key to spoil others' predictions, on a reduced training set; see `benchmarks.poison`."""

from __future__ import annotations

import pytest

from benchmarks.poison import CONFIG, SCENARIOS, Bench, build_bench, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench() -> Bench:
    return build_bench(900, CONFIG)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_scenario_lowers_the_accuracy_of_others_by_more_than_one_percent(bench: Bench, scenario: str) -> None:
    figures = run(bench, SCENARIOS[scenario])
    assert figures["harm"] <= 0.01, figures
