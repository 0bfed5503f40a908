"""Layer mix of hybrids of attention with Mamba, convolutions or linear attention, by `model_type`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.layers import LAYER_NAMES, Layers, count_moe_layers
from roofcast.data.model_config.parameters.state_layers import (
    kimi_delta,
    lightning,
    mamba1,
    mamba2,
    short_convolution,
)

_HIGH: Final = 100_000


def read_hybrid(reader: ConfigReader, model_type: str, hidden: int) -> Layers:
    """Return the layer mix of a hybrid.

    Raises
    ------
    InputError
        If a field is missing or wrong, or a layer type is unknown.
    KeyError
        If the type is not in `HYBRID_TYPES`.
    """
    return HYBRID_TYPES[model_type](reader, hidden)


def _bamba(reader: ConfigReader, hidden: int) -> Layers:
    n_layer = _layer_count(reader)
    attention = [i for i in reader.indices("attn_layer_indices") if 0 <= i < n_layer]
    return _mixed(reader, n_layer, len(attention), _mamba2(reader, hidden))


def _granite_hybrid(reader: ConfigReader, hidden: int) -> Layers:
    n_layer = _layer_count(reader)
    n_attention = _named(reader, n_layer, "attention", "mamba")
    return _mixed(reader, n_layer, n_attention, _mamba2(reader, hidden) if n_attention < n_layer else 0)


def _falcon_h1(reader: ConfigReader, hidden: int) -> Layers:
    n_layer = _layer_count(reader)
    return Layers(
        n_layer=n_layer,
        n_attention=n_layer,
        n_state=n_layer,
        n_param_state=_mamba2(reader, hidden),
        n_mlp=n_layer,
    )


def _mamba2(reader: ConfigReader, hidden: int) -> int:
    n_head = reader.count("mamba_n_heads", high=_HIGH)
    expanded = int(reader.number("mamba_expand", default=2.0) * hidden)
    inner = reader.count("mamba_d_ssm", default=max(expanded, 1), high=10_000_000)
    return mamba2(
        hidden,
        n_head,
        max(inner // n_head, 1),
        reader.count("mamba_n_groups", default=1, high=_HIGH),
        reader.count("mamba_d_state", high=_HIGH),
    )


def _jamba(reader: ConfigReader, hidden: int) -> Layers:
    n_layer = _layer_count(reader)
    n_attention = _periodic(reader, n_layer, "attn_layer")
    state = mamba1(
        hidden,
        reader.count("mamba_expand", default=2, high=64) * hidden,
        reader.count("mamba_d_state", default=16, high=_HIGH),
        reader.count("mamba_dt_rank", default=-(-hidden // 16), high=_HIGH),
        reader.count("mamba_d_conv", default=4, high=64),
    )
    n_moe = _periodic(reader, n_layer, "expert_layer") if reader.count_or_none("num_experts", high=_HIGH) > 1 else 0
    return _split(n_layer, n_attention, state, n_moe)


def _periodic(reader: ConfigReader, n_layer: int, name: str) -> int:
    period = reader.count(f"{name}_period", high=n_layer)
    offset = reader.count(f"{name}_offset", low=0, high=period - 1)
    return sum(i % period == offset for i in range(n_layer))


def _lfm2(reader: ConfigReader, hidden: int) -> Layers:
    n_layer = _layer_count(reader)
    if reader.has("layer_types"):
        n_attention = _named(reader, n_layer, "full_attention", "conv")
    else:
        n_attention = len([i for i in reader.indices("full_attn_idxs") if 0 <= i < n_layer])
    return _mixed(reader, n_layer, n_attention, short_convolution(hidden, reader.count("conv_L_cache", high=64)))


def _kimi_linear(reader: ConfigReader, hidden: int) -> Layers:
    n_layer = _layer_count(reader)
    linear = ConfigReader(reader.section("linear_attn_config"))
    n_linear = len(linear.indices("kda_layers"))
    n_full = len(linear.indices("full_attn_layers"))
    if n_linear + n_full != n_layer:
        raise InputError("linear_attn_config", f"must name all {n_layer} layers, got {n_linear + n_full}")
    state = kimi_delta(
        hidden,
        linear.count("num_heads", high=_HIGH),
        linear.count("head_dim", high=_HIGH),
        linear.count("short_conv_kernel_size", default=4, high=64),
        full_gate=linear.flag("use_full_rank_gate"),
    )
    return _mixed(reader, n_layer, n_full, state)


def _minimax(reader: ConfigReader, hidden: int) -> Layers:
    n_layer = _layer_count(reader)
    if reader.has("attn_type_list"):
        kinds = reader.numbers("attn_type_list")
        n_attention = sum(kind == 1 for kind in kinds)
        if len(kinds) != n_layer or not set(kinds) <= {0, 1}:
            raise InputError("attn_type_list", f"must hold 0 or 1 for each of {n_layer} layers")
    else:
        n_attention = _named(reader, n_layer, "full_attention", "linear_attention")
    n_head = reader.count("num_attention_heads", high=_HIGH)
    state = lightning(hidden, n_head, reader.count("head_dim", default=max(hidden // n_head, 1), high=_HIGH))
    return _mixed(reader, n_layer, n_attention, state)


def _layer_count(reader: ConfigReader) -> int:
    return reader.count(*LAYER_NAMES, high=2_000)


def _named(reader: ConfigReader, n_layer: int, attention: str, other: str) -> int:
    kinds = reader.texts("layer_types") or reader.texts("layers_block_type")
    unknown = next((k for k in kinds if k not in {attention, other}), None)
    if unknown is not None:
        raise InputError("layer_types", f"must be made of {attention!r} and {other!r}, got {unknown[:40]!r}")
    if len(kinds) != n_layer:
        raise InputError("layer_types", f"must name all {n_layer} layers, got {len(kinds)}")
    return kinds.count(attention)


def _mixed(reader: ConfigReader, n_layer: int, n_attention: int, n_param_state: int) -> Layers:
    return _split(n_layer, n_attention, n_param_state, count_moe_layers(reader, n_layer))


def _split(n_layer: int, n_attention: int, n_param_state: int, n_moe: int) -> Layers:
    n_state = n_layer - n_attention
    return Layers(
        n_layer=n_layer,
        n_attention=n_attention,
        n_linear=n_state,
        n_state=n_state,
        n_param_state=n_param_state if n_state else 0,
        n_mlp=n_layer - n_moe,
        n_moe=n_moe,
    )


HYBRID_TYPES: Final[Mapping[str, Callable[[ConfigReader, int], Layers]]] = {
    "bamba": _bamba,
    "falcon_h1": _falcon_h1,
    "granitemoehybrid": _granite_hybrid,
    "jamba": _jamba,
    "kimi_linear": _kimi_linear,
    "lfm2": _lfm2,
    "lfm2_moe": _lfm2,
    "minimax": _minimax,
    "minimax_m1": _minimax,
    "minimax_text_01": _minimax,
}
