import numpy as np
import pytest

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.engine.loop.latency_quantiles import latency_quantiles
from roofcast.features.queries import FloatArray
from tests.builders import an_example

METRICS = ("ttft_s", "itl_s", "tpot_s", "e2e_s")
LEVELS = (0.1, 0.5, 0.9, 0.95, 0.99)
AT_RATE = {"workload__concurrency": np.nan, "workload__request_rate_per_s": 1.5}
FEW_SLOTS = {"config__max_num_seqs": 4.0}
SYNCHRONISED = {"workload__length_variation": 0.0}
SHORT_RUN = {"workload__n_wave": 4.0, "workload__n_request": 32.0}
APART = {"config__n_prefill_accelerator": 1.0}
LOADS: tuple[dict[str, float], ...] = (
    {},
    AT_RATE,
    FEW_SLOTS,
    SYNCHRONISED,
    SHORT_RUN,
    SHORT_RUN | FEW_SLOTS,
    APART,
    AT_RATE | SYNCHRONISED,
)


def quantiles(levels: tuple[float, ...] | FloatArray, **changes: float) -> tuple[Estimate, dict[str, FloatArray]]:
    """Return the estimate of the example and its quantiles at some levels."""
    d = {name: np.repeat(values, len(levels)) for name, values in an_example(**changes).items()}
    d |= {"workload.is_mean": np.zeros(len(levels)), "workload.quantile": np.asarray(levels)}
    e = estimate(d, DEFAULT_COEFFICIENTS)
    return e, latency_quantiles(d, DEFAULT_COEFFICIENTS, e)[1]


def tail(metric: str, **changes: float) -> float:
    """Return the 0.99-quantile over the mean."""
    e, found = quantiles((0.99,), **changes)
    return float(found[metric][0] / getattr(e, metric)[0])


@pytest.mark.parametrize("is_static", [0.0, 1.0])
def test_means_and_static_batches_have_no_quantile(is_static: float) -> None:
    d = an_example(workload__is_static=is_static, workload__is_mean=1.0 - is_static)
    rows, found = latency_quantiles(d, DEFAULT_COEFFICIENTS, estimate(d, DEFAULT_COEFFICIENTS))
    assert not len(rows)
    assert not found


@pytest.mark.parametrize("load", LOADS)
def test_quantiles_rise_with_their_level(load: dict[str, float]) -> None:
    found = quantiles(LEVELS, **load)[1]
    for metric in METRICS:
        assert (np.diff(found[metric]) >= 0).all(), metric
        assert (found[metric] > 0).all(), metric


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(("metric", "rel"), [("ttft_s", 0.01), ("e2e_s", 0.01), ("tpot_s", 0.02)])
def test_the_mean_over_all_levels_is_the_estimate(metric: str, rel: float, load: dict[str, float]) -> None:
    e, found = quantiles((np.arange(4000) + 0.5) / 4000, **load)
    assert found[metric].mean() == pytest.approx(getattr(e, metric)[0], rel=rel)


@pytest.mark.parametrize("load", LOADS)
def test_a_median_is_at_most_twice_the_mean(load: dict[str, float]) -> None:
    one_wave = {"workload__n_wave": 1.0, "workload__n_request": 64.0, "workload__n_output_token": 20.0}
    e, found = quantiles((0.5,), **(one_wave | load))
    assert all(found[metric][0] <= 2 * getattr(e, metric)[0] for metric in METRICS)


def test_random_arrivals_have_a_longer_tail_than_clients_who_wait_for_answers() -> None:
    in_flight = float(quantiles((0.99,), **AT_RATE)[0].concurrency[0])
    assert tail("ttft_s", **AT_RATE) > tail("ttft_s", workload__concurrency=in_flight, workload__n_wave=np.inf)


def test_a_common_start_makes_the_first_wait() -> None:
    assert tail("ttft_s", workload__n_wave=10.0) > tail("ttft_s", workload__n_wave=1000.0)


def test_long_tails_of_lengths_widen_the_tpot_of_a_closed_loop() -> None:
    assert 1.0 < tail("tpot_s", workload__length_variation=0.5) < tail("tpot_s", workload__length_variation=2.0)


def test_a_steps_experts_and_cache_widen_the_tpot_of_random_arrivals() -> None:
    routed = {
        "model__n_moe_layer": 32.0, "model__n_mlp_layer": 0.0, "model__n_expert": 64.0,
        "model__n_expert_per_token": 4.0, "model__moe_width": 1408.0, "model__n_param_expert": 6e9,
        "model__n_param_dense": 1e9,
    }  # fmt: skip
    assert 1.0 < tail("tpot_s", **AT_RATE) < tail("tpot_s", **AT_RATE, **routed)


def test_rows_are_told_apart() -> None:
    rows = [an_example(workload__quantile=0.99), an_example(workload__quantile=0.9, **AT_RATE), an_example()]
    d = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    d["workload.is_mean"] = np.array([0.0, 0.0, 1.0])
    asked, found = latency_quantiles(d, DEFAULT_COEFFICIENTS, estimate(d, DEFAULT_COEFFICIENTS))
    alone = [quantiles((0.99,))[1], quantiles((0.9,), **AT_RATE)[1]]
    assert asked.tolist() == [0, 1]
    for name in METRICS:
        np.testing.assert_allclose(found[name], [float(one[name][0]) for one in alone])
