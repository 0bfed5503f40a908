"""Figures of a whole model from its layers, and the layers of a spec that has figures alone.

Catalogue tables, files and databases hold models of uniform layers by their figures; `uniform_layers` is the only
reader of that form.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.layer_kinds import (
    Attention,
    Encoder,
    Experts,
    LayerKind,
    Layers,
    Lookup,
    Mlp,
    Recurrent,
    of_kind,
    text_param,
)

_STATE_HEAD_DIM: Final = 64
"""Width of a head where no layer attends: what ranks of tensors share is the width of the states."""


def summarise(layers: Layers, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a `ModelSpec` that its layers determine.

    Heads and widths are those of the attention that reads furthest; of several widths of one kind, the mean.

    `fields`: the spec's own ``n_layer``, ``hidden_size``, ``vocab_size``, ``tie_word_embeddings`` and
    ``n_param_other``.
    """
    hidden, n_layer = int(fields["hidden_size"]), int(fields["n_layer"])
    return {
        **_summarise_mixers(of_kind(layers, Attention), of_kind(layers, Recurrent), n_layer),
        **_summarise_mlps(of_kind(layers, Mlp), of_kind(layers, Experts), n_layer, hidden),
        **_count(layers, hidden, fields),
        "n_encoder_layer": sum(e.n for e in of_kind(layers, Encoder)),
        "n_param_lookup": sum(table.n_param(hidden) for table in of_kind(layers, Lookup)),
    }


def _summarise_mixers(kinds: list[Attention], states: list[Recurrent], n_layer: int) -> dict[str, Any]:
    if not kinds:
        n_head = max(max(k.out_width for k in states) // _STATE_HEAD_DIM, 1)
        return {"n_head": n_head, "n_kv_head": n_head, "head_dim": _STATE_HEAD_DIM, "n_linear_layer": n_layer}
    main = max(kinds, key=lambda k: (not k.is_sliding, not k.is_shared, k.n))
    name = "mla" if main.latent else "mha" if main.n_kv_head == main.n_head else "gqa"
    sliding, sparse = [k for k in kinds if k.is_sliding], [k for k in kinds if k.top_k]
    return {
        "n_head": main.n_head,
        "n_kv_head": main.n_kv_head,
        "head_dim": main.qk_dim,
        "v_head_dim": main.v_dim if main.latent or main.v_dim != main.qk_dim else 0,
        "attention": "mqa" if name == "gqa" and main.n_kv_head == 1 else name,
        "kv_lora_rank": main.latent,
        "q_lora_rank": main.query_rank,
        "qk_rope_head_dim": main.rope_dim,
        "sliding_window": max((k.window for k in sliding), default=0),
        "n_sliding_layer": sum(k.n for k in sliding),
        "n_linear_layer": n_layer - sum(k.n for k in kinds),
        "n_sparse_layer": sum(k.n for k in sparse),
        "sparse_top_k": max((k.top_k for k in sparse), default=0),
        "kv_compression": main.compression,
    }


def _summarise_mlps(mlps: list[Mlp], mixtures: list[Experts], n_layer: int, hidden: int) -> dict[str, Any]:
    n_mlp = sum(k.n for k in mlps)
    fields: dict[str, Any] = {
        "intermediate_size": sum(k.n * k.width for k in mlps) // n_mlp if n_mlp else 0,
        "mlp_gated": all(k.is_gated for k in mlps) and all(k.is_gated for k in mixtures),
    }
    if not mixtures:
        return fields
    main = max(mixtures, key=lambda k: k.n)
    return fields | {
        "n_expert": main.n_expert,
        "n_expert_per_token": main.top_k,
        "n_shared_expert": main.n_shared,
        "moe_intermediate_size": main.width * (main.latent or hidden) // hidden,
        "shared_expert_intermediate_size": main.shared_width,
        "n_dense_layer": n_layer - sum(k.n for k in mixtures),
    }


def _count(layers: Layers, hidden: int, fields: Mapping[str, Any]) -> dict[str, int]:
    is_tied = str(fields.get("tie_word_embeddings", False)).lower() == "true"
    tables = hidden * int(fields["vocab_size"]) * (1 if is_tied else 2)
    n_param = text_param(layers, hidden) + tables + int(fields.get("n_param_other") or 0)
    idle = sum(k.n_param_routed(hidden) * (k.n_expert - k.top_k) // k.n_expert for k in of_kind(layers, Experts))
    return {"n_param": n_param, "n_param_active": n_param - idle}


def uniform_layers(spec: Any) -> tuple[Layers, int]:
    """Return the layers of a spec of the form before layers had kinds, and the weights that no kind holds.

    Its layers are uniform, but for windows and for states of unknown shape. Weights beyond those of its widths are
    the mixers'.
    """
    n_linear, n_sliding = spec.n_linear_layer, spec.n_sliding_layer
    n_full = spec.n_layer - n_linear - n_sliding
    n_sparse = min(spec.n_sparse_layer, n_full)
    hidden = spec.hidden_size
    groups = (
        (n_sparse, {"top_k": spec.sparse_top_k, "compression": spec.kv_compression}),
        (n_full - n_sparse, {"compression": spec.kv_compression}),
        (n_sliding, {"window": spec.sliding_window}),
    )
    layers: list[LayerKind] = [_attention(spec, n, reads) for n, reads in groups if n > 0]
    layers += _mlps(spec)
    if spec.n_encoder_layer:
        n_matrix, width = 3 if spec.mlp_gated else 2, spec.n_head * spec.head_dim
        layers += [
            Encoder(
                n=spec.n_encoder_layer, n_cross=spec.n_layer, width=width, mlp_width=spec.intermediate_size,
                n_matrix=n_matrix,
            )
        ]  # fmt: skip
    if spec.n_param_lookup:
        layers += [Lookup(n=1, n_param_table=spec.n_param_lookup)]
    tables = hidden * spec.vocab_size * (1 if spec.tie_word_embeddings else 2)
    rest = spec.n_param - tables - text_param(layers, hidden)
    if n_linear:
        layers.append(Recurrent(n=n_linear, recurrence="unknown", n_param_further=max(rest, 0)))
    elif rest > 0:
        layers[0] = dataclasses.replace(layers[0], n_param_further=rest)
    return tuple(layers), min(rest, 0)


def _attention(spec: Any, n: int, reads: Mapping[str, Any]) -> LayerKind:
    return Attention(
        n=n,
        n_head=spec.n_head,
        n_kv_head=spec.n_kv_head,
        qk_dim=spec.head_dim,
        v_dim=spec.v_head_dim or spec.head_dim,
        latent=spec.kv_lora_rank,
        rope_dim=spec.qk_rope_head_dim,
        query_rank=spec.q_lora_rank,
        **reads,
    )


def _mlps(spec: Any) -> list[LayerKind]:
    n_moe = spec.n_layer - spec.n_dense_layer if spec.n_expert else 0
    layers: list[LayerKind] = []
    if spec.n_layer > n_moe and spec.intermediate_size:
        layers.append(Mlp(n=spec.n_layer - n_moe, width=spec.intermediate_size, is_gated=spec.mlp_gated))
    if n_moe:
        layers.append(
            Experts(
                n=n_moe,
                n_expert=spec.n_expert,
                top_k=spec.n_expert_per_token,
                width=spec.moe_intermediate_size,
                n_shared=spec.n_shared_expert,
                shared_width=spec.shared_expert_intermediate_size,
                is_gated=spec.mlp_gated,
            )
        )
    return layers
