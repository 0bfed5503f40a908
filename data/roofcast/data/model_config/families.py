"""Conventions of model families that `config.json` does not state, by `model_type`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.parameters.parameters import Bias

T5_TYPES: Final = frozenset({"t5", "mt5", "umt5", "longt5"})

_NOT_A_TEXT_MODEL: Final = {
    "an encoder without a decoder": (
        "albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "modernbert",
        "mpnet", "nomic_bert", "roberta", "xlm", "xlm-roberta", "xlnet",
    ),
    "a vision model": (
        "beit", "blip", "clip", "clip_vision_model", "convnext", "deit", "detr", "dinov2", "resnet", "sam",
        "siglip", "siglip_vision_model", "swin", "vit", "yolos",
    ),
    "a speech model": (
        "clap", "encodec", "hubert", "seamless_m4t", "speecht5", "wav2vec2", "wavlm", "whisper",
    ),
    "a state-space model without attention": (
        "falcon_mamba", "mamba", "mamba2", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm",
    ),
    "a hybrid whose layers this version cannot count": (
        "hymba", "plamo2", "recurrent_gemma", "zamba", "zamba2",
    ),
    "a model of layers with different widths, which this version cannot count": (
        "deci", "openelm",
    ),
}  # fmt: skip

_REFUSAL: Final = {name: what for what, names in _NOT_A_TEXT_MODEL.items() for name in names}


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """Conventions of a model family.

    `tied` is the default of `tie_word_embeddings`; with `expert_is_intermediate`, `intermediate_size` is the width of
    an expert; with `is_mqa`, one key-value head is the default. `window` applies where the config lists no layer
    types: 1 makes every layer sliding, n all but every n-th. `defaults` are fields that published configs omit.
    """

    gated: bool = True
    bias: Bias = "none"
    n_norm: int = 2
    qk_norm: bool = False
    tied: bool = False
    learned_positions: bool = False
    is_mqa: bool = False
    expert_is_intermediate: bool = False
    four_h: bool = False
    window: int = 0
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_PLAIN: Final = Family()
_GPT: Final = Family(gated=False, bias="all", tied=True, learned_positions=True, four_h=True)
_UNTIED_GPT: Final = dataclasses.replace(_GPT, tied=False, learned_positions=False)
_QWEN2: Final = Family(bias="qkv")
_QWEN3: Final = Family(qk_norm=True)
_GEMMA: Final = Family(tied=True, defaults={"head_dim": 256})
_GEMMA2: Final = dataclasses.replace(_GEMMA, n_norm=4, window=2)
_GEMMA3: Final = Family(n_norm=4, qk_norm=True, tied=True, window=6, defaults={"head_dim": 256, "vocab_size": 262208})
_GEMMA4: Final = dataclasses.replace(
    _GEMMA3, defaults={"head_dim": 256, "vocab_size": 262144, "hidden_size_per_layer_input": 256}
)
_GEMMA3N: Final = dataclasses.replace(
    _GEMMA4, window=5, defaults={"head_dim": 256, "vocab_size": 262400, "hidden_size_per_layer_input": 256}
)
_MIXTRAL: Final = Family(expert_is_intermediate=True)

FAMILIES: Final[Mapping[str, Family]] = {
    "aquila": _PLAIN,
    "arcee": Family(gated=False),
    "baichuan": _PLAIN,
    "bamba": _PLAIN,
    "bitnet": _PLAIN,
    "bloom": dataclasses.replace(_GPT, learned_positions=False),
    "chatglm": _QWEN2,
    "codegen": dataclasses.replace(_UNTIED_GPT, n_norm=1, bias="none"),
    "cohere": Family(tied=True, n_norm=1),
    "cohere2": Family(tied=True, n_norm=1, window=4),
    "dbrx": Family(),
    **dict.fromkeys(("deepseek_ref", "deepseek_v4"), _PLAIN),
    "deepseek_v2": _PLAIN,
    "deepseek_v3": _PLAIN,
    "deepseek_v32": _PLAIN,
    "ernie4_5": Family(tied=True),
    "ernie4_5_moe": Family(tied=True),
    "exaone": _PLAIN,
    "falcon": Family(gated=False, tied=True, four_h=True, is_mqa=True),
    "falcon_h1": _PLAIN,
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    **dict.fromkeys(("gemma3n", "gemma3n_text"), _GEMMA3N),
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"), _GEMMA4),
    "glm": _QWEN2,
    "glm4": dataclasses.replace(_QWEN2, n_norm=4),
    "glm4_moe": Family(bias="qkv"),
    "glm4_moe_lite": _PLAIN,
    "glm_moe_dsa": _PLAIN,
    "gpt2": _GPT,
    "gpt_bigcode": dataclasses.replace(_GPT, is_mqa=True),
    "gpt_neo": _GPT,
    "gpt_neox": _UNTIED_GPT,
    "gpt_oss": Family(bias="all", expert_is_intermediate=True, window=2),
    "gptj": dataclasses.replace(_UNTIED_GPT, n_norm=1, bias="none"),
    "granite": Family(tied=True),
    "granitemoe": Family(tied=True, expert_is_intermediate=True),
    "granitemoehybrid": Family(tied=True, expert_is_intermediate=True),
    "grok-1": dataclasses.replace(_MIXTRAL, n_norm=4),
    "internlm": Family(bias="qkv"),
    "internlm2": _PLAIN,
    "internlm3": _PLAIN,
    "jamba": _MIXTRAL,
    "kimi_k2": _PLAIN,
    "kimi_linear": _PLAIN,
    "laguna": _QWEN3,
    "lfm2": Family(qk_norm=True, tied=True),
    "lfm2_moe": Family(qk_norm=True, tied=True),
    "llama": _PLAIN,
    "llama4_text": Family(expert_is_intermediate=True),
    "minicpm": Family(tied=True),
    "minicpm3": Family(tied=True),
    "minimax": _MIXTRAL,
    "minimax_m1": _MIXTRAL,
    "mimo": _QWEN2,
    **dict.fromkeys(("mimo_v2", "mimo_v2_flash"), _PLAIN),
    "minimax_m2": Family(qk_norm=True, expert_is_intermediate=True),
    "minimax_m3": Family(qk_norm=True),
    "minimax_m3_vl": Family(qk_norm=True),
    "minimax_text_01": _MIXTRAL,
    "ministral3": _PLAIN,
    "mistral": Family(window=1),
    "mistral3": _PLAIN,
    "mixtral": _MIXTRAL,
    "mpt": Family(gated=False, tied=True, four_h=True, n_norm=2),
    "nemotron": Family(gated=False),
    "nemotron-nas": _PLAIN,
    "nemotron_h": Family(gated=False, n_norm=1),
    "olmo": Family(n_norm=0),
    "olmo2": Family(qk_norm=True),
    "olmo3": Family(qk_norm=True, window=4),
    "olmoe": Family(qk_norm=True, expert_is_intermediate=True),
    "opt": _GPT,
    "persimmon": Family(gated=False, bias="all"),
    "phi": dataclasses.replace(_UNTIED_GPT, n_norm=1),
    "phi3": Family(window=1),
    "phimoe": dataclasses.replace(_MIXTRAL, bias="qkv"),
    "qwen": _QWEN2,
    "qwen2": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen2_moe": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_5_moe_text": _QWEN3,
    "qwen3_5_text": _QWEN3,
    "qwen3_moe": _QWEN3,
    "qwen3_next": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "seed_oss": Family(bias="qkv"),
    "smollm3": Family(tied=True),
    "stablelm": _PLAIN,
    **dict.fromkeys(("step3p5", "step3p7"), _QWEN3),
    "starcoder2": Family(gated=False, bias="all", tied=True, four_h=True),
    "t5": Family(tied=True),
    "mt5": Family(),
    "umt5": Family(),
    "longt5": Family(tied=True),
}


def find_family(model_type: str) -> Family | None:
    """Return the family, or None for an unknown type, whose config is read by the usual field names.

    Raises
    ------
    InputError
        If the type is no language model, or one whose weights cannot be counted.

    Examples
    --------
    >>> find_family("whisper")
    Traceback (most recent call last):
    ...
    roofcast.data.errors.InputError: model_type: 'whisper' is a speech model; give a decoder-only or T5-like model
    """
    if model_type in _REFUSAL:
        kind = _REFUSAL[model_type]
        raise InputError("model_type", f"{model_type!r} is {kind}; give a decoder-only or T5-like model")
    return FAMILIES.get(model_type)
