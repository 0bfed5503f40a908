"""Trained weights of adapter methods, by hand-checkable counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from roofcast.data.specs import ModelSpec

LORA_TARGETS: Final = ("q", "k", "v", "o", "gate", "up", "down")
FULL_TARGETS: Final = ("embedding", "head")
"""Targets that are trained in full beside the adapters."""

DEFAULT_TARGETS: Final = ("q", "v")
"""PEFT's default for Llama-like models, and that of LoRA's paper: queries and values."""

DEFAULT_RANK: Final = 16.0


def target_widths(spec: ModelSpec) -> dict[str, tuple[int, int]]:
    """Return input and output width of each projection of a layer; a mixture's MLP targets are those of one expert.

    Examples
    --------
    See `lora_parameters`.
    """
    value_dim = spec.v_head_dim or spec.head_dim
    width = spec.intermediate_size or spec.moe_intermediate_size
    hidden = spec.hidden_size
    widths = {
        "q": (hidden, spec.n_head * spec.head_dim),
        "k": (hidden, spec.n_kv_head * spec.head_dim),
        "v": (hidden, spec.n_kv_head * value_dim),
        "o": (spec.n_head * value_dim, hidden),
        "up": (hidden, width),
        "down": (width, hidden),
    }
    return widths | ({"gate": (hidden, width)} if spec.mlp_gated else {})


def adapter_width(spec: ModelSpec, targets: Sequence[str] = DEFAULT_TARGETS) -> int:
    """Return the sum of the widths that a layer's adapters read and write."""
    widths = target_widths(spec)
    return sum(sum(widths[target]) for target in targets if target in widths)


def lora_parameters(spec: ModelSpec, rank: float, targets: Sequence[str] = DEFAULT_TARGETS) -> float:
    """Return the trained weights of LoRA: ``rank (in + out)`` for each target and layer.

    References
    ----------
    E. Hu et al., "LoRA", 2021, section 4.1.

    Examples
    --------
    Llama-2-7B: 32 layers, hidden size 4096, MLP width 11008. Rank 16 on queries and values: 32 x 2 x 16 x 8192; on
    all seven projections: 32 x 16 x (4 x 8192 + 3 x 15104).

    >>> from roofcast.data.catalog import load_catalog
    >>> llama = load_catalog().models["meta-llama/Llama-2-7b-hf"]
    >>> lora_parameters(llama, 16), lora_parameters(llama, 16, LORA_TARGETS)
    (8388608, 39976960)
    """
    return spec.n_layer * rank * adapter_width(spec, targets)


def full_target_parameters(spec: ModelSpec, targets: Sequence[str]) -> float:
    """Return the weights of targets that are trained in full: a copy of embedding and head each, also if tied.

    References
    ----------
    Qwen, ``recipes/finetune``: "LoRA (emb)" trains embedding and output layer; PEFT, ``LoraConfig.modules_to_save``.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> full_target_parameters(load_catalog().models["meta-llama/Llama-2-7b-hf"], ["q", "embedding", "head"])
    262144000
    """
    return spec.vocab_size * spec.hidden_size * len({*FULL_TARGETS} & {*targets})


def lora_fa_parameters(spec: ModelSpec, rank: float, targets: Sequence[str] = DEFAULT_TARGETS) -> float:
    """Return the trained weights of LoRA-FA, which freezes the first matrix: ``rank out`` for each target.

    References
    ----------
    L. Zhang et al., "LoRA-FA", 2023, section 3.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> lora_fa_parameters(load_catalog().models["meta-llama/Llama-2-7b-hf"], 16)
    4194304
    """
    widths = target_widths(spec)
    return spec.n_layer * rank * sum(widths[target][1] for target in targets if target in widths)


def bottleneck_parameters(spec: ModelSpec, width: float) -> float:
    """Return the trained weights of two bottleneck adapters a layer, with biases.

    References
    ----------
    N. Houlsby et al., "Parameter-Efficient Transfer Learning for NLP", 2019, section 2.1: ``2md + d + m`` each.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> bottleneck_parameters(load_catalog().models["meta-llama/Llama-2-7b-hf"], 64)
    33820672
    """
    hidden = spec.hidden_size
    return spec.n_layer * 2 * (2 * hidden * width + hidden + width)


def prompt_parameters(spec: ModelSpec, n_virtual_token: float) -> float:
    """Return the trained weights of prompt tuning: one hidden vector for each virtual token.

    References
    ----------
    B. Lester et al., "The Power of Scale for Parameter-Efficient Prompt Tuning", 2021, section 2.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> prompt_parameters(load_catalog().models["meta-llama/Llama-2-7b-hf"], 100)
    409600
    """
    return spec.hidden_size * n_virtual_token


DEFAULT_BOTTLENECK: Final = 64.0
"""Width of a bottleneck adapter: N. Houlsby et al., 2019, section 3.2, among 8, 64 and 256."""

DEFAULT_VIRTUAL_TOKEN: Final = 100.0
"""Virtual tokens of prompt tuning: B. Lester et al., 2021, section 3."""


OTHER_ADAPTERS: Final = ("bottleneck", "prompt-tuning")
"""Variants that change no projections; all others are counted as LoRA."""


def trained_parameters(spec: ModelSpec, variant: str, rank: float, targets: Sequence[str] = DEFAULT_TARGETS) -> float:
    """Return the trained weights of a variant of an adapter method.

    Parameters
    ----------
    variant
        In lower case: ``lora-fa``, ``bottleneck``, ``prompt-tuning``; all others are counted as LoRA.
    rank
        Rank of LoRA, width of the bottleneck, or number of virtual tokens; NaN for the usual one.
    targets
        Projections with LoRA, and those of `FULL_TARGETS`.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> llama = load_catalog().models["meta-llama/Llama-2-7b-hf"]
    >>> [trained_parameters(llama, name, float("nan")) for name in ("", "lora-fa", "bottleneck", "prompt-tuning")]
    [8388608.0, 4194304.0, 33820672.0, 409600.0]
    """
    if variant == "bottleneck":
        return bottleneck_parameters(spec, DEFAULT_BOTTLENECK if math.isnan(rank) else rank)
    if variant == "prompt-tuning":
        return prompt_parameters(spec, DEFAULT_VIRTUAL_TOKEN if math.isnan(rank) else rank)
    count = lora_fa_parameters if "lora-fa" in variant else lora_parameters
    adapters = count(spec, DEFAULT_RANK if math.isnan(rank) else rank, targets)
    return adapters + full_target_parameters(spec, targets)


def variant_width(spec: ModelSpec, variant: str, targets: Sequence[str] = DEFAULT_TARGETS) -> int:
    """Return the sum of the widths that a layer's adapters of a variant read and write.

    Two bottleneck adapters read and write the hidden state; a prompt lengthens the sequence instead.
    """
    widths = {"bottleneck": 4 * spec.hidden_size, "prompt-tuning": 0}
    return widths[variant] if variant in widths else adapter_width(spec, targets)


def virtual_token(spec: ModelSpec, variant: str, rank: float, n_param_trained: float) -> float:
    """Return the tokens by which prompt tuning lengthens each sequence; 0 of other variants.

    Parameters
    ----------
    rank
        Number of virtual tokens; NaN if unknown.
    n_param_trained
        Trained weights, from which an unknown number follows.

    References
    ----------
    B. Lester et al., 2021, section 2: the prompt is concatenated to the embedded input.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> llama = load_catalog().models["meta-llama/Llama-2-7b-hf"]
    >>> [virtual_token(llama, "prompt-tuning", rank, 819200) for rank in (20, float("nan"))]
    [20, 200.0]
    """
    if variant != "prompt-tuning":
        return 0.0
    return n_param_trained / spec.hidden_size if math.isnan(rank) else rank
