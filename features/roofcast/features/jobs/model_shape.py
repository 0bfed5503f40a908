"""Model shapes of specs: the widths that the training estimate reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.model_descriptors import describe_model
from roofcast.features.jobs.run_columns import ModelShape

ENCODER_TYPES: Final = ("bert", "roberta", "mpnet")

LEAST_LATENT_TOP_K: Final = 16
LATENT_RATIO: Final = 0.25
"""Nemotron 3 Super and Ultra choose 22 experts, which work on a latent vector of a quarter of the hidden size (their
``config.json``); the spec gives such experts as equal weights on the hidden size."""


def build_model_shape(specs: Sequence[ModelSpec]) -> ModelShape:
    """Return the shapes of the specs: arrays of shape (n_spec,).

    Keys and values of multi-head latent attention have as many heads as queries in training.
    """
    described = [describe_model(spec) for spec in specs]
    columns = {name: np.array([row[f"model.{name}"] for row in described], dtype=float) for name in _NAMES}
    is_mla = np.array([spec.attention == "mla" for spec in specs])
    is_encoder = np.array([spec.model_type in ENCODER_TYPES for spec in specs])
    embedding = np.array([spec.vocab_size * spec.hidden_size for spec in specs], dtype=float)
    latent = np.array([LATENT_RATIO if _has_latent_experts(spec) else 1.0 for spec in specs])
    return ModelShape(
        dispatch_width=latent * columns["hidden_size"],
        **columns | {"n_kv_head": np.where(is_mla, columns["n_head"], columns["n_kv_head"])},
        is_causal=1.0 - is_encoder,
        is_tied=np.array([float(spec.tie_word_embeddings) for spec in specs]),
        n_param_embedding=embedding,
    )


def _has_latent_experts(spec: ModelSpec) -> bool:
    return spec.model_type == "nemotron_h" and spec.n_expert_per_token >= LEAST_LATENT_TOP_K


_NAMES = (
    "n_layer", "hidden_size", "mixer_in_width", "mixer_out_width", "mlp_width", "n_mlp_layer", "n_mlp_matrix",
    "moe_width", "n_moe_layer", "n_expert", "n_expert_per_token", "n_head", "n_kv_head", "qk_dim", "v_dim",
    "n_full_layer", "n_sliding_layer", "n_linear_layer", "sliding_window", "sparse_top_k", "vocab_size", "n_param",
    "n_param_expert",
)  # fmt: skip
