from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.features.jobs.closed_forms.consumer_pool import pool_flop_per_s
from roofcast.features.jobs.closed_forms.expert_reduction import reduced_parameters
from roofcast.features.jobs.closed_forms.federated_rounds import federated_byte
from roofcast.features.jobs.closed_forms.gateway_share import gateway_share
from roofcast.features.jobs.closed_forms.gradient_compression import Compression, reduction_s
from roofcast.features.jobs.closed_forms.long_context import saved_flop_ratio
from roofcast.features.jobs.closed_forms.socket_decode import socket_decode_s

KINDS: list[Compression] = ["none", "sign", "top_k", "power_sgd", "acp_sgd"]
POOL = {"efficiency": 0.4, "stage_flop": 20e12, "message_byte": 8e6, "byte_per_s": 12.5e6}


@given(st.sampled_from(KINDS), st.integers(2, 64))
def test_a_faster_network_never_takes_longer(kind: Compression, n_rank: int) -> None:
    slow, fast = (reduction_s(kind, [(512, 512)], n_rank=n_rank, byte_per_s=rate) for rate in (1.25e8, 1.25e10))
    assert fast < slow


def test_one_of_two_factors_takes_half() -> None:
    both, one = (reduction_s(kind, [(512, 512)], n_rank=8, byte_per_s=1e9, latency_s=1e-5) for kind in KINDS[3:])
    assert one == pytest.approx(both / 2)


@pytest.mark.parametrize("change", [{"failures_per_h": 0.5, "recovery_h": 1.0}, {"byte_per_s": 1e6}])
def test_churn_and_slow_links_cost_throughput(change: dict[str, float]) -> None:
    best = pool_flop_per_s(50, 59.5e12, n_micro_batch=100, n_stage=25, **POOL)
    worse = pool_flop_per_s(50, 59.5e12, n_micro_batch=100, n_stage=25, **{**POOL, **change})
    assert worse < best <= 50 * 59.5e12 * 0.4


def test_dense_models_lose_nothing() -> None:
    llama = load_catalog().models["meta-llama/Llama-2-7b-hf"]
    assert reduced_parameters(llama, 0.5, 0.5) == (llama.n_param, llama.n_param_active)


def test_savings_of_short_windows_lie_between_linear_and_quadratic() -> None:
    llama = load_catalog().models["meta-llama/Llama-2-7b-hf"]
    assert 0.7 < saved_flop_ratio(llama, 1e5, 0.3) < 0.91


def test_traffic_grows_with_rounds_and_clients() -> None:
    assert federated_byte(2, 3, 1e6) == 6 * federated_byte(1, 1, 1e6)


def test_a_gateway_that_cannot_keep_up() -> None:
    with pytest.raises(InputError, match="n_worker"):
        gateway_share(2.0, 0.02, arrivals_per_s=50.0)
    assert gateway_share(2.0, 0.02, arrivals_per_s=50.0, n_worker=2) > gateway_share(2.0, 0.02)


def test_72b_on_two_sockets_takes_about_140_ms() -> None:
    """Published: 140 ms a token; INT8 on 5th-generation Xeon is an assumption."""
    assert socket_decode_s(72.7e9, 2, 358.4e9, n_layer=80, reduction_s=1e-4) == pytest.approx(0.140, rel=0.05)
