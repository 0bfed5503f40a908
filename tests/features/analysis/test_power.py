import numpy as np
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.analysis.breakdown import break_down
from roofcast.features.analysis.power import DRAW, replica_power_w
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import estimate
from roofcast.features.queries import FloatArray, Queries, descriptor_arrays
from tests.builders import an_example


def power(d: Queries) -> FloatArray:
    e = estimate(d, C)
    return replica_power_w(d, e, break_down(d, C, e))


@pytest.mark.parametrize("concurrency", [1, 8, 64, 1000])
def test_power_lies_between_idle_and_design(concurrency: float) -> None:
    watt = power(an_example(workload__concurrency=concurrency))[0]
    assert DRAW["queue"] * 400 <= watt <= 400


def test_a_replica_that_is_seldom_asked_idles() -> None:
    d = an_example(workload__concurrency=np.nan, workload__request_rate_per_s=1e-6)
    assert power(d)[0] == pytest.approx(DRAW["queue"] * 400, rel=1e-3)


def test_power_is_that_of_all_accelerators() -> None:
    one, two = (
        power(an_example(config__n_accelerator=n, config__dp=n, workload__concurrency=8 * n))[0] for n in (1, 2)
    )
    assert two == pytest.approx(2 * one)


def test_accelerators_of_disaggregated_prefill_draw_power_too() -> None:
    """At a rate near 0 all idle: three accelerators that prefill and one that decodes, of 400 W each."""
    rare = {"workload__concurrency": np.nan, "workload__request_rate_per_s": 1e-6}
    watt = power(an_example(config__n_prefill_accelerator=3, **rare))[0]
    assert watt == pytest.approx(4 * DRAW["queue"] * 400, rel=1e-3)


def test_the_measured_watts_are_met_within_a_seventh() -> None:
    catalog, rows = load_catalog(), load_campaigns(["argonne"]).query("power_w > 0")
    watt = power(descriptor_arrays(describe(rows, catalog.models, catalog.accelerators)))
    error = np.abs(watt / rows["power_w"].to_numpy() - 1)
    assert len(rows) == 48
    assert np.median(error) < 1 / 7
