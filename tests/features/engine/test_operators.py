import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.links import Links, all_reduce_s, point_to_point_s
from roofcast.features.engine.operators import (
    alone_s,
    eager_launch_s,
    estimate_prefill,
    estimate_step,
    new_token,
)
from roofcast.features.engine.pass_communication import exchange_s
from tests.builders import an_example
from tests.features.engine.ideal import INSTANT, a_setting

ONE = np.ones(1)
MEMORY_BOUND = {f"hardware__{name}": INSTANT for name in ("flop_per_s", "dense_flop_per_s", "attention_flop_per_s")}
COMPUTE_BOUND = {"hardware__bandwidth_byte_per_s": INSTANT}
MOE = {
    "model__n_moe_layer": 32,
    "model__n_mlp_layer": 0,
    "model__moe_width": 1024,
    "model__n_expert": 8,
    "model__n_expert_per_token": 2,
}
MLA = {
    "model__n_kv_head": 1,
    "model__n_mla_layer": 32,
    "model__decode_qk_dim": 576,
    "model__decode_v_dim": 512,
    "model__kv_width_layer": 576,
}
EXAMPLE_LINKS = Links(8.0, 300e9, 0.0, 50e9, 5e-6)


def moved_s(m: float, n: float, k: float, byte: float = 2.0) -> float:
    """Return the time of a product that is bound by 2 TB/s: its weight, and 16-bit activations in and out."""
    return (byte * n * k + 2 * m * (n + k)) / 2e12


def matrices_s(m: float, tp: float = 1.0) -> float:
    """Return the time of the example's products: 32 layers of four matrices, and the head."""
    mixer = moved_s(m, 12288 / tp, 4096) + moved_s(m, 4096, 4096 / tp)
    mlp = moved_s(m, 22016 / tp, 4096) + moved_s(m, 4096, 11008 / tp)
    return 32 * (mixer + mlp) + moved_s(m, 32000 / tp, 4096)


def test_a_decode_step_bound_by_memory() -> None:
    step = estimate_step(a_setting(an_example(**MEMORY_BOUND)), 8 * ONE)
    assert step.dense_s[0] == pytest.approx(matrices_s(8))
    assert step.attention_s[0] == pytest.approx(32 * 8 * 1100 * 8192 * 2 / 2e12)
    assert step.total_s[0] == pytest.approx(step.dense_s[0] + step.attention_s[0])
    for part in ("expert_s", "elementwise_s", "link_s", "overhead_s"):
        assert getattr(step, part)[0] == 0.0, part


def test_a_decode_step_bound_by_compute() -> None:
    step = estimate_step(a_setting(an_example(**COMPUTE_BOUND)), 512 * ONE)
    weights = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 32000 * 4096
    assert step.dense_s[0] == pytest.approx(2 * 512 * weights / 300e12)
    assert step.attention_s[0] == pytest.approx(2 * 512 * 32 * 32 * 1100 * 256 / 300e12)


def test_a_prefill_bound_by_compute() -> None:
    prefill = estimate_prefill(a_setting(an_example(**COMPUTE_BOUND)), 2 * ONE)
    weights = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert prefill.dense_s[0] == pytest.approx((2 * 2000 * weights + 2 * 2 * 32000 * 4096) / 300e12)
    assert prefill.attention_s[0] == pytest.approx(2 * 2 * 32 * 32 * 1000 * 500 * 256 / 300e12)


def test_elementwise_work_is_not_shared_by_ranks() -> None:
    for tp in (1.0, 4.0):
        step = estimate_step(a_setting(an_example(config__tp=tp), elementwise_ratio=10.0), 8 * ONE)
        assert step.elementwise_s[0] == pytest.approx(10 * 2 * 4096 * 32 * 8 / 2e12)


def test_the_costs_of_an_engine_add_up() -> None:
    own = {
        "step_overhead_s": 1e-3,
        "sequence_overhead_s": 1e-5,
        "layer_overhead_s": 2e-5,
        "padded_layer_overhead_s": 1e-4,
    }
    fused, padded = (
        a_setting(an_example(config__flash_attention=f, **MOE), **own, moe_overhead_s=3e-6) for f in (1.0, 0.0)
    )
    assert estimate_step(fused, 8 * ONE).overhead_s[0] == pytest.approx(1e-3 + 8e-5 + 32 * 2.3e-5)
    assert estimate_step(padded, 8 * ONE).overhead_s[0] == pytest.approx(1e-3 + 8e-5 + 32 * 1.03e-4)
    assert estimate_prefill(fused, ONE).overhead_s[0] == pytest.approx(32 * 2.3e-5)


@pytest.mark.parametrize(
    ("kind", "coefficient"), [("n_mla_layer", "mla"), ("n_sparse_layer", "sparse"), ("n_linear_layer", "linear")]
)
def test_layers_of_a_kind_have_costs_of_their_own(kind: str, coefficient: str) -> None:
    d = an_example(**{f"model__{kind}": 24})
    plain, own = (estimate_step(a_setting(d, **{f"{coefficient}_overhead_s": s}), ONE) for s in (0.0, 1e-5))
    assert own.total_s[0] - plain.total_s[0] == pytest.approx(24e-5)


def test_a_ratio_scales_the_part_that_it_is_named_for() -> None:
    d = an_example(**MOE)
    plain = estimate_step(a_setting(d), 8 * ONE)
    scaled = estimate_step(a_setting(d, dense_ratio=2.0, expert_ratio=3.0, decode_attention_ratio=5.0), 8 * ONE)
    assert scaled.dense_s[0] == pytest.approx(2 * plain.dense_s[0])
    assert scaled.expert_s[0] == pytest.approx(3 * plain.expert_s[0])
    assert scaled.attention_s[0] == pytest.approx(5 * plain.attention_s[0])


def test_tensor_parallelism_shares_weights_and_heads_and_adds_two_all_reduces_a_layer() -> None:
    step = estimate_step(a_setting(an_example(config__tp=4, **MEMORY_BOUND)), 8 * ONE)
    assert step.dense_s[0] == pytest.approx(matrices_s(8, tp=4))
    assert step.attention_s[0] == pytest.approx(32 * 8 * 1100 * 8192 * 2 / 2e12 / 4)
    message = 8 * ONE * 4096 * 2
    assert step.link_s[0] == pytest.approx(64 * all_reduce_s(message, 4.0, EXAMPLE_LINKS)[0])


def test_every_rank_reads_the_whole_latent_cache() -> None:
    steps = [estimate_step(a_setting(an_example(config__tp=tp, **MLA, **MEMORY_BOUND)), 8 * ONE) for tp in (1.0, 8.0)]
    for step in steps:
        assert step.attention_s[0] == pytest.approx(32 * 8 * 1100 * 576 * 2 / 2e12)


def test_ranks_beyond_the_key_value_heads_read_one_head_each() -> None:
    d = {"model__n_kv_head": 4, "model__kv_width_layer": 1024}
    four, eight = (
        estimate_step(a_setting(an_example(config__tp=tp, **d, **MEMORY_BOUND)), ONE).attention_s[0] for tp in (4, 8)
    )
    assert four == eight == pytest.approx(32 * 1100 * 256 * 2 / 2e12)


def test_a_sliding_window_limits_what_its_layers_read() -> None:
    d = an_example(model__n_full_layer=8, model__n_sliding_layer=24, model__sliding_window=128, **MEMORY_BOUND)
    step = estimate_step(a_setting(d), ONE)
    assert step.attention_s[0] == pytest.approx((8 * 1100 + 24 * 128) * 8192 * 2 / 2e12)


def test_sparse_attention_reads_the_tokens_that_the_indexer_picks() -> None:
    few, all_of_them = (
        estimate_step(a_setting(an_example(model__n_sparse_layer=32, model__sparse_top_k=k, **MEMORY_BOUND)), ONE)
        for k in (256, 2048)
    )
    assert few.attention_s[0] == pytest.approx(32 * 256 * 8192 * 2 / 2e12)
    assert all_of_them.attention_s[0] == pytest.approx(32 * 1100 * 8192 * 2 / 2e12)


def test_a_batch_reads_the_experts_that_its_tokens_choose() -> None:
    step = estimate_step(a_setting(an_example(**MOE, **MEMORY_BOUND)), 2 * ONE)
    assert step.expert_s[0] == pytest.approx(32 * 3.5 * 3 * 4096 * 1024 * 2 / 2e12)
    mixers = 32 * (moved_s(2, 12288, 4096) + moved_s(2, 4096, 4096))
    assert step.dense_s[0] == pytest.approx(mixers + moved_s(2, 32000, 4096))


def test_experts_spread_over_ranks_serve_the_tokens_of_all_of_them() -> None:
    d = an_example(**MOE, **MEMORY_BOUND, config__dp=4, config__expert_rank=4, config__ep=4, config__n_accelerator=4)
    step = estimate_step(a_setting(d), 2 * ONE)
    touched = 8 * (1 - 0.75**8)
    assert step.expert_s[0] == pytest.approx(32 * touched / 4 * 3 * 4096 * 1024 * 2 / 2e12)
    assert step.link_s[0] == pytest.approx(32 * exchange_s(a_setting(d), 2 * ONE * 4096 * 2)[0])


def test_data_parallel_ranks_without_shared_experts_exchange_nothing() -> None:
    step = estimate_step(a_setting(an_example(**MOE, config__dp=4, config__n_accelerator=4)), ONE)
    assert step.link_s[0] == 0.0
    assert step.total_s[0] == estimate_step(a_setting(an_example(**MOE)), ONE).total_s[0]


def test_a_prefill_alone_has_the_shared_experts_for_itself() -> None:
    setting = a_setting(an_example(**MOE, config__dp=4, config__expert_rank=4, config__ep=4, config__n_accelerator=4))
    together = estimate_prefill(setting, ONE)
    assert alone_s(setting, together, ONE)[0] < together.total_s[0]
    plain = a_setting(an_example(**MOE))
    lone = estimate_prefill(plain, ONE)
    assert alone_s(plain, lone, ONE)[0] == pytest.approx(lone.total_s[0])


def test_pipeline_stages_pass_their_tokens_on() -> None:
    alone, staged = (estimate_step(a_setting(an_example(config__pp=pp)), ONE) for pp in (1.0, 4.0))
    assert staged.dense_s[0] == alone.dense_s[0]
    message = point_to_point_s(ONE * 4096 * 2, np.array([True]), EXAMPLE_LINKS)
    assert staged.link_s[0] == pytest.approx(3 * message[0])


def test_context_parallel_ranks_share_the_context_and_the_prompt() -> None:
    alone, shared = (a_setting(an_example(config__cp=cp)) for cp in (1.0, 2.0))
    for whole, half in (
        (estimate_step(alone, 8 * ONE), estimate_step(shared, 8 * ONE)),
        (estimate_prefill(alone, ONE), estimate_prefill(shared, ONE)),
    ):
        assert half.attention_s[0] == pytest.approx(whole.attention_s[0] / 2, rel=0.01)
    compute = an_example(**MOE, **COMPUTE_BOUND, config__cp=2.0)
    prefill = estimate_prefill(a_setting(compute), ONE)
    assert prefill.expert_s[0] == pytest.approx(32 * 2 * 500 * 2 * 3 * 4096 * 1024 / 300e12)
    assert alone_s(a_setting(compute), prefill, ONE)[0] == pytest.approx(prefill.total_s[0])


def test_an_adapter_adds_eight_thin_products_a_layer() -> None:
    plain, adapted = (
        estimate_step(a_setting(an_example(config__lora_rank=rank, **MEMORY_BOUND)), 8 * ONE).dense_s[0]
        for rank in (0, 16)
    )
    assert adapted - plain == pytest.approx(32 * 8 * moved_s(8, 16, 4096))


def test_speculation_verifies_its_drafts_in_one_step() -> None:
    drafted = estimate_step(a_setting(an_example(config__n_draft_token=3, **MEMORY_BOUND)), 8 * ONE)
    plain = estimate_step(a_setting(an_example(**MEMORY_BOUND)), 8 * ONE)
    assert drafted.dense_s[0] == pytest.approx(matrices_s(32))
    assert drafted.attention_s[0] == pytest.approx(plain.attention_s[0])


@pytest.mark.parametrize(("ratio", "n_new"), [(0.0, 1000.0), (0.6, 400.0), (0.99, 10.0)])
def test_cached_prefixes_need_no_prefill(ratio: float, n_new: float) -> None:
    d = an_example(workload__prefix_cache_ratio=ratio, **COMPUTE_BOUND)
    assert new_token(d)[0] == pytest.approx(n_new)
    prefill = estimate_prefill(a_setting(d), ONE)
    weights = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert prefill.dense_s[0] == pytest.approx((2 * n_new * weights + 2 * 32000 * 4096) / 300e12)
    assert prefill.attention_s[0] == pytest.approx(2 * 32 * 32 * n_new * (1000 - n_new / 2) * 256 / 300e12)


def test_the_last_token_of_a_cached_prompt_is_computed_all_the_same() -> None:
    assert new_token(an_example(workload__n_input_token=8, workload__prefix_cache_ratio=0.99))[0] == 1.0


def test_an_encoder_reads_the_input_and_sees_all_of_it() -> None:
    d = an_example(model__n_encoder_layer=24, **COMPUTE_BOUND)
    prefill = estimate_prefill(a_setting(d), ONE)
    assert prefill.attention_s[0] == pytest.approx(24 * 2 * 32 * 1000 * 1000 * 256 / 300e12)
    step = estimate_step(a_setting(d), ONE)
    assert step.total_s[0] == estimate_step(a_setting(an_example(**COMPUTE_BOUND)), ONE).total_s[0]


@pytest.mark.parametrize("bandwidth", [4e12, 0.2e12])
def test_a_pass_without_graphs_takes_the_longer_of_launching_and_computing(bandwidth: float) -> None:
    queries = [an_example(config__is_eager=flag, hardware__bandwidth_byte_per_s=bandwidth) for flag in (0, 1)]
    kernel_s, eager_s = (estimate_step(a_setting(d, eager_layer_s=5e-4), ONE).total_s for d in queries)
    assert eager_s == pytest.approx(np.maximum(kernel_s, 32 * 5e-4))


@pytest.mark.parametrize(("engine", "fused"), [("transformers", 1.0), ("tgis", 0.0)])
def test_layers_of_transformers_launch_more_kernels(engine: str, fused: float) -> None:
    named = {"vllm": 1.0, engine: fused}
    queries = [an_example(config__engine=ENGINES.index(n), config__flash_attention=f) for n, f in named.items()]
    fused_s, unfused_s = (eager_launch_s(a_setting(d, eager_layer_s=5e-4), 32 * ONE) for d in queries)
    assert unfused_s / fused_s == pytest.approx(1.8)
