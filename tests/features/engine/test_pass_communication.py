import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import estimate
from roofcast.features.engine.kernels.row_kernels import PRECISIONS, kernels_by_row
from roofcast.features.engine.operators import estimate_prefill, estimate_step
from roofcast.features.engine.pass_communication import (
    EngineInputs,
    exchange_s,
    merge_s,
    pass_link_s,
    prefill_descriptors,
    ring_s,
    transfer_s,
)
from tests.builders import FloatArray, an_example
from tests.features.engine.ideal import a_setting, free_coefficients
from tests.features.engine.test_operators import MOE

ONE = np.ones(1)
LINK_BYTE_PER_S = 300e9
WIDE = {"config__dp": 32, "config__expert_rank": 32, "config__n_accelerator": 32, "hardware__host_size": 72}


def spread(**changes: float) -> dict[str, FloatArray]:
    """Return 256 experts on 32 ranks of attention, eight of them for a token."""
    return an_example(**{**MOE, "model__n_expert": 256, "model__n_expert_per_token": 8, **WIDE, **changes})


def test_wide_experts_get_only_the_tokens_that_chose_them() -> None:
    setting = a_setting(spread(config__ep=32))
    n_met = 32 * (1 - (31 / 32) ** 8)
    assert exchange_s(setting, 1e9 * ONE)[0] == pytest.approx(2 * 31 / 32 * n_met * 1e9 / LINK_BYTE_PER_S)


def test_slices_of_experts_need_the_tokens_of_all_ranks() -> None:
    setting = a_setting(spread(config__ep=1))
    assert exchange_s(setting, 1e9 * ONE)[0] == pytest.approx(2 * 31 * 1e9 / LINK_BYTE_PER_S)


def test_tokens_go_out_in_the_precision_of_the_experts_and_come_back_in_16_bits() -> None:
    wide, narrow = (
        exchange_s(a_setting(spread(config__ep=32, config__expert_precision=PRECISIONS.index(p))), 1e9 * ONE)[0]
        for p in ("bf16", "fp8_block")
    )
    assert narrow == pytest.approx(0.75 * wide)


def test_a_domain_that_holds_all_ranks_exchanges_faster_than_several() -> None:
    rack, hosts = (exchange_s(a_setting(spread(config__ep=32, hardware__host_size=n)), 1e9 * ONE)[0] for n in (72, 8))
    assert hosts > 3 * rack


def test_calibration_scales_what_the_kernel_tables_say() -> None:
    d = an_example(config__tp=4)
    plain = a_setting(d)
    half = a_setting(d, link_ratio=0.5)
    assert pass_link_s(half, ONE, ONE)[0] == pytest.approx(2 * pass_link_s(plain, ONE, ONE)[0])
    assert exchange_s(a_setting(spread(), exchange_ratio=3.0), ONE)[0] == pytest.approx(
        3 * exchange_s(a_setting(spread()), ONE)[0]
    )


def test_no_link_is_faster_than_its_data_sheet() -> None:
    d = an_example(config__tp=4)
    eager = pass_link_s(a_setting(d, link_ratio=9.0), 1e6 * ONE, ONE)[0]
    assert eager == pytest.approx(pass_link_s(a_setting(d), 1e6 * ONE, ONE)[0])


def test_pcie_of_a_host_crowds_where_a_switch_does_not() -> None:
    switched, bus = (
        kernels_by_row(an_example(hardware__link_domain_size=n, config__engine=ENGINES.index("vllm"))) for n in (8, 1)
    )
    assert np.all(bus.all_reduce.crowding > 3 * switched.all_reduce.crowding)
    assert bus.dense.launch_s == switched.dense.launch_s


def test_engines_without_kernels_of_their_own_call_nccl() -> None:
    own, nccl = (
        kernels_by_row(an_example(config__engine=ENGINES.index(engine))).all_reduce for engine in ("sglang", "tgi")
    )
    assert np.all(own.launch_s < 2e-6)
    assert np.all(nccl.launch_s > 2e-6)


def test_a_ring_hides_behind_attention_until_it_is_longer() -> None:
    d = an_example(config__cp=4)
    block = 250 * 8192 * 2 / LINK_BYTE_PER_S
    setting = a_setting(d)
    assert ring_s(setting, 250 * ONE, 0 * ONE)[0] == pytest.approx(3 * 32 * block)
    assert ring_s(setting, 250 * ONE, 32 * block * ONE)[0] == pytest.approx(3 * 32 * block * 3 / 4)
    assert ring_s(setting, 250 * ONE, ONE)[0] == 0.0
    shown = [
        estimate_prefill(a_setting(an_example(config__cp=4, workload__n_input_token=n)), ONE).link_s[0]
        for n in (1e3, 1e5)
    ]
    assert shown[0] > shown[1] == 0.0


def test_ranks_of_a_context_gather_their_parts_of_each_output() -> None:
    setting = a_setting(an_example(config__cp=4))
    assert merge_s(setting, 8 * ONE)[0] == pytest.approx(32 * 3 * 8 * 32 * 129 * 2 / LINK_BYTE_PER_S)
    assert estimate_step(setting, 8 * ONE).link_s[0] == pytest.approx(merge_s(setting, 8 * ONE)[0])


def test_one_rank_of_context_is_none() -> None:
    assert merge_s(a_setting(), ONE)[0] == ring_s(a_setting(), ONE, 0 * ONE)[0] == 0.0


def test_a_cache_moves_while_its_prompt_is_prefilled() -> None:
    apart = {"config__n_accelerator": 4, "config__n_prefill_accelerator": 4, "config__tp": 4}
    setting = a_setting(an_example(**apart))
    whole = 1000 * 32 * 8192 * 2 / 4 / LINK_BYTE_PER_S
    assert transfer_s(setting, ONE, 0 * ONE)[0] == pytest.approx(whole)
    assert transfer_s(setting, ONE, ONE)[0] == pytest.approx(whole / 32)
    far = a_setting(an_example(**apart, hardware__host_size=4))
    assert transfer_s(far, ONE, 0 * ONE)[0] == pytest.approx(whole * LINK_BYTE_PER_S / 50e9 + 5e-6)


def test_a_slower_network_delays_the_first_token_of_prefill_apart() -> None:
    apart = {"config__n_prefill_accelerator": 1, "hardware__host_size": 1}
    near, far = (estimate(an_example(**apart, hardware__network_byte_per_s=b), C) for b in (50e9, 50e6))
    assert far.ttft_s[0] - near.ttft_s[0] > 1.0
    assert far.transfer_s[0] > near.transfer_s[0] > 0
    assert far.tpot_s[0] < near.tpot_s[0]  # more requests are on their way, fewer decode
    assert estimate(an_example(), C).transfer_s[0] == 0.0


def test_prefill_apart_shares_experts_among_its_own_accelerators() -> None:
    d = prefill_descriptors(spread(config__ep=32, config__n_prefill_accelerator=8))
    assert d["config.expert_rank"][0] == d["config.ep"][0] == 8.0
    assert prefill_descriptors(spread(config__ep=32))["config.expert_rank"][0] == 32.0


def test_a_wide_area_network_makes_the_pipeline_of_pooled_accelerators() -> None:
    pooled = {"config__pp": 4, "config__n_accelerator": 4, "hardware__host_size": 1}
    d = an_example(**pooled, hardware__network_byte_per_s=12.5e6, hardware__network_latency_s=0.05)
    step = estimate_step(a_setting(d), ONE)
    assert step.link_s[0] == pytest.approx(3 * (0.05 + 4096 * 2 / 12.5e6))


def test_messages_through_host_memory_take_longer_and_use_a_ring() -> None:
    bus = {"hardware__link_domain_size": 1, "config__engine": ENGINES.index("vllm")}
    direct, staged = (kernels_by_row(an_example(hardware__peer_to_peer=flag, **bus)) for flag in (1, 0))
    assert staged.all_to_all.bandwidth_ratio == pytest.approx(0.5 * direct.all_to_all.bandwidth_ratio)
    assert staged.all_to_all.step_s > direct.all_to_all.step_s
    four = {"config__tp": 4, "config__n_accelerator": 4, "hardware__link_byte_per_s": 64e9, **bus}
    queries = [an_example(hardware__peer_to_peer=flag, **four) for flag in (1, 0)]
    inputs = [EngineInputs(d, free_coefficients(), kernels_by_row(d)) for d in queries]
    direct_s, staged_s = (pass_link_s(one, ONE, 32 * ONE) for one in inputs)
    assert staged_s > 1.5 * direct_s
