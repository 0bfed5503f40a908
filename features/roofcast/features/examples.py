"""A round-numbered question for doctests, small enough to check by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def example_descriptors() -> dict[str, npt.NDArray[np.float64]]:
    """Return one question: a dense model of 7e9 weights on one accelerator of 80 GB, 2 TB/s and 300 TFLOP/s.

    32 layers, 32 heads of 128, 16-bit weights and cache, 1000 tokens in, 200 out, 8 requests in flight.
    """
    values = {
        "model.n_layer": 32.0, "model.n_encoder_layer": 0.0, "model.hidden_size": 4096.0,
        "model.n_param": 7e9, "model.n_param_dense": 7e9, "model.n_param_expert": 0.0,
        "model.n_param_encoder": 0.0, "model.n_expert": 0.0, "model.n_expert_per_token": 0.0,
        "model.attention_width": 32 * 4096.0, "model.kv_width": 32 * 8192.0, "model.kv_width_sliding": 0.0,
        "model.sliding_window": 0.0, "model.n_kv_head": 32.0,
        "hardware.memory_byte": 80e9, "hardware.bandwidth_byte_per_s": 2e12, "hardware.flop_per_s": 300e12,
        "hardware.link_byte_per_s": 600e9,
        "config.n_accelerator": 1.0, "config.tp": 1.0, "config.pp": 1.0, "config.dp": 1.0,
        "config.weight_byte_per_element": 2.0, "config.kv_byte_per_element": 2.0, "config.flash_attention": 1.0,
        "workload.n_input_token": 1000.0, "workload.n_output_token": 200.0, "workload.concurrency": 8.0,
        "workload.request_rate_per_s": float("nan"), "workload.is_mean": 1.0, "workload.quantile": 0.5,
    }  # fmt: skip
    return {name: np.array([value]) for name, value in values.items()}
