"""Model shapes of specs: the widths that the training estimate reads."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from roofcast.data.layer_kinds import Experts, of_kind
from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.model_descriptors import describe_model
from roofcast.features.jobs.run_columns import ModelShape

ENCODER_TYPES: Final = ("bert", "roberta", "mpnet")


def build_model_shape(specs: Sequence[ModelSpec]) -> ModelShape:
    """Return the shapes of the specs: arrays of shape (n_spec,).

    Keys and values of multi-head latent attention have as many heads as queries in training.
    """
    described = [describe_model(spec) for spec in specs]
    columns = {name: np.array([row[f"model.{name}"] for row in described], dtype=float) for name in _NAMES}
    is_mla = np.array([spec.attention == "mla" for spec in specs])
    is_encoder = np.array([spec.model_type in ENCODER_TYPES for spec in specs])
    embedding = np.array([spec.vocab_size * spec.hidden_size for spec in specs], dtype=float)
    return ModelShape(
        dispatch_width=np.array([float(_dispatch_width(spec)) for spec in specs]),
        **columns | {"n_kv_head": np.where(is_mla, columns["n_head"], columns["n_kv_head"])},
        is_causal=1.0 - is_encoder,
        is_tied=np.array([float(spec.tie_word_embeddings) for spec in specs]),
        n_param_embedding=embedding,
    )


def _dispatch_width(spec: ModelSpec) -> int:
    return next((kind.latent for kind in of_kind(spec.layers, Experts) if kind.latent), spec.hidden_size)


_NAMES = (
    "n_layer", "hidden_size", "mixer_in_width", "mixer_out_width", "mlp_width", "n_mlp_layer", "n_mlp_matrix",
    "moe_width", "n_moe_layer", "n_expert", "n_expert_per_token", "n_head", "n_kv_head", "qk_dim", "v_dim",
    "n_full_layer", "n_sliding_layer", "n_linear_layer", "sliding_window", "sparse_top_k", "vocab_size", "n_param",
    "n_param_expert",
)  # fmt: skip
