"""Compute kernels: matrix products, attention, routed experts."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from research.kernels.kind import Kind, is_other_kernel
from research.kernels.precisions import (
    CACHE,
    PRECISIONS,
    attention_precision,
    bandwidth_byte_per_s,
    l2_byte,
    peak_flop_per_s,
)
from roofcast.features.engine.kernel_times import decode_attention_s, gemm_s, moe_s, prefill_attention_s

MLA_WIDTH: Final = 576
"""Cached elements per token: 512 latent and 64 rotary, as in DeepSeek-V2 and later models."""

IN_L2: Final = (1 / 16, 1.0)
"""Range of KV cache size over L2 size that is rejected for decoding: repeated runs hit L2, a step of a full model
does not. Smaller caches measure the launch overhead."""

_COMPUTED_IN = {"bf16": "bf16", "fp8_cache": "bf16", "fp8": "fp8"}
_ATTENTION_SPREAD = (1.0, 0.15, 0.6, 0.7, 0.7, 0.7)
_LATENT_SPREAD = (1.0, 0.1, 0.25, 0.7, 0.4, 0.7)


def _peaks(table: pd.DataFrame, computed_in: pd.Series[str]) -> dict[str, Any]:
    return {
        "flop_per_s": peak_flop_per_s(table["accelerator"], computed_in),
        "bandwidth_byte_per_s": bandwidth_byte_per_s(table["accelerator"]),
    }


def _weights(table: pd.DataFrame, column: str) -> dict[str, Any]:
    chosen = table[column].map(PRECISIONS)
    return {
        "precision": chosen.map(lambda p: p.name),
        "weight_byte": chosen.map(lambda p: p.weight_byte),
        **_peaks(table, chosen.map(lambda p: p.computed_in)),
    }


def _gemm(table: pd.DataFrame) -> pd.DataFrame:
    activation = table["gemm_dtype"].map({name: p.activation_byte for name, p in PRECISIONS.items()})
    sizes = {name: table[name] for name in ("m", "n", "k")}
    return pd.DataFrame({**sizes, "activation_byte": activation, **_weights(table, "gemm_dtype")})


def _is_in_l2(table: pd.DataFrame) -> pd.Series[bool]:
    token_byte = table["kv_cache_dtype"].map(CACHE) * (
        2 * table["head_dim"] * table["num_key_value_heads"] if "head_dim" in table else MLA_WIDTH
    )
    in_l2 = table["batch_size"] * table["step"] * token_byte / l2_byte(table["accelerator"])
    return in_l2.between(*IN_L2)


def _heads(table: pd.DataFrame) -> dict[str, Any]:
    window = table["window_size"].fillna(0) if "window_size" in table else 0 * table["batch_size"]
    return {
        "n_sequence": table["batch_size"],
        "n_head": table["num_heads"],
        "n_kv_head": table["num_key_value_heads"],
        "qk_dim": table["head_dim"],
        "v_dim": table["head_dim"],
        "window": window,
        "kv_byte": table["kv_cache_dtype"].map(CACHE),
    }


def _attention_arguments(table: pd.DataFrame, computed: str = "attn_dtype") -> dict[str, Any]:
    precision = attention_precision(table, computed)
    return {"precision": precision, **_peaks(table, precision.map(_COMPUTED_IN))}


def _prefill(table: pd.DataFrame) -> pd.DataFrame:
    tokens = {"n_query": table["isl"], "n_context": table["isl"] + table["step"]}
    return pd.DataFrame({**_heads(table), **tokens, **_attention_arguments(table)})


def _decode(table: pd.DataFrame) -> pd.DataFrame:
    tokens = {"n_context": table["step"] + 1, "kv_width": 2 * table["head_dim"]}
    return pd.DataFrame({**_heads(table), **tokens, **_attention_arguments(table)})


def _mla(table: pd.DataFrame) -> dict[str, Any]:
    return {
        "n_sequence": table["batch_size"],
        "n_head": table["num_heads"],
        "window": 0.0,
        "kv_byte": table["kv_cache_dtype"].map(CACHE),
        **_attention_arguments(table, "mla_dtype"),
    }


def _mla_prefill(table: pd.DataFrame) -> pd.DataFrame:
    tokens = {"n_query": table["isl"], "n_context": table["isl"] + table["step"]}
    return pd.DataFrame({**_mla(table), **tokens, "n_kv_head": table["num_heads"], "qk_dim": 192.0, "v_dim": 128.0})


def _mla_decode(table: pd.DataFrame) -> pd.DataFrame:
    widths = {"n_kv_head": 1.0, "qk_dim": 576.0, "v_dim": 512.0, "kv_width": float(MLA_WIDTH)}
    return pd.DataFrame({**_mla(table), "n_context": table["step"] + 1, **widths})


def _moe(table: pd.DataFrame) -> pd.DataFrame:
    names = {
        "n_token": "num_tokens", "hidden": "hidden_size", "width": "inter_size", "n_expert": "num_experts",
        "top_k": "topk", "tp": "moe_tp_size", "ep": "moe_ep_size",
    }  # fmt: skip
    sizes = {name: table[column] for name, column in names.items()}
    return pd.DataFrame({**sizes, **_weights(table, "moe_dtype")})


COMPUTE_KINDS: Final = (
    Kind(
        name="gemm",
        table="gemm_perf",
        reject={"thinner_than_a_layer": lambda t: (t["n"] < 128) | (t["k"] < 128)},
        describe=_gemm,
        seconds=gemm_s,
        start=(5e-6, 0.85, 0.75, 0.2, 256.0, 1e-9),
        ideal=(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        spread=(1.0, 0.15, 0.5, 0.7, 0.7, 0.7),
    ),
    Kind(
        name="prefill_attention",
        table="context_attention_perf",
        reject={
            "shorter_than_a_prompt": lambda t: t["isl"] < 16,
            "fallback_kernel": is_other_kernel(["attn_dtype", "kv_cache_dtype"]),
        },
        describe=_prefill,
        seconds=prefill_attention_s,
        start=(8e-6, 0.7, 0.6, 64.0, 64.0, 16.0),
        ideal=(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        spread=_ATTENTION_SPREAD,
    ),
    Kind(
        name="decode_attention",
        table="generation_attention_perf",
        reject={
            "shorter_than_a_page": lambda t: t["step"] < 15,
            "cache_in_l2": _is_in_l2,
            "more_than_32_heads_a_group": lambda t: t["num_heads"] > 32 * t["num_key_value_heads"],
            "fallback_kernel": is_other_kernel(["attn_dtype", "kv_cache_dtype"]),
        },
        describe=_decode,
        seconds=decode_attention_s,
        start=(8e-6, 0.8, 0.3, 64.0, 0.03, 16.0),
        ideal=(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        spread=_ATTENTION_SPREAD,
    ),
    Kind(
        name="mla_prefill",
        table="context_mla_perf",
        reject={
            "shorter_than_a_prompt": lambda t: t["isl"] < 16,
            "fallback_kernel": is_other_kernel(["mla_dtype", "kv_cache_dtype"]),
        },
        describe=_mla_prefill,
        seconds=prefill_attention_s,
        start=(8e-6, 0.8, 0.6, 64.0, 64.0, 8.0),
        ideal=(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        spread=_ATTENTION_SPREAD,
    ),
    Kind(
        name="mla_decode",
        table="generation_mla_perf",
        reject={
            "shorter_than_a_page": lambda t: t["step"] < 15,
            "cache_in_l2": _is_in_l2,
            "fallback_kernel": is_other_kernel(["mla_dtype", "kv_cache_dtype"]),
        },
        describe=_mla_decode,
        seconds=decode_attention_s,
        start=(8e-6, 0.8, 0.5, 64.0, 0.12, 8.0),
        ideal=(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        spread=_LATENT_SPREAD,
    ),
    Kind(
        name="moe",
        table="moe_perf",
        reject={"other_routing": lambda t: t["distribution"] != "power_law_1.2"},
        describe=_moe,
        seconds=moe_s,
        start=(25e-6, 0.8, 0.6, 0.12, 6.0, 0.3),
        ideal=(0.0, 1.0, 1.0, 0.0, 2.0, 0.0),
        spread=(1.0, 0.15, 0.6, 0.7, 0.7, 0.5),
    ),
)
"""Compute kernels; priors by judgement: tiles of some 64 rows at 300 operations a byte, pages of 64 tokens, launches
of some microseconds."""
