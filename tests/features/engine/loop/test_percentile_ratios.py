from __future__ import annotations

import numpy as np
import pytest

from roofcast.features.arrays import FloatArray
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.engine.loop.percentile_ratios import quantile_ratios
from roofcast.features.examples import example_descriptors

METRICS = ("ttft_s", "itl_s", "tpot_s", "e2e_s")


def ratios(**changes: float) -> dict[str, FloatArray]:
    d = example_descriptors() | {name.replace("__", "."): np.array([value]) for name, value in changes.items()}
    return quantile_ratios(d, DEFAULT_COEFFICIENTS, estimate(d, DEFAULT_COEFFICIENTS))


def at_quantile(q: float, **changes: float) -> dict[str, FloatArray]:
    return ratios(workload__is_mean=0.0, workload__quantile=q, **changes)


def at_rate(q: float, rate: float) -> dict[str, FloatArray]:
    return at_quantile(q, workload__concurrency=np.nan, workload__request_rate_per_s=rate)


def test_a_mean_is_itself() -> None:
    assert {name: values.tolist() for name, values in ratios().items()} == {name: [1.0] for name in METRICS}


def test_a_static_batch_has_no_spread() -> None:
    assert at_quantile(0.99, workload__is_static=1.0)["ttft_s"].tolist() == [1.0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rate", [None, 1.5])
def test_a_higher_percentile_is_never_lower(metric: str, rate: float | None) -> None:
    found = [float((at_quantile(q) if rate is None else at_rate(q, rate))[metric][0]) for q in (0.5, 0.9, 0.95, 0.99)]
    assert found == sorted(found)
    assert found[-1] >= 1.0


def test_random_arrivals_have_a_longer_tail_than_clients_who_wait_for_answers() -> None:
    d = example_descriptors() | {
        "workload.concurrency": np.array([np.nan]),
        "workload.request_rate_per_s": np.array([1.5]),
    }
    in_flight = float(estimate(d, DEFAULT_COEFFICIENTS).concurrency[0])
    assert at_rate(0.99, 1.5)["ttft_s"][0] > at_quantile(0.99, workload__concurrency=in_flight)["ttft_s"][0]


def test_rows_are_told_apart() -> None:
    alone = [at_quantile(0.99), at_rate(0.99, 1.5), ratios()]
    row = example_descriptors()
    d = {name: np.repeat(values, 3) for name, values in row.items()}
    d["workload.is_mean"], d["workload.quantile"] = np.array([0.0, 0.0, 1.0]), np.array([0.99, 0.99, 0.5])
    d["workload.concurrency"] = np.array([8.0, np.nan, 8.0])
    d["workload.request_rate_per_s"] = np.array([np.nan, 1.5, np.nan])
    together = quantile_ratios(d, DEFAULT_COEFFICIENTS, estimate(d, DEFAULT_COEFFICIENTS))
    for name in METRICS:
        np.testing.assert_allclose(together[name], [float(one[name][0]) for one in alone])
