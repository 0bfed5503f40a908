"""An example query with round numbers for doctests."""

import numpy as np

from roofcast.features.engine.kernels.row_kernels import measured_hardware
from roofcast.features.queries import FloatArray


def example_descriptors() -> dict[str, FloatArray]:
    """Return the descriptors of a dense model of 7e9 weights on one accelerator of 80 GB, 2 TB/s, 300 TFLOP/s.

    32 layers, 32 heads of width 128, 16-bit weights and cache, 1000 input and 200 output tokens, concurrency 8.
    """
    accelerators, families = measured_hardware()
    values = {
        "model.n_layer": 32.0, "model.n_encoder_layer": 0.0, "model.n_full_layer": 32.0,
        "model.n_sliding_layer": 0.0, "model.n_sparse_layer": 0.0, "model.sparse_top_k": 0.0,
        "model.n_linear_layer": 0.0, "model.n_moe_layer": 0.0, "model.n_mlp_layer": 32.0, "model.n_mla_layer": 0.0,
        "model.hidden_size": 4096.0, "model.mixer_in_width": 3 * 4096.0, "model.mixer_out_width": 4096.0,
        "model.mlp_width": 11008.0, "model.moe_width": 0.0, "model.n_mlp_matrix": 3.0, "model.vocab_size": 32000.0,
        "model.n_param": 7e9, "model.n_param_dense": 7e9, "model.n_param_expert": 0.0,
        "model.n_param_linear": 7e9 - 2 * 32000 * 4096, "model.n_param_head": 32000.0 * 4096,
        "model.n_param_embedding": 32000.0 * 4096, "model.tower_byte": 0.0, "model.n_param_prediction": 0.0,
        "model.n_head_sliding": 32.0, "model.n_kv_head_sliding": 32.0, "model.decode_qk_dim_sliding": 128.0,
        "model.decode_v_dim_sliding": 128.0, "model.kv_width_layer_sliding": 8192.0, "model.index_byte": 0.0,
        "model.state_byte": 0.0, "model.entry_byte": 0.0, "model.window_block": 0.0, "model.n_param_copied": 0.0,
        "model.n_param_absorbed": 0.0, "config.embedding_byte_per_element": 2.0,
        "model.n_param_encoder": 0.0, "model.n_expert": 0.0, "model.n_expert_per_token": 0.0,
        "model.n_head": 32.0, "model.n_kv_head": 32.0, "model.qk_dim": 128.0, "model.v_dim": 128.0,
        "model.decode_qk_dim": 128.0, "model.decode_v_dim": 128.0, "model.kv_width": 32 * 8192.0,
        "model.kv_width_sliding": 0.0, "model.kv_width_layer": 8192.0,
        "model.sliding_window": 0.0,
        "model.max_context_token": 4096.0,
        "hardware.memory_byte": 80e9, "hardware.bandwidth_byte_per_s": 2e12, "hardware.flop_per_s": 300e12,
        "hardware.dense_flop_per_s": 300e12, "hardware.attention_flop_per_s": 300e12,
        "hardware.link_byte_per_s": 600e9, "hardware.peer_to_peer": 1.0,
        "hardware.link_domain_size": 8.0, "hardware.host_size": 8.0,
        "hardware.network_byte_per_s": 50e9, "hardware.network_latency_s": 5e-6, "hardware.tdp_w": 400.0,
        "hardware.accelerator": float(len(accelerators)), "hardware.family": float(len(families)),
        "hardware.is_amd": 0.0, "config.age_year": 0.0, "config.host_ratio": 0.0, "config.is_overlapped": 1.0,
        "config.is_mixed": 1.0,
        "config.n_accelerator": 1.0, "config.n_prefill_accelerator": 0.0, "config.tp": 1.0, "config.pp": 1.0,
        "config.dp": 1.0, "config.cp": 1.0, "config.ep": 1.0, "config.expert_rank": 1.0, "config.engine": 0.0,
        "config.expert_precision": 0.0, "config.dense_precision": 0.0, "config.attention_precision": 0.0,
        "config.weight_byte_per_element": 2.0, "config.dense_byte_per_element": 2.0,
        "config.activation_byte_per_element": 2.0, "config.kv_byte_per_element": 2.0,
        "config.head_byte_per_element": 2.0, "config.is_eager": 0.0,
        "config.flash_attention": 1.0, "config.n_draft_token": 0.0, "config.acceptance_ratio": float("nan"),
        "config.lora_rank": 0.0, "config.date": 2025.5,
        "config.poll_interval_step": 1.0, "config.batching_wait_step": 0.0,
        "config.chunk_token": 8192.0, "config.max_num_seqs": np.inf,
        "config.memory_ratio": 0.9, "config.is_recent": 0.0, "config.host_weight_byte": 0.0,
        "config.host_dense_ratio": 0.0, "config.host_expert_ratio": 0.0,
        "hardware.host_byte_per_s": 230e9, "hardware.bus_byte_per_s": 24e9,
        "config.n_draft_layer": 0.0, "config.in_flight_token": 8192.0,
        "config.served_context_token": 0.0, "config.keeps_prefixes": 0.0,
        "workload.n_input_token": 1000.0, "workload.n_output_token": 200.0, "workload.length_variation": 0.5,
        "workload.n_wave": np.nan, "workload.n_request": np.nan, "workload.duration_s": np.nan,
        "workload.prefix_cache_ratio": 0.0, "workload.concurrency": 8.0,
        "workload.request_rate_per_s": float("nan"), "workload.is_static": 0.0,
        "workload.is_mean": 1.0, "workload.quantile": 0.5,
    }  # fmt: skip
    return {name: np.array([value]) for name, value in values.items()}
