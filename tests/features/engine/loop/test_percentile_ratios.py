import numpy as np
import pytest

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.engine.loop.percentile_ratios import quantile_ratios
from roofcast.features.examples import example_descriptors
from roofcast.features.queries import FloatArray

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


@pytest.mark.parametrize("variation", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("n_input", [100.0, 1000.0, 3000.0])
def test_a_median_is_at_most_twice_the_mean(n_input: float, variation: float) -> None:
    one_wave = {"workload__n_wave": 1.0, "workload__n_request": 64.0, "workload__concurrency": 64.0}
    one_wave |= {"workload__n_output_token": 20.0}
    lengths = {"workload__n_input_token": n_input, "workload__length_variation": variation}
    ratio = at_quantile(0.5, **one_wave, **lengths)
    assert all(ratio[metric][0] <= 2 for metric in METRICS)


def test_long_tails_of_lengths_widen_the_tpot_of_a_closed_loop() -> None:
    at = {q: [at_quantile(q, workload__length_variation=v)["tpot_s"][0] for v in (0.5, 2.0)] for q in (0.9, 0.99)}
    assert 1.0 < at[0.9][0] < at[0.99][0]
    assert at[0.9][0] < at[0.9][1] < at[0.99][1]


def test_a_steps_experts_and_cache_widen_the_tpot_of_random_arrivals() -> None:
    d = example_descriptors() | {"workload.concurrency": np.array([np.nan])}
    routed = {
        "model.n_moe_layer": 32.0, "model.n_mlp_layer": 0.0, "model.n_expert": 64.0, "model.n_expert_per_token": 4.0,
        "model.moe_width": 1408.0, "model.n_param_expert": 6e9, "model.n_param_dense": 1e9,
    }  # fmt: skip
    ask = {"workload.request_rate_per_s": 1.5, "workload.is_mean": 0.0, "workload.quantile": 0.9}
    plain, mixture = (d | {name: np.array([v]) for name, v in (ask | more).items()} for more in ({}, routed))
    spread = [
        quantile_ratios(row, DEFAULT_COEFFICIENTS, estimate(row, DEFAULT_COEFFICIENTS))["tpot_s"][0]
        for row in (plain, mixture)
    ]
    assert 1.0 < spread[0] < spread[1]


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
