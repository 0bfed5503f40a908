"""Weights of Gemma 3n and 4 beyond uniform layers: per-layer embeddings, wider global layers, shared keys."""

from __future__ import annotations

import dataclasses
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.parameters.parameters import Shape

GEMMA_3N_TYPES: Final = frozenset({"gemma3n", "gemma3n_text"})
GEMMA_4_TYPES: Final = frozenset({"gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"})
GEMMA_TYPES: Final = GEMMA_3N_TYPES | GEMMA_4_TYPES

_VOCABULARY: Final = 262_144
_GLOBAL_HEAD: Final = 512
_PATTERN: Final = 6
_N_STREAM: Final = 4
_BYPASS_RANK: Final = 64
_MOST_WIDTH: Final = 2_000_000


def with_gemma_weights(shape: Shape, reader: ConfigReader, model_type: str) -> Shape:
    """Return the shape of one of `GEMMA_TYPES` with the weights that uniform sliding layers do not count.

    Raises
    ------
    InputError
        If a field is wrong.

    Examples
    --------
    A per-layer embedding of width 16 and 1000 words in two layers, and its projections:

    >>> plain = Shape(hidden_size=64, vocab_size=1000, n_layer=2, n_attention_layer=2, n_mlp_layer=2, n_head=4,
    ...     n_kv_head=1, head_dim=16, intermediate_size=128)
    >>> reader = ConfigReader({"hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 1000,
    ...     "global_head_dim": 16})
    >>> shape = with_gemma_weights(plain, reader, "gemma4_text")
    >>> shape.n_param_lookup, shape.n_param_further  # 2 x 1000 x 16, and 2 x 64 x (3 x 16 + 1)
    (32000, 6272)
    """
    width = reader.count_or_none("hidden_size_per_layer_input", high=_MOST_WIDTH)
    n_word = reader.count("vocab_size_per_layer_input", default=_VOCABULARY)
    further = shape.n_layer * shape.hidden_size * (3 * width + 1) if width else 0
    further += _streams(shape, reader) if model_type in GEMMA_3N_TYPES else _unevenness(shape, reader)
    return dataclasses.replace(shape, n_param_lookup=shape.n_layer * n_word * width, n_param_further=further)


def _streams(shape: Shape, reader: ConfigReader) -> int:
    n_stream = reader.count("altup_num_inputs", default=_N_STREAM, high=1_000)
    rank = reader.count("laurel_rank", default=_BYPASS_RANK, high=_MOST_WIDTH)
    joins = 2 * (n_stream - 1) * shape.hidden_size**2
    return joins + shape.n_layer * shape.hidden_size * (n_stream + 2 * rank + 3)


def _unevenness(shape: Shape, reader: ConfigReader) -> int:
    n_layer, hidden = shape.n_layer, shape.hidden_size
    wide = reader.count("global_head_dim", default=_GLOBAL_HEAD, high=10_000)
    has_one_key_value = reader.flag("attention_k_eq_v")
    n_wide_head = reader.count_or_none("num_global_key_value_heads", high=10_000) if has_one_key_value else 0
    wide_kv = (1 if has_one_key_value else 2) * (n_wide_head or shape.n_kv_head) * wide
    sliding_kv = 2 * shape.n_kv_head * shape.head_dim
    n_sharing = reader.count_or_none("num_kv_shared_layers", high=n_layer)
    is_global = _global_layers(reader, n_layer)
    column = sum(is_global) * 2 * shape.n_head * (wide - shape.head_dim)
    column += sum(is_global[: n_layer - n_sharing]) * (wide_kv - sliding_kv) - n_sharing * sliding_kv
    if reader.flag("use_double_wide_mlp"):
        column += n_sharing * 3 * shape.intermediate_size
    return column * hidden


def _global_layers(reader: ConfigReader, n_layer: int) -> list[bool]:
    kinds = reader.texts("layer_types")
    every = reader.count("sliding_window_pattern", "_sliding_window_pattern", default=_PATTERN, high=1_000)
    return [k == "full_attention" for k in kinds] or [(i + 1) % every == 0 for i in range(n_layer)]


def common_width(reader: ConfigReader) -> int:
    """Return the common width of the MLPs, which Gemma 3n lists for each layer.

    Raises
    ------
    InputError
        If it is no valid width, or differs between layers.
    """
    if not reader.holds_list("intermediate_size"):
        return reader.count("intermediate_size", high=_MOST_WIDTH)
    widths = reader.indices("intermediate_size")
    if len(widths) != 1:
        raise InputError("intermediate_size", f"must be one width in all layers, got {len(widths)}")
    return ConfigReader({"intermediate_size": widths.pop()}).count("intermediate_size", high=_MOST_WIDTH)
