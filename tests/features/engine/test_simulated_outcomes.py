import pandas as pd
import pytest

from tests.features.engine.simulated_outcomes import (
    OPEN_LOOPS,
    SCENARIOS,
    simulate_scenario,
    stored_outcomes,
    stored_scenario,
)


def assert_as_stored(scenario: str, stored: pd.DataFrame) -> None:
    simulated = simulate_scenario(scenario, stored["rate_per_s"])
    pd.testing.assert_frame_equal(
        simulated, stored[simulated.columns], rtol=1e-5, check_index_type=False, check_names=False
    )


def test_every_scenario_is_stored_in_full() -> None:
    stored = stored_outcomes()
    assert stored.groupby(level="scenario", sort=False).size().to_dict() == {
        "closed_loop steady": 300, "closed_loop cold": 300,
        "estimate steady chunked": 120, "estimate steady whole": 120,
        "estimate cold chunked": 120, "estimate cold whole": 120,
        "open_loop": 60, "estimate open": 40,
    }  # fmt: skip
    assert stored[["ttft", "tpot", "e2e", "rate"]].notna().all().all()
    has_quantiles = ~stored.index.get_level_values("scenario").str.startswith("estimate")
    assert stored[has_quantiles].drop(columns="rate_per_s").notna().all().all()
    assert stored["rate_per_s"].notna().sum() == 100


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_quickest_settings_come_out_as_stored(scenario: str) -> None:
    stored = stored_scenario(scenario)
    quickest = stored.head(1) if scenario in OPEN_LOOPS else stored.sort_values("e2e").head(8)
    assert_as_stored(scenario, quickest)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_setting_comes_out_as_stored(scenario: str) -> None:
    assert_as_stored(scenario, stored_scenario(scenario))
