"""Trained weights of adapter methods, by hand-checkable counts."""

import functools
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from roofcast.data.layer_kinds import Attention, Experts, Mlp, of_kind
from roofcast.data.specs import ModelSpec

LORA_TARGETS: Final = ("q", "k", "v", "o", "gate", "up", "down")
FULL_TARGETS: Final = ("embedding", "head")
"""Targets that are trained in full beside the adapters."""

DEFAULT_TARGETS: Final = ("q", "v")
"""PEFT's default for Llama-like models, and that of LoRA's paper: queries and values."""

DEFAULT_RANK: Final = 16.0


GATED_QUERY_TYPES: Final = ("qwen3_next", "qwen3_5")
"""Beginnings of model types whose projection of queries gives a gate too: Transformers' ``Qwen3NextAttention``."""


class Projection(NamedTuple):
    """A product of the model that adapters may change.

    - `name`: Tells it from others of its widths.
    - `n_copy`, `n_used`: Its copies in the model, and those that one token passes.
    - `is_expert`: Whether routed experts have it.
    """

    name: str
    n_in: int
    n_out: int
    n_copy: int
    n_used: int
    is_expert: bool = False


def target_projections(spec: ModelSpec, targets: Sequence[str]) -> list[Projection]:
    """Return the projections that targets name, each once.

    Notes
    -----
    Queries, keys, values and output are those of the layers with attention. MLP targets are those of dense layers,
    of shared experts and of every routed expert. Multi-head latent attention has no projections of keys or of values:
    either target names both projections of the latent from which they come.

    References
    ----------
    PEFT, ``LoraConfig.target_modules``: all modules with the name, so those of every expert; DeepSeek-AI,
    "DeepSeek-V2", 2024, section 2.1.

    Examples
    --------
    See `lora_parameters`.
    """
    by_target = _projections(spec)
    return list(dict.fromkeys(p for target in targets for p in by_target.get(target, ())))


@functools.lru_cache(maxsize=256)
def _projections(spec: ModelSpec) -> dict[str, tuple[Projection, ...]]:
    return _attention_projections(spec) | _mlp_projections(spec)


def _attention_projections(spec: ModelSpec) -> dict[str, tuple[Projection, ...]]:
    n_layer = spec.n_layer - spec.n_linear_layer
    n_again = sum(k.n for k in of_kind(spec.layers, Attention) if k.is_again)
    hidden, value_dim = spec.hidden_size, spec.v_head_dim or spec.head_dim

    def projection(name: str, n_in: int, n_out: int) -> Projection:
        return Projection(name, n_in, n_out, n_layer - n_again, n_layer)

    query = spec.n_head * spec.head_dim * (2 if spec.model_type.startswith(GATED_QUERY_TYPES) else 1)
    output: dict[str, tuple[Projection, ...]] = {"o": (projection("o", spec.n_head * value_dim, hidden),)}
    if spec.attention != "mla":
        key, value = spec.n_kv_head * spec.head_dim, spec.n_kv_head * value_dim
        widths = {"q": query, "k": key, "v": value}
        return output | {name: (projection(name, hidden, width),) for name, width in widths.items()}
    rank, rotated = spec.kv_lora_rank, spec.qk_rope_head_dim
    latent = (
        projection("kv_a", hidden, rank + rotated),
        projection("kv_b", rank, spec.n_head * (spec.head_dim - rotated + value_dim)),
    )
    low = spec.q_lora_rank
    queries = (projection("q_a", hidden, low), projection("q_b", low, query)) if low else ()
    return output | {"q": queries or (projection("q", hidden, query),), "k": latent, "v": latent}


def _mlp_projections(spec: ModelSpec) -> dict[str, tuple[Projection, ...]]:
    n_dense = spec.n_dense_layer if spec.n_expert else spec.n_layer
    n_moe, n_chosen = spec.n_layer - n_dense, spec.n_expert_per_token
    n_own = n_dense - sum(k.n for k in of_kind(spec.layers, Mlp) if k.is_again)
    n_own_moe = n_moe - sum(k.n for k in of_kind(spec.layers, Experts) if k.is_again)
    hidden = spec.hidden_size
    kinds = (
        Projection("dense", hidden, spec.intermediate_size, n_own, n_dense),
        Projection("shared", hidden, spec.shared_expert_intermediate_size, n_own_moe, n_moe),
        Projection("routed", hidden, spec.moe_intermediate_size, n_own_moe * spec.n_expert, n_moe * n_chosen, True),
    )
    own = [kind for kind in kinds if kind.n_out]
    names = ("up", "gate") if spec.mlp_gated else ("up",)
    inward = {name: tuple(kind._replace(name=f"{kind.name} {name}") for kind in own) for name in names}
    outward = (kind._replace(name=f"{kind.name} down", n_in=kind.n_out, n_out=hidden) for kind in own)
    return inward | {"down": tuple(outward)}


def adapter_width(spec: ModelSpec, targets: Sequence[str] = DEFAULT_TARGETS) -> float:
    """Return the sum of the widths that adapters read and write which a token passes, of the mean layer.

    Examples
    --------
    Mixtral: two of eight experts of width 14336 on hidden size 4096.

    >>> from roofcast.data.catalog import load_catalog
    >>> adapter_width(load_catalog().models["mistralai/Mixtral-8x7B-v0.1"], ["up"])
    36864.0
    """
    return sum(p.n_used * (p.n_in + p.n_out) for p in target_projections(spec, targets)) / spec.n_layer


def lora_parameters(spec: ModelSpec, rank: float, targets: Sequence[str] = DEFAULT_TARGETS) -> float:
    """Return the trained weights of LoRA: ``rank (in + out)`` for each projection.

    References
    ----------
    E. Hu et al., "LoRA", 2021, section 4.1.

    Examples
    --------
    Llama-2-7B: 32 layers, hidden size 4096, MLP width 11008. Rank 16 on queries and values: 32 x 2 x 16 x 8192; on
    all seven projections: 32 x 16 x (4 x 8192 + 3 x 15104). Mixtral-8x7B, on all seven, eight experts:
    32 x 16 x (2 x 8192 + 2 x 5120 + 8 x 3 x 18432).

    >>> from roofcast.data.catalog import load_catalog
    >>> models = load_catalog().models
    >>> llama, mixtral = models["meta-llama/Llama-2-7b-hf"], models["mistralai/Mixtral-8x7B-v0.1"]
    >>> lora_parameters(llama, 16), lora_parameters(llama, 16, LORA_TARGETS)
    (8388608, 39976960)
    >>> lora_parameters(mixtral, 16, LORA_TARGETS)
    240123904
    """
    return rank * sum(p.n_copy * (p.n_in + p.n_out) for p in target_projections(spec, targets))


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
    return rank * sum(p.n_copy * p.n_out for p in target_projections(spec, targets))


def expert_ratio(spec: ModelSpec, variant: str, targets: Sequence[str] = DEFAULT_TARGETS) -> float:
    """Return the share of the weights of LoRA, or of LoRA-FA, that is in routed experts."""
    projections = target_projections(spec, targets)
    width = [p.n_copy * (p.n_out + ("lora-fa" not in variant) * p.n_in) for p in projections]
    in_experts = sum(w for w, p in zip(width, projections, strict=True) if p.is_expert)
    return in_experts / max(sum(width), 1)


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

    - `variant`: In lower case: ``lora-fa``, ``bottleneck``, ``prompt-tuning``; all others are counted as LoRA.
    - `rank`: Rank of LoRA, width of the bottleneck, or number of virtual tokens; NaN for the usual one.
    - `targets`: Projections with LoRA, and those of `FULL_TARGETS`.

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


def variant_width(spec: ModelSpec, variant: str, targets: Sequence[str] = DEFAULT_TARGETS) -> float:
    """Return the sum of the widths that adapters of a variant read and write which a token passes, of the mean layer.

    Two bottleneck adapters read and write the hidden state; a prompt lengthens the sequence instead.
    """
    widths = {"bottleneck": 4 * spec.hidden_size, "prompt-tuning": 0}
    return widths[variant] if variant in widths else adapter_width(spec, targets)


def virtual_token(spec: ModelSpec, variant: str, rank: float, n_param_trained: float) -> float:
    """Return the tokens by which prompt tuning lengthens each sequence; 0 of other variants.

    `rank`: number of virtual tokens; NaN if unknown. `n_param_trained`: trained weights, from which an unknown number
    follows.

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
