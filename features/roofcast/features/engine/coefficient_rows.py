"""Rows of queries that each coefficient acts on."""

import numpy as np

from roofcast.features.engine.coefficients import NAMES
from roofcast.features.queries import BoolArray, Queries


def coefficient_rows(d: Queries) -> dict[str, BoolArray]:
    """Return the rows whose closed-loop estimate may depend on each coefficient: shape (n_row,) each.

    No other row changes by a bit with the coefficient.
    """
    is_static, is_apart = d["workload.is_static"] > 0, d["config.n_prefill_accelerator"] > 0
    is_fused, has_draft = d["config.flash_attention"] > 0.5, d["config.n_draft_token"] > 0
    has_exchange = (d["config.expert_rank"] > d["config.tp"]) | is_apart
    is_linked = (d["config.tp"] > 1) | (d["config.pp"] > 1) | (d["config.cp"] > 1) | has_exchange
    every = np.ones(len(is_static), dtype=bool)
    known = {
        "expert_ratio": d["model.n_moe_layer"] > 0,
        "padded_attention_ratio": ~is_fused,
        "layer_overhead_s": is_fused,
        "moe_overhead_s": d["model.n_moe_layer"] > 0,
        "linear_overhead_s": d["model.n_linear_layer"] > 0,
        "sparse_overhead_s": d["model.n_sparse_layer"] > 0,
        "mla_overhead_s": d["model.n_mla_layer"] > 0,
        "padded_layer_overhead_s": ~is_fused,
        "eager_layer_s": d["config.is_eager"] > 0.5,
        "link_ratio": is_linked,
        "link_latency_ratio": is_linked,
        "exchange_ratio": has_exchange,
        "amd_drift": (d["config.age_year"] > 0) & (d["hardware.is_amd"] > 0),
        "host_step_s": d["config.host_ratio"] > 0,
        "host_sequence_s": d["config.host_ratio"] > 0,
        "request_overhead_s": ~is_static,
        "startup_s": ~is_static,
        "batch_overhead_s": is_static,
        "kv_waste_padded": ~is_fused,
        "prefill_interference": ~is_static,
        "lockstep": d["workload.length_variation"] <= 0,
        "burst": ~is_static | is_apart,
        "collision": ~is_static | is_apart,
        "wait_step": ~is_static,
        "poll_ratio": ~is_static,
        "acceptance": has_draft & np.isnan(d["config.acceptance_ratio"]),
        "draft_ratio": has_draft,
    }
    return {name: known.get(name, every) for name in NAMES}
