"""Architecture descriptors: weights by role, attention widths, cache and state, all from the layers of the spec."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from roofcast.data.layer_kinds import (
    Attention,
    Encoder,
    Experts,
    Lookup,
    Mlp,
    Module,
    Recurrent,
    of_kind,
    text_param,
    unroll,
)
from roofcast.data.specs import ModelSpec, StoredBits

_LEAST_MIXER_RATIO: Final = 1.25
"""Least ratio of the weights of attention to those of its output projection: one key-value head for eight query
heads."""


@functools.lru_cache(maxsize=1024)
def describe_model(spec: ModelSpec) -> Mapping[str, float]:
    """Return the ``model.`` descriptors by name; units are in `roofcast.features.columns.DESCRIPTORS`."""
    mlps, mixtures = of_kind(spec.layers, Mlp), of_kind(spec.layers, Experts)
    columns = {
        "model.n_layer": spec.n_layer,
        "model.n_encoder_layer": spec.n_encoder_layer,
        "model.n_linear_layer": spec.n_linear_layer,
        "model.n_moe_layer": sum(k.n for k in mixtures),
        "model.hidden_size": spec.hidden_size,
        "model.moe_width": _mean(mixtures, lambda k: k.width * (k.latent or spec.hidden_size) / spec.hidden_size),
        "model.n_mlp_matrix": 3 if spec.mlp_gated else 2,
        "model.vocab_size": spec.vocab_size,
        "model.n_param": spec.n_param,
        "model.n_expert": spec.n_expert,
        "model.n_expert_per_token": spec.n_expert_per_token,
        "model.max_context_token": spec.max_context_token or float("inf"),
        **_weights(spec, mlps, mixtures),
        **_attention(of_kind(spec.layers, Attention)),
        "model.n_param_copied": sum(k.n_param_copied(spec.hidden_size) for k in of_kind(spec.layers, Attention)),
        "model.state_byte": sum(k.n * k.state_byte for k in of_kind(spec.layers, Recurrent)),
    }
    return MappingProxyType(columns)


def _weights(spec: ModelSpec, mlps: Sequence[Mlp], mixtures: Sequence[Experts]) -> dict[str, float]:
    """Return the weights by role and the widths of the products outside routed experts.

    Notes
    -----
    A decode step reads every weight except the embeddings (one row of each), the encoder and the routed experts that
    no token of the batch chose. Tied embeddings are read as the output head. Weights that belong to neither head,
    MLP, expert, encoder nor embedding, such as routers and norms, are read with the mixers. Each pass of a loop reads
    the weights of its layers, which memory holds once.
    """
    hidden, passes = spec.hidden_size, unroll(spec.layers)
    attention, recurrent = of_kind(spec.layers, Attention), of_kind(spec.layers, Recurrent)
    n_expert = sum(k.n_param_routed(hidden) for k in mixtures)
    n_again = text_param(passes, hidden) - text_param(spec.layers, hidden) + n_expert
    n_again -= sum(k.n_param_routed(hidden) for k in of_kind(passes, Experts))
    n_mlp = sum(k.n_param(hidden) for k in mlps) + sum(k.n_param_shared(hidden) for k in mixtures)
    n_mlp_passed = sum(k.n_param(hidden) for k in of_kind(passes, Mlp))
    n_mlp_passed += sum(k.n_param_shared(hidden) for k in of_kind(passes, Experts))
    n_mlp_layer = sum(k.n for k in mlps) + sum(k.n for k in mixtures if k.shared_width)
    encoders, tables = of_kind(spec.layers, Encoder), of_kind(spec.layers, Lookup)
    n_encoder = sum(k.n_param_encoder(hidden) for k in encoders)
    n_mixer = sum(k.n_param(hidden) for k in attention) + sum(k.n_param(hidden) for k in recurrent)
    n_mixer += sum(k.n_param(hidden) for k in encoders) - n_encoder
    n_table = spec.vocab_size * hidden
    n_embedding = sum(k.n_param(hidden) for k in tables) + (0 if spec.tie_word_embeddings else n_table)
    out = sum(k.n * k.n_head * k.v_dim for k in attention) + sum(k.n * k.out_width for k in recurrent)
    out_width = max(out / spec.n_layer, 1.0)
    n_dense = max(spec.n_param + n_again - n_expert - n_encoder - n_embedding, hidden)
    n_mixer_least = spec.n_layer * hidden * out_width * _LEAST_MIXER_RATIO
    n_read_mlp = min(n_mlp_passed, max(n_dense - n_table - n_mixer_least, 0))
    n_read_mixer = max(n_dense - n_read_mlp - n_table, n_mixer_least)
    n_matrix = 3 if spec.mlp_gated else 2
    return {
        "model.n_param_dense": n_dense,
        "model.n_param_expert": n_expert,
        "model.n_param_encoder": n_encoder,
        "model.n_param_linear": n_mixer + n_mlp + n_encoder,
        "model.n_param_head": n_table,
        "model.n_param_embedding": n_embedding,
        "model.tower_byte": _module_param(spec, "tower") * (spec.stored_bits or StoredBits()).module / 8,
        "model.n_param_prediction": _module_param(spec, "prediction"),
        "model.n_mlp_layer": n_mlp_layer,
        "model.mlp_width": n_read_mlp / max(n_mlp_layer, 1) / n_matrix / hidden,
        "model.mixer_in_width": n_read_mixer / spec.n_layer / hidden - out_width,
        "model.mixer_out_width": out_width,
    }


def _module_param(spec: ModelSpec, role: str) -> int:
    return sum(k.n_param(spec.hidden_size) for k in of_kind(spec.layers, Module) if k.role == role)


def stored_bytes(spec: ModelSpec) -> Mapping[str, float]:
    """Return the bytes of a weight that the checkpoint states, by ``config.`` descriptor; none if it states none."""
    bits, hidden = spec.stored_bits, spec.hidden_size
    if bits is None:
        return {}
    mixtures, encoders = of_kind(spec.layers, Experts), of_kind(spec.layers, Encoder)
    n_mixer = sum(k.n_param(hidden) for k in of_kind(spec.layers, Attention))
    n_mixer += sum(k.n_param(hidden) for k in of_kind(spec.layers, Recurrent))
    n_mixer += sum(k.n_param(hidden) for k in encoders)
    n_mlp = sum(k.n_param(hidden) for k in of_kind(spec.layers, Mlp))
    n_mlp += sum(k.n_param_shared(hidden) for k in mixtures)
    dense = (bits.attention * n_mixer + bits.mlp * n_mlp) / max(n_mixer + n_mlp, 1)
    return {
        "config.weight_byte_per_element": (bits.expert if mixtures else dense) / 8,
        "config.dense_byte_per_element": dense / 8,
        "config.head_byte_per_element": bits.head / 8,
        "config.embedding_byte_per_element": bits.embedding / 8,
    }


def _attention(kinds: Sequence[Attention]) -> dict[str, float]:
    """Return the widths of attention: means over layers that read the whole context, and over those that slide."""
    sliding = [k for k in kinds if k.is_sliding]
    full = [k for k in kinds if not k.is_sliding]
    sparse = [k for k in full if k.top_k]
    main = full or sliding
    windows = sum(k.n * k.window_width for k in kinds)
    return {
        "model.n_full_layer": sum(k.n for k in full),
        "model.n_sliding_layer": sum(k.n for k in sliding),
        "model.n_sparse_layer": sum(k.n for k in sparse),
        "model.n_mla_layer": sum(k.n for k in kinds if k.latent),
        "model.sparse_top_k": _mean(sparse, lambda k: k.top_k),
        **_widths("model.{}", main),
        **_widths("model.{}_sliding", sliding or main),
        "model.qk_dim": _mean(main, lambda k: k.qk_dim),
        "model.v_dim": _mean(main, lambda k: k.v_dim),
        "model.kv_width": sum(k.n * k.growing_width for k in kinds),
        "model.kv_width_sliding": windows,
        "model.sliding_window": (
            sum(k.n * k.window_width * k.window for k in kinds) / windows
            if windows
            else max((k.window for k in sliding), default=0)
        ),
        "model.index_byte": sum(k.index_byte for k in kinds),
        "model.entry_byte": sum(k.n * (k.rope_dim + k.latent / 32) / max(k.compression, 1) for k in kinds
                                if k.latent and (k.top_k or k.compression)),
        "model.window_block": _window_block(kinds),
        "model.n_param_absorbed": sum(k.n_param_absorbed for k in kinds),
    }  # fmt: skip


def _window_block(kinds: Sequence[Attention]) -> float:
    """Return the blocks that vLLM's layers of a window take for each of its tokens, where the rest is compressed.

    References
    ----------
    vLLM, ``models/deepseek_v4/compressor.py``: blocks of 4 tokens for states of layers that compress 4 tokens, of 8
    for others; ``sparse_swa.py``: of 64 for windows. ``kv_cache_utils.py``: a group has as many layers as the most
    that share a compression.
    """
    numbers = {k.compression: k.n for k in kinds if k.compression}
    if not numbers:
        return 0.0
    n_group = math.ceil(sum(k.n for k in kinds if k.window) / max(numbers.values()))
    return n_group / 64 + sum(1 / 4 if ratio == 4 else 1 / 8 for ratio in numbers)


def _widths(name: str, kinds: Sequence[Attention]) -> dict[str, float]:
    return {
        name.format("n_head"): _mean(kinds, lambda k: k.n_head) or 1.0,
        name.format("n_kv_head"): _mean(kinds, lambda k: 1 if k.latent else k.n_kv_head) or 1.0,
        name.format("decode_qk_dim"): _mean(kinds, lambda k: k.latent + k.rope_dim if k.latent else k.qk_dim),
        name.format("decode_v_dim"): _mean(kinds, lambda k: k.latent or k.v_dim),
        name.format("kv_width_layer"): _mean(kinds, lambda k: k.cache_width),
    }


def _mean(kinds: Sequence[Any], value: Callable[[Any], float]) -> float:
    n = sum(k.n for k in kinds)
    return sum(k.n * value(k) for k in kinds) / n if n else 0.0
