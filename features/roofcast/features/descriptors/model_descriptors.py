"""Architecture descriptors: weights by role, attention widths and cache per token."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from roofcast.data.specs import ModelSpec

_LEAST_MIXER_RATIO: Final = 1.25
"""Least ratio of the weights of attention to those of its output projection: one key-value head for eight query
heads."""


@functools.lru_cache(maxsize=1024)
def describe_model(spec: ModelSpec) -> Mapping[str, float]:
    """Return the ``model.`` descriptors by name; units are in `roofcast.features.columns.DESCRIPTORS`."""
    columns = {
        "model.n_layer": spec.n_layer,
        "model.n_encoder_layer": spec.n_encoder_layer,
        "model.n_sliding_layer": spec.n_sliding_layer,
        "model.n_sparse_layer": spec.n_sparse_layer,
        "model.sparse_top_k": spec.sparse_top_k,
        "model.n_linear_layer": spec.n_linear_layer,
        "model.n_moe_layer": spec.n_layer - spec.n_dense_layer if spec.n_expert else 0,
        "model.hidden_size": spec.hidden_size,
        "model.moe_width": spec.moe_intermediate_size,
        "model.n_mlp_matrix": _n_matrix(spec),
        "model.vocab_size": spec.vocab_size,
        "model.n_param": spec.n_param,
        "model.n_param_expert": expert_param(spec),
        "model.n_param_encoder": encoder_param(spec),
        "model.n_expert": spec.n_expert,
        "model.n_expert_per_token": spec.n_expert_per_token,
        "model.sliding_window": spec.sliding_window,
        "model.max_context_token": spec.max_context_token or float("inf"),
        **_dense(spec),
        **_attention(spec),
    }
    return MappingProxyType(columns)


def _dense(spec: ModelSpec) -> dict[str, float]:
    """Return the widths of the products outside routed experts.

    Notes
    -----
    A decode step reads every weight except the embeddings (one row of each), the encoder and the routed experts that
    no token of the batch chose. Tied embeddings are read as the output head. Weights that belong to neither head,
    MLP, expert, encoder nor embedding are counted as attention. Hybrids whose layers are either attention or MLP have
    fewer MLPs than layers; their MLPs get the weights that attention leaves.
    """
    n_head_param = spec.vocab_size * spec.hidden_size
    n_looked_up = spec.n_param_lookup + (0 if spec.tie_word_embeddings else n_head_param)
    n_elsewhere = expert_param(spec) + encoder_param(spec) + n_looked_up
    n_dense = max(spec.n_param - n_elsewhere, spec.hidden_size)
    out_width = spec.n_head * _value_dim(spec)
    n_mixer_least = spec.n_layer * spec.hidden_size * out_width * _LEAST_MIXER_RATIO
    n_mlp_param = min(mlp_param(spec), max(n_dense - n_head_param - n_mixer_least, 0))
    n_mlp_layer = spec.n_layer if spec.shared_expert_intermediate_size else _n_dense_layer(spec)
    n_mixer_param = max(n_dense - n_mlp_param - n_head_param, n_mixer_least)
    return {
        "model.n_param_dense": n_dense,
        "model.n_mlp_layer": n_mlp_layer,
        "model.mlp_width": n_mlp_param / max(n_mlp_layer, 1) / _n_matrix(spec) / spec.hidden_size,
        "model.mixer_in_width": n_mixer_param / spec.n_layer / spec.hidden_size - out_width,
        "model.mixer_out_width": out_width,
    }


def _attention(spec: ModelSpec) -> dict[str, float]:
    # A layer of full attention may keep one cache entry for several tokens.
    is_mla = spec.attention == "mla"
    n_full = spec.n_layer - spec.n_sliding_layer - spec.n_linear_layer
    width = kv_width_per_layer(spec)
    return {
        "model.n_full_layer": n_full,
        "model.n_mla_layer": spec.n_layer if is_mla else 0,
        "model.n_head": spec.n_head,
        "model.n_kv_head": 1 if is_mla else spec.n_kv_head,
        "model.qk_dim": spec.head_dim,
        "model.v_dim": _value_dim(spec),
        "model.decode_qk_dim": spec.kv_lora_rank + spec.qk_rope_head_dim if is_mla else spec.head_dim,
        "model.decode_v_dim": spec.kv_lora_rank if is_mla else _value_dim(spec),
        "model.kv_width": n_full * width / max(spec.kv_compression, 1),
        "model.kv_width_sliding": spec.n_sliding_layer * width,
        "model.kv_width_layer": width,
    }


def expert_param(spec: ModelSpec) -> int:
    """Return the weights of all routed experts.

    Notes
    -----
    ``MoE layers x experts x matrices x hidden x width``, with three matrices if gated and two if plain.
    """
    n_moe_layer = spec.n_layer - spec.n_dense_layer
    return n_moe_layer * spec.n_expert * _n_matrix(spec) * spec.hidden_size * spec.moe_intermediate_size


def mlp_param(spec: ModelSpec) -> int:
    """Return the weights of the dense MLPs and the shared experts of all decoder layers."""
    shared = (spec.n_layer - spec.n_dense_layer) * spec.shared_expert_intermediate_size if spec.n_expert else 0
    dense = _n_dense_layer(spec) * spec.intermediate_size
    return _n_matrix(spec) * spec.hidden_size * (shared + dense)


def encoder_param(spec: ModelSpec) -> int:
    """Return the weights of the encoder: four attention matrices and the MLP of each of its layers."""
    attention = 4 * spec.hidden_size * spec.n_head * spec.head_dim
    mlp = _n_matrix(spec) * spec.hidden_size * spec.intermediate_size
    return spec.n_encoder_layer * (attention + mlp)


def kv_width_per_layer(spec: ModelSpec) -> int:
    """Return the cache elements of one token in one layer.

    Notes
    -----
    Keys and values of all key-value heads; for MLA the compressed latent and the shared rotary key.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1 (multi-head latent attention).
    """
    if spec.attention == "mla":
        return spec.kv_lora_rank + spec.qk_rope_head_dim
    return spec.n_kv_head * (spec.head_dim + _value_dim(spec))


def _n_matrix(spec: ModelSpec) -> int:
    return 3 if spec.mlp_gated else 2


def _n_dense_layer(spec: ModelSpec) -> int:
    return spec.n_dense_layer if spec.n_expert else spec.n_layer


def _value_dim(spec: ModelSpec) -> int:
    return spec.v_head_dim or spec.head_dim
