"""Models pruned block by block (Llama-Nemotron): some blocks lack attention, and the MLPs differ in width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import Family
from roofcast.data.model_config.layers import LAYER_NAMES
from roofcast.data.model_config.parameters.parameters import Shape

PRUNED_TYPES: Final = frozenset({"nemotron-nas"})

_MULTIPLE: Final = 256


def read_pruned(reader: ConfigReader, model_type: str, family: Family) -> tuple[dict[str, Any], Shape]:
    """Return the spec fields that `Shape` lacks, and the shape, of a model of `PRUNED_TYPES`.

    A block without attention counts as a layer whose state does not grow; the width of the MLPs is their mean.

    Raises
    ------
    InputError
        If a field is missing or wrong, or blocks differ in their heads or have linear maps.
    """
    del model_type
    hidden = reader.count("hidden_size", high=200_000)
    n_layer = reader.count(*LAYER_NAMES, high=2_000)
    blocks = reader.objects("block_configs")
    if len(blocks) != n_layer:
        raise InputError("block_configs", f"must hold {n_layer} blocks, got {len(blocks)}")
    groups = [n for n in (_heads_in_group(block) for block in blocks) if n]
    if len(set(groups)) != 1:
        raise InputError("block_configs", f"must have one number of heads in a group, got {len(set(groups))}")
    n_head = reader.count("num_attention_heads", high=10_000)
    widths = [_width(block, hidden) for block in blocks]
    mean = sum(widths) // n_layer
    shape = Shape(
        hidden_size=hidden,
        vocab_size=reader.count("vocab_size"),
        n_layer=n_layer,
        n_attention_layer=len(groups),
        n_mlp_layer=n_layer,
        n_head=n_head,
        n_kv_head=max(n_head // groups[0], 1),
        head_dim=max(hidden // n_head, 1),
        attention="gqa",
        intermediate_size=max(mean, 1),
        mlp_gated=family.gated,
        tie_word_embeddings=reader.flag("tie_word_embeddings"),
        n_param_further=3 * hidden * (sum(widths) - n_layer * max(mean, 1)),
    )
    return {"n_linear_layer": n_layer - len(groups)}, shape


def _part(block: Mapping[str, Any], name: str) -> ConfigReader | None:
    part = ConfigReader(ConfigReader(block).section(name))
    if part.flag("replace_with_linear"):
        raise InputError(f"block_configs.{name}", "is replaced with a linear map, which this version cannot count")
    return None if part.flag("no_op") else part


def _heads_in_group(block: Mapping[str, Any]) -> int:
    attention = _part(block, "attention")
    return attention.count("n_heads_in_group", high=10_000) if attention else 0


def _width(block: Mapping[str, Any], hidden: int) -> int:
    """Return the width of a block's MLP: 2/3 of `ffn_mult` times the hidden width, rounded up to a multiple of 256.

    Examples
    --------
    >>> _width({"ffn": {"ffn_mult": 5.25}}, 8192)
    28672
    """
    ffn = _part(block, "ffn")
    if ffn is None:
        return 0
    width = int(2 * ffn.number("ffn_mult", default=1.0) * hidden / 3)
    return -(-width // _MULTIPLE) * _MULTIPLE
