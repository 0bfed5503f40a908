"""Parameter count of a language model, from the widths of its matrices."""

from __future__ import annotations

import dataclasses
from typing import Literal

from roofcast.data.specs import Attention, ModelSpec

Bias = Literal["none", "qkv", "all"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Widths and layer counts of an architecture, from which its weights are counted.

    Names and units are those of `ModelSpec`, but layers are counted by content, because some families have attention
    and MLP in separate layers. `n_param_indexer` are the weights of sparse attention's indexer, `n_param_latent`
    those of the projections to and from experts of a smaller width, `n_param_further` the differences between layers
    of one type, negative if they share weights. Fields from `bias` on are conventions of the family.
    """

    hidden_size: int
    vocab_size: int
    n_layer: int
    n_attention_layer: int
    n_mlp_layer: int
    n_moe_layer: int = 0
    n_encoder_layer: int = 0
    n_head: int
    n_kv_head: int
    head_dim: int
    attention: Attention = "mha"
    kv_lora_rank: int = 0
    q_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    intermediate_size: int = 0
    mlp_gated: bool = True
    n_expert: int = 0
    n_expert_per_token: int = 0
    moe_intermediate_size: int = 0
    shared_expert_intermediate_size: int = 0
    tie_word_embeddings: bool = False
    n_linear_layer: int = 0
    n_param_linear_layer: int = 0
    n_indexer_layer: int = 0
    n_param_indexer: int = 0
    n_param_latent: int = 0
    n_param_lookup: int = 0
    n_param_further: int = 0
    bias: Bias = "none"
    n_norm: int = 2
    qk_norm: bool = False
    query_gated: bool = False
    n_position: int = 0
    embedding_size: int = 0


def shape_from_spec(spec: ModelSpec) -> Shape:
    """Return the shape of a spec, without biases, learned positions and linear attention."""
    names = {f.name for f in dataclasses.fields(Shape)} & set(ModelSpec.model_fields)
    n_moe_layer = spec.n_layer - spec.n_dense_layer if spec.n_expert else 0
    return Shape(
        n_attention_layer=spec.n_layer - spec.n_linear_layer,
        n_mlp_layer=spec.n_layer - n_moe_layer,
        n_moe_layer=n_moe_layer,
        **{name: getattr(spec, name) for name in names},
    )


def count_parameters(shape: Shape) -> tuple[int, int]:
    """Return the number of weights of the text model: all, and those that one token uses.

    Both include embeddings, output head and shared experts. Vision towers and multi-token-prediction modules are not
    part of the text model. Router biases and the like (below 0.1 %) are not counted.

    Examples
    --------
    GPT-2: 12 layers of 12 x 768 x 768 weights, and an embedding of 50257 words and 1024 positions.

    >>> gpt2 = Shape(hidden_size=768, vocab_size=50257, n_layer=12, n_attention_layer=12, n_mlp_layer=12,
    ...     n_head=12, n_kv_head=12, head_dim=64, intermediate_size=3072, mlp_gated=False,
    ...     tie_word_embeddings=True, n_position=1024, bias="all")
    >>> count_parameters(gpt2)
    (124439808, 124439808)
    """
    attention = _mla(shape) if shape.attention == "mla" else _grouped_query(shape)
    mlp = _mlp(shape, shape.intermediate_size)
    expert = _mlp(shape, shape.moe_intermediate_size)
    shared = _mlp(shape, shape.shared_expert_intermediate_size)
    moe = shape.n_expert * (expert + shape.hidden_size) + shared + shape.n_param_latent
    total = (
        shape.n_attention_layer * attention
        + shape.n_linear_layer * shape.n_param_linear_layer
        + shape.n_indexer_layer * shape.n_param_indexer
        + shape.n_mlp_layer * mlp
        + shape.n_moe_layer * moe
        + _encoder_and_cross(shape, mlp)
        + _norms(shape)
        + _embeddings(shape)
        + shape.n_param_lookup
        + shape.n_param_further
    )
    idle = shape.n_moe_layer * (shape.n_expert - shape.n_expert_per_token) * expert
    return total, total - idle


def _grouped_query(shape: Shape) -> int:
    query = shape.n_head * shape.head_dim
    value_dim = shape.v_head_dim or shape.head_dim
    key_value = shape.n_kv_head * (shape.head_dim + value_dim)
    n_query = 2 if shape.query_gated else 1
    weights = shape.hidden_size * (n_query * query + key_value + shape.n_head * value_dim)
    biases = {"none": 0, "qkv": query + key_value, "all": query + key_value + shape.hidden_size}[shape.bias]
    return weights + biases + (2 * shape.head_dim if shape.qk_norm else 0)


def _mla(shape: Shape) -> int:
    hidden, rank, rope = shape.hidden_size, shape.kv_lora_rank, shape.qk_rope_head_dim
    value = shape.v_head_dim or shape.head_dim - rope
    query_in = shape.q_lora_rank or hidden
    query = query_in * shape.n_head * shape.head_dim
    if shape.q_lora_rank:
        query += (hidden + 1) * shape.q_lora_rank
    key_value = hidden * (rank + rope) + rank + rank * shape.n_head * (shape.head_dim - rope + value)
    n_output = 2 if shape.query_gated else 1
    return query + key_value + n_output * shape.n_head * value * hidden


def _mlp(shape: Shape, width: int) -> int:
    weights = (3 if shape.mlp_gated else 2) * shape.hidden_size * width
    if shape.bias != "all" or not width:
        return weights
    return weights + (2 if shape.mlp_gated else 1) * width + shape.hidden_size


def _encoder_and_cross(shape: Shape, mlp: int) -> int:
    if not shape.n_encoder_layer:
        return 0
    attention = 4 * shape.hidden_size * shape.n_head * shape.head_dim
    norms = (2 * shape.n_encoder_layer + shape.n_layer + 1) * shape.hidden_size
    return shape.n_encoder_layer * (attention + mlp) + shape.n_layer * attention + norms


def _norms(shape: Shape) -> int:
    n_vector = 2 if shape.bias == "all" else 1
    return n_vector * (shape.n_norm * shape.n_layer + 1) * shape.hidden_size


def _embeddings(shape: Shape) -> int:
    width = shape.embedding_size or shape.hidden_size
    tables = shape.vocab_size * width * (1 if shape.tie_word_embeddings else 2)
    projections = 2 * width * shape.hidden_size if width != shape.hidden_size else 0
    return tables + projections + shape.n_position * shape.hidden_size
