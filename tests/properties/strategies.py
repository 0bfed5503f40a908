"""Random questions and coefficients for the properties of the estimate."""

import numpy as np
from hypothesis import strategies as st

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, PRIORS, Coefficients
from roofcast.features.engine.kernels.row_kernels import PRECISIONS
from tests.builders import FloatArray, an_example

Question = dict[str, FloatArray]

FARTHEST = 4.0
"""Prior standard deviations within which calibration stays."""


@st.composite
def models(draw: st.DrawFn) -> dict[str, float]:
    """Return descriptors of a dense, grouped, latent, sliding, sparse, expert or encoder-decoder model."""
    n_layer, n_head = draw(st.integers(1, 128)), draw(st.sampled_from([8, 16, 64, 128]))
    is_mla = draw(st.sampled_from([False, False, True]))
    n_kv_head = 1 if is_mla else draw(st.sampled_from([1, 2, 8]))
    n_sliding = 0 if is_mla else draw(st.integers(0, n_layer))
    n_sparse = n_layer * is_mla * draw(st.integers(0, 1))
    n_expert = draw(st.sampled_from([0, 0, 8, 64, 256]))
    hidden, width = n_head * draw(st.sampled_from([64, 128])), draw(st.sampled_from([256, 2048, 16384]))
    kv_width = 576 if is_mla else 2 * n_kv_head * 128
    mixer_in = (n_head + 2 * n_kv_head) * 128
    dense = n_layer * hidden * (mixer_in + n_head * 128 + 3 * width) + 32000 * hidden
    expert = n_layer * n_expert * 3 * hidden * width
    encoder = n_layer * draw(st.sampled_from([0, 0, 0, 1])) * (n_expert == 0) * (not is_mla)
    return {
        "model__n_layer": n_layer, "model__n_encoder_layer": encoder, "model__n_full_layer": n_layer - n_sliding,
        "model__n_sliding_layer": n_sliding, "model__n_sparse_layer": n_sparse,
        "model__sparse_top_k": 2048 * (n_sparse > 0), "model__n_moe_layer": n_layer * (n_expert > 0),
        "model__n_mlp_layer": n_layer, "model__n_mla_layer": n_layer * is_mla, "model__hidden_size": hidden,
        "model__mixer_in_width": mixer_in, "model__mixer_out_width": n_head * 128, "model__mlp_width": width,
        "model__moe_width": width, "model__n_param": dense + expert, "model__n_param_dense": dense,
        "model__n_param_expert": expert, "model__n_expert": n_expert,
        "model__n_expert_per_token": min(n_expert, draw(st.integers(1, 8))), "model__n_head": n_head,
        "model__n_kv_head": n_kv_head, "model__decode_qk_dim": 576 if is_mla else 128,
        "model__decode_v_dim": 512 if is_mla else 128, "model__kv_width": (n_layer - n_sliding) * kv_width,
        "model__kv_width_sliding": n_sliding * kv_width, "model__kv_width_layer": kv_width,
        "model__sliding_window": draw(st.sampled_from([128, 4096])) * (n_sliding > 0),
    }  # fmt: skip


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Return any closed-loop question whose experts are shared by the ranks of one request alone."""
    tp, pp, dp, cp = (draw(st.sampled_from(sizes)) for sizes in ([1, 2, 8], [1, 1, 4], [1, 1, 2], [1, 1, 1, 2]))
    peak = draw(st.floats(1e13, 5e15))
    return an_example(
        **draw(models()),
        hardware__memory_byte=draw(st.floats(8e9, 3e11)),
        hardware__bandwidth_byte_per_s=draw(st.floats(1e11, 1e13)),
        hardware__flop_per_s=peak,
        hardware__dense_flop_per_s=peak / draw(st.sampled_from([1, 2])),
        hardware__attention_flop_per_s=peak / draw(st.sampled_from([1, 2, 4])),
        hardware__link_byte_per_s=draw(st.floats(1e10, 2e12)),
        hardware__link_domain_size=(domain := draw(st.sampled_from([1, 4, 8, 72]))),
        hardware__host_size=draw(st.sampled_from([domain, max(domain, 8)])),
        config__n_accelerator=tp * pp * dp * cp,
        config__cp=cp,
        config__tp=tp,
        config__pp=pp,
        config__dp=dp,
        config__expert_rank=tp,
        config__ep=draw(st.sampled_from([1, tp])),
        config__engine=draw(st.integers(0, len(ENGINES) - 1)),
        config__dense_precision=draw(st.integers(0, len(PRECISIONS) - 2)),
        config__expert_precision=draw(st.integers(0, len(PRECISIONS) - 2)),
        config__weight_byte_per_element=draw(st.sampled_from([0.5, 1, 2])),
        config__flash_attention=draw(st.sampled_from([0, 1, 1])),
        config__n_draft_token=draw(st.sampled_from([0, 0, 3])),
        config__lora_rank=draw(st.sampled_from([0, 0, 16])),
        config__poll_interval_step=draw(st.sampled_from([1, 30])),
        workload__n_input_token=draw(st.floats(1, 1e5)),
        workload__n_output_token=draw(st.floats(1, 1e4)),
        workload__length_variation=draw(st.sampled_from([0.0, 0.1, 0.5])),
        workload__n_wave=draw(st.sampled_from([float("nan"), 1.0, 10.0])),
        workload__prefix_cache_ratio=draw(st.sampled_from([0.0, 0.0, 0.9])),
        workload__concurrency=draw(st.floats(1, 1e4)),
    )


@st.composite
def coefficients(draw: st.DrawFn) -> Coefficients:
    """Return any typical values that calibration may find."""
    sd = np.array([prior.log_sd for prior in PRIORS.values()])
    away = [draw(st.floats(-FARTHEST, FARTHEST)) for _ in PRIORS]
    return Coefficients(DEFAULT_COEFFICIENTS.typical + sd * away)
