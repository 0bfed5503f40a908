"""Layer mix of a `config.json`: sliding, linear, MoE and dense layers."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import Family
from roofcast.data.model_config.parameters.state_layers import gated_delta_net, mamba2

_GROWING: Final = frozenset(
    {"full_attention", "chunked_attention", "global", "attention", "deepseek_sparse_attention"}
)
_SLIDING: Final = frozenset({"sliding_attention", "local"})
_LINEAR: Final = frozenset({"linear_attention"})
_BLOCKS: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}

LAYER_NAMES: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """Numbers of layers by type; `n_linear` have no growing cache, and `n_state` of these have a recurrent state."""

    n_layer: int
    n_attention: int
    n_sliding: int = 0
    window: int = 0
    n_linear: int = 0
    n_state: int = 0
    n_param_state: int = 0
    n_mlp: int
    n_moe: int = 0


def read_layers(reader: ConfigReader, family: Family, model_type: str, hidden: int) -> Layers:
    """Return the layer mix of a decoder-only model.

    Raises
    ------
    InputError
        If a field is wrong, or a layer type is unknown.
    """
    if model_type == "nemotron_h":
        return _separate_blocks(reader, hidden)
    n_layer = reader.count(*LAYER_NAMES, high=2_000)
    kinds = _kinds(reader, n_layer)
    n_linear = sum(k in _LINEAR for k in kinds)
    if not kinds and reader.has("linear_num_value_heads"):
        n_linear = n_layer - n_layer // reader.count("full_attention_interval", default=4, high=1_000)
    n_sliding, window = _sliding(reader, family, n_layer, kinds)
    n_moe = count_moe_layers(reader, n_layer)
    return Layers(
        n_layer=n_layer,
        n_attention=n_layer - n_linear,
        n_sliding=min(n_sliding, n_layer - n_linear),
        window=window,
        n_linear=n_linear,
        n_state=n_linear,
        n_param_state=_delta_net(reader, hidden) if n_linear else 0,
        n_mlp=n_layer - n_moe,
        n_moe=n_moe,
    )


def _kinds(reader: ConfigReader, n_layer: int) -> list[str]:
    kinds = reader.texts("layer_types")
    unknown = next((k for k in kinds if k not in _GROWING | _SLIDING | _LINEAR), None)
    if unknown is not None:
        raise InputError("layer_types", f"holds {unknown!r}, a kind of layer that this version cannot count")
    if kinds and len(kinds) != n_layer:
        raise InputError("layer_types", f"must name all {n_layer} layers, got {len(kinds)}")
    return kinds


def _sliding(reader: ConfigReader, family: Family, n_layer: int, kinds: list[str]) -> tuple[int, int]:
    window = reader.count_or_none("sliding_window", "sliding_window_size", high=10**9)
    is_longer = 0 < reader.count_or_none("max_position_embeddings", high=10**9) <= window
    if not window or is_longer or not reader.flag("use_sliding_window", default=True):
        return 0, 0
    every = reader.count(
        "sliding_window_pattern", "_sliding_window_pattern", default=family.window, low=0, high=1_000
    )
    if kinds:
        n_sliding = sum(k in _SLIDING for k in kinds)
    elif reader.has("hybrid_layer_pattern"):
        n_sliding = min(sum(n == 1 for n in reader.numbers("hybrid_layer_pattern")), n_layer)
    elif every:
        n_sliding = n_layer if every == 1 else n_layer - n_layer // every
    elif reader.has("use_sliding_window"):
        n_sliding = max(n_layer - reader.count_or_none("max_window_layers"), 0)
    else:
        n_sliding = 0
    return n_sliding, min(window, 10_000_000) if n_sliding else 0


def count_moe_layers(reader: ConfigReader, n_layer: int) -> int:
    """Return the number of layers with routed experts.

    Raises
    ------
    InputError
        If a field is wrong.
    """
    if not has_experts(reader):
        return 0
    kinds = reader.texts("mlp_layer_types")
    if kinds:
        return min(sum(k != "dense" for k in kinds), n_layer)
    if reader.holds_list("moe_layer_freq"):
        return min(sum(n > 0 for n in reader.numbers("moe_layer_freq")), n_layer)
    dense = reader.indices("mlp_only_layers")
    first = reader.count_or_none("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
    step = reader.count(
        "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", default=1, high=n_layer
    )
    return sum(i >= first and i not in dense and (i + 1) % step == 0 for i in range(n_layer))


def has_experts(reader: ConfigReader) -> bool:
    """Return whether the model has routed experts; a single expert is a dense MLP."""
    return expert_count(reader) > 1


def expert_count(reader: ConfigReader) -> int:
    """Return the number of routed experts of a layer, 0 if there are none.

    Raises
    ------
    InputError
        If the field is no whole number within bounds.
    """
    return reader.count_or_none(
        "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_routed_experts", high=100_000
    )


def _delta_net(reader: ConfigReader, hidden: int) -> int:
    return gated_delta_net(
        hidden,
        reader.count("linear_num_key_heads", high=10_000),
        reader.count("linear_key_head_dim", high=10_000),
        reader.count("linear_num_value_heads", high=10_000),
        reader.count("linear_value_head_dim", high=10_000),
    )


def _separate_blocks(reader: ConfigReader, hidden: int) -> Layers:
    named = reader.texts("layers_block_type")
    pattern = reader.text("hybrid_override_pattern", default="")
    blocks: list[Any] = named or [_BLOCKS.get(letter, letter) for letter in pattern]
    unknown = next((b for b in blocks if b not in _BLOCKS.values()), None)
    if unknown is not None or not blocks:
        raise InputError(
            "hybrid_override_pattern", f"must be made of the letters {' '.join(_BLOCKS)}, got {pattern!r}"
        )
    n_attention = blocks.count("attention")
    state = mamba2(
        hidden,
        reader.count("mamba_num_heads", high=10_000),
        reader.count("mamba_head_dim", high=10_000),
        reader.count("n_groups", high=10_000),
        reader.count("ssm_state_size", high=10_000),
    )
    return Layers(
        n_layer=len(blocks),
        n_attention=n_attention,
        n_linear=len(blocks) - n_attention,
        n_state=blocks.count("mamba"),
        n_param_state=state,
        n_mlp=blocks.count("mlp"),
        n_moe=blocks.count("moe"),
    )
