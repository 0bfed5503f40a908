"""Fields of models that name their layers otherwise, by the names of other models."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from roofcast.data.model_config import field_names as names
from roofcast.data.model_config.config_reader import ConfigReader

_HIGH: Final = 100_000
_SIGLIP_400M: Final = 428_565_440
"""Weights of 27 layers of width 1,152 with MLPs of 4,304 and a pooling head, and of 1,024 positions of patches."""


def usual_fields(model_type: str, reader: ConfigReader) -> Mapping[str, Any]:
    """Return the fields that say of a type of `_TYPES` what others say by their usual names; none for other types.

    References
    ----------
    Transformers 5.24, ``configuration_mamba.py``, ``configuration_mamba2.py``, ``configuration_zamba2.py``;
    plamo-2-8b, ``modeling_plamo.py`` (`is_mamba`); flash-linear-attention, ``configuration_rwkv7.py``; Transformers
    5.24, ``modeling_longcat_flash.py``, ``modeling_ernie4_5_vl_moe.py``, ``modeling_mimo_v2_flash.py``
    (`num_key_value_heads`), ``modeling_phi4_multimodal.py``; Microsoft, "Phi-4-Mini Technical Report", 2025.

    Examples
    --------
    >>> fields = usual_fields("plamo2", ConfigReader({"num_hidden_layers": 4, "hidden_size_per_head": 128}))
    >>> fields["layer_types"], fields["head_dim"]
    (['mamba', 'sliding_attention', 'mamba', 'sliding_attention'], 128)
    """
    find = _TYPES.get(model_type)
    return find(reader, reader.count(*names.LAYERS, high=2_000)) if find else {}


def _mamba1(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    hidden, rank = reader.count(*names.HIDDEN, high=200_000), "time_step_rank"
    return {
        "hybrid_override_pattern": "M" * n_layer,
        "mamba_d_state": reader.count("state_size", default=16, high=_HIGH),
        "mamba_expand": max(reader.count("intermediate_size", default=2 * hidden) // hidden, 1),
        "mamba_dt_rank": "auto" if reader.holds_text(rank) else reader.count(rank, default=-(-hidden // 16)),
    }


def _mamba2(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    return {
        "hybrid_override_pattern": "M" * n_layer,
        "mamba_num_heads": reader.count("num_heads", high=_HIGH),
        "mamba_head_dim": reader.count("head_dim", default=64, high=_HIGH),
        "ssm_state_size": reader.count("state_size", default=128, high=_HIGH),
    }


def _rwkv7(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    hidden = reader.count(*names.HIDDEN, high=200_000)
    ranks = [reader.count(f"{name}_low_rank_dim", default=64, high=_HIGH) for name in ("decay", "a", "v", "gate")]
    dim = reader.count("head_dim", "head_size", default=64, high=hidden)
    width = reader.count("intermediate_size", default=4 * hidden)
    heads = {"num_attention_heads": hidden // dim, "head_dim": dim, "num_key_value_heads": hidden // dim}
    mixers = {"layer_types": ["linear_attention"] * n_layer, "shift_rank": sum(ranks)}
    return {**mixers, **heads, "intermediate_size": width, "max_position_embeddings": None}


def _zamba2(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    kinds = reader.texts("layers_block_type") or ["mamba"] * n_layer
    width = reader.count("intermediate_size", default=4 * reader.count(*names.HIDDEN, high=200_000))
    mlps = [width if kind == "hybrid" else 0 for kind in kinds]
    return {
        "layer_types": ["both" if n else "mamba" for n in mlps],
        "layers_block_type": None,
        "intermediate_size": mlps,
    }


def _plamo2(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    step, full = reader.count("mamba_step", default=2, high=n_layer), reader.indices("full_attention_idx")
    attends = [i == n_layer - 1 if n_layer <= step // 2 else i % step == step // 2 for i in range(n_layer)]
    kinds = [
        "full_attention" if i in full else "sliding_attention" if on else "mamba" for i, on in enumerate(attends)
    ]
    dim = reader.count("hidden_size_per_head", high=_HIGH)
    return {"layer_types": kinds, "head_dim": dim, "mamba_head_dim": dim}


def _longcat(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    """A layer has attention and an MLP twice, and experts beside the first; some experts pass the token on."""
    width, n_expert = reader.count("ffn_hidden_size", high=_HIGH), reader.count(*names.EXPERTS, high=_HIGH)
    n_idle, top_k = reader.count_or_none("zero_expert_num", high=_HIGH), reader.count(*names.CHOSEN, high=_HIGH)
    n_layer = reader.count("num_layers", default=n_layer, high=1_000)
    return {
        "num_hidden_layers": 2 * n_layer,
        "intermediate_size": width,
        "n_routed_experts": [n_expert, 0] * n_layer,
        "moe_topk": [max(round(top_k * n_expert / (n_expert + n_idle)), 1), 0] * n_layer,
        "shared_expert_intermediate_size": width,
    }


def _ernie_vl(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    """Fields list what tokens of text and of images have: experts of their own."""
    lists = {name: reader.numbers(name) for name in (*names.EXPERTS, *names.EXPERT_WIDTHS, *names.CHOSEN,
        *names.FIRST_SPARSE) if reader.holds_list(name)}  # fmt: skip
    text = {name: values[0] for name, values in lists.items() if values}
    image = ConfigReader({name: values[-1] for name, values in lists.items() if values}, reader.mapping())
    n_sparse = n_layer - image.count_or_none(*names.FIRST_SPARSE, high=n_layer)
    n_expert, width = image.count_or_none(*names.EXPERTS), image.count_or_none(*names.EXPERT_WIDTHS)
    weights = 3 * reader.count(*names.HIDDEN, high=200_000) * width
    return {**text, "further_tower_param": n_sparse * n_expert * weights}


def _mimo_flash(reader: ConfigReader, n_layer: int) -> dict[str, Any]:  # noqa: ARG001
    """Layers of a window have twice the key-value heads, which Transformers' class doubles where no field says so."""
    stated = reader.count_or_none(*names.SLIDING_KV_HEADS, high=_HIGH)
    return {names.SLIDING_KV_HEADS[0]: stated or 2 * reader.count(*names.KV_HEADS, high=_HIGH)}


def _phi4_multimodal(reader: ConfigReader, n_layer: int) -> dict[str, Any]:
    """Adapters of images and sound are loaded beside the text model; Microsoft's config leaves SigLIP-400M unsaid."""
    hidden, inner = reader.count(*names.HIDDEN, high=200_000), reader.count("intermediate_size", high=_HIGH)
    n_head, n_kv_head = reader.count(*names.HEADS, high=_HIGH), reader.count(*names.KV_HEADS, high=_HIGH)
    rank = sum(ConfigReader(reader.section(name)).count_or_none("r") for name in ("vision_lora", "speech_lora"))
    width = hidden + (n_head + 2 * n_kv_head) * hidden // n_head + 2 * hidden + (hidden + 2 * inner) + inner + hidden
    weights = 0 if reader.has("vision_config") else _SIGLIP_400M + 1152 * hidden + hidden**2
    stated = ConfigReader(reader.section("audio_processor")).section("config") or reader.section("audio_config")
    sound = ConfigReader(stated, defaults={"num_blocks": 24, "attention_dim": 1024, "linear_units": 1536})
    audio = sound.count("hidden_size", "attention_dim", high=_HIGH)
    gates = 2 * audio * sound.count("intermediate_size", "linear_units", high=_HIGH)
    weights += sound.count("num_blocks", high=1_000) * gates + audio * hidden + 2 * hidden**2  # two projections
    return {"further_tower_param": weights + n_layer * rank * width}


_TYPES: Final[Mapping[str, Callable[[ConfigReader, int], dict[str, Any]]]] = {
    "mamba": _mamba1, "falcon_mamba": _mamba1, "mamba2": _mamba2, "rwkv7": _rwkv7, "zamba2": _zamba2,
    "plamo2": _plamo2, **dict.fromkeys(("longcat_flash", "longcat_flash_ngram", "longcat_next"), _longcat),
    **dict.fromkeys(("ernie4_5_moe_vl", "ernie4_5_vl_moe", "ernie4_5_vl_moe_text"), _ernie_vl),
    "mimo_v2_flash": _mimo_flash, **dict.fromkeys(("phi4mm", "phi4_multimodal"), _phi4_multimodal),
}  # fmt: skip
