"""Weights of layers whose attention has another number of heads than the config's first, by `model_type`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.parameters.parameters import Shape


def with_uneven_weights(shape: Shape, reader: ConfigReader, model_type: str) -> Shape:
    """Return the shape of one of `UNEVEN_TYPES` with the weights that uniform layers do not count.

    Raises
    ------
    InputError
        If a field is missing or wrong.
    """
    return dataclasses.replace(shape, n_param_further=UNEVEN_TYPES[model_type](shape, reader))


def _laguna(shape: Shape, reader: ConfigReader) -> int:
    """Return the weights of query heads beyond the first layer's, and of an output gate for each head.

    Examples
    --------
    One of two layers of width 8 has three heads of width 4 instead of two: 2 x 8 x 4, and 8 x 5 for the gates.

    >>> shape = Shape(hidden_size=8, vocab_size=10, n_layer=2, n_attention_layer=2, n_mlp_layer=2, n_head=2,
    ...     n_kv_head=1, head_dim=4)
    >>> _laguna(shape, ConfigReader({"num_attention_heads_per_layer": [2, 3]}))
    104
    """
    heads = reader.numbers("num_attention_heads_per_layer") or [shape.n_head] * shape.n_layer
    if len(heads) != shape.n_layer or not all(0 < n <= 10_000 for n in heads):
        raise InputError("num_attention_heads_per_layer", f"must hold a number of heads for {shape.n_layer} layers")
    further = sum(heads) - shape.n_head * shape.n_layer
    return shape.hidden_size * (2 * shape.head_dim * further + sum(heads))


def _mimo(shape: Shape, reader: ConfigReader) -> int:
    """Return the weights of the further key-value heads of sliding layers.

    Examples
    --------
    One sliding layer of width 8 has two heads with keys of width 4 and values of width 2 where others have one:

    >>> shape = Shape(hidden_size=8, vocab_size=10, n_layer=2, n_attention_layer=2, n_mlp_layer=2, n_head=2,
    ...     n_kv_head=1, head_dim=4, v_head_dim=2)
    >>> _mimo(shape, ConfigReader({"hybrid_layer_pattern": [0, 1], "swa_num_key_value_heads": 2}))
    48
    """
    n_sliding = sum(n == 1 for n in reader.numbers("hybrid_layer_pattern"))
    further = reader.count("swa_num_key_value_heads", default=shape.n_kv_head, high=10_000) - shape.n_kv_head
    return n_sliding * further * shape.hidden_size * (shape.head_dim + (shape.v_head_dim or shape.head_dim))


def _step(shape: Shape, reader: ConfigReader) -> int:
    """Return the weights of the further query heads of sliding layers, and of an output gate for each head.

    Examples
    --------
    A sliding layer of width 8 has three heads of width 4, another two: 2 x 8 x 4, and 8 x 5 for the gates.

    >>> shape = Shape(hidden_size=8, vocab_size=10, n_layer=2, n_attention_layer=2, n_mlp_layer=2, n_head=2,
    ...     n_kv_head=1, head_dim=4)
    >>> fields = {"layer_types": ["full_attention", "sliding_attention"]}
    >>> _step(shape, ConfigReader({**fields, "attention_other_setting": {"num_attention_heads": 3}}))
    104
    """
    n_sliding = reader.texts("layer_types").count("sliding_attention")
    other = ConfigReader(reader.section("attention_other_setting"))
    if n_sliding and not other.has("num_attention_heads"):
        raise InputError(
            "attention_other_setting",
            "is missing: sliding layers have their own number of heads; add it to the config",
        )
    further = n_sliding * (other.count("num_attention_heads", default=shape.n_head, high=10_000) - shape.n_head)
    return shape.hidden_size * (2 * shape.head_dim * further + shape.n_layer * shape.n_head + further)


UNEVEN_TYPES: Final[Mapping[str, Callable[[Shape, ConfigReader], int]]] = {
    "laguna": _laguna,
    **dict.fromkeys(("mimo_v2", "mimo_v2_flash"), _mimo),
    **dict.fromkeys(("step3p5", "step3p7"), _step),
}
