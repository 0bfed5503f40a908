import numpy as np
import pandas as pd
import pytest

from tests.features.engine.serving_simulation import Engine, Load, simulate
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


def test_the_simulation_serves_each_request_once_and_repeats_itself() -> None:
    engine = Engine(lambda batch, _: 0.01 + 1e-4 * batch, lambda token: 1e-5 * token, capacity_token=10_000)
    first, again = (simulate(engine, Load(100, 1000, 100, concurrency=20), seed=1) for _ in range(2))
    assert (first.ttft_s == again.ttft_s).all()
    assert len(first.e2e_s) == 100
    np.testing.assert_allclose(
        first.e2e_s, first.ttft_s + first.tpot_s * np.rint((first.e2e_s - first.ttft_s) / first.tpot_s)
    )
    assert (first.ttft_s[:9] < 0.2).all()
    assert first.ttft_s[19] > 0.8


def test_the_simulation_by_hand() -> None:
    engine = Engine(lambda *_: 0.01, lambda token: 1e-4 * token)
    o = simulate(engine, Load(2, 1000, 101, concurrency=2, spread=0.0))
    np.testing.assert_allclose(o.ttft_s, [0.1, 0.2])
    np.testing.assert_allclose(o.e2e_s, [1.2, 1.2])
    assert o.gap_quantile_s(0.999) == pytest.approx(0.11)
