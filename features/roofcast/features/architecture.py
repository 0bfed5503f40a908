"""What a model's architecture implies: weights by role, attention width and cache per token."""

from __future__ import annotations

from roofcast.data.specs import ModelSpec


def describe_model(spec: ModelSpec) -> dict[str, float]:
    """Return the ``model.`` descriptors of a model.

    Returns
    -------
    Descriptor name to value; see `roofcast.features.columns.DESCRIPTORS` for units.

    Notes
    -----
    A decode step reads every weight except the input embedding (one row of it), the encoder and the routed
    experts that no token of the batch chose. With tied embeddings the one matrix is read as the output head.
    """
    n_expert_param = expert_param(spec)
    n_encoder_param = encoder_param(spec)
    n_input_embedding = 0 if spec.tie_word_embeddings else spec.vocab_size * spec.hidden_size
    n_dense = max(spec.n_param - n_expert_param - n_encoder_param - n_input_embedding, spec.hidden_size)
    n_growing = spec.n_layer - spec.n_sliding_layer - spec.n_linear_layer
    width = kv_width_per_layer(spec)
    return {
        "model.n_layer": spec.n_layer,
        "model.n_encoder_layer": spec.n_encoder_layer,
        "model.hidden_size": spec.hidden_size,
        "model.n_param": spec.n_param,
        "model.n_param_dense": n_dense,
        "model.n_param_expert": n_expert_param,
        "model.n_param_encoder": n_encoder_param,
        "model.n_expert": spec.n_expert,
        "model.n_expert_per_token": spec.n_expert_per_token,
        "model.attention_width": max(n_growing + spec.n_encoder_layer, 1) * spec.n_head * spec.head_dim,
        "model.kv_width": n_growing * width,
        "model.kv_width_sliding": spec.n_sliding_layer * width,
        "model.sliding_window": spec.sliding_window,
        "model.n_kv_head": 1 if spec.attention == "mla" else spec.n_kv_head,
    }


def expert_param(spec: ModelSpec) -> int:
    """Return the weights of all routed experts.

    Notes
    -----
    ``MoE layers x experts x matrices x hidden x width``, with three matrices if gated and two if plain.
    """
    n_matrix = 3 if spec.mlp_gated else 2
    n_moe_layer = spec.n_layer - spec.n_dense_layer
    return n_moe_layer * spec.n_expert * n_matrix * spec.hidden_size * spec.moe_intermediate_size


def encoder_param(spec: ModelSpec) -> int:
    """Return the weights of the encoder: four attention matrices and the MLP of each of its layers."""
    attention = 4 * spec.hidden_size * spec.n_head * spec.head_dim
    mlp = (3 if spec.mlp_gated else 2) * spec.hidden_size * spec.intermediate_size
    return spec.n_encoder_layer * (attention + mlp)


def kv_width_per_layer(spec: ModelSpec) -> int:
    """Return the cache elements of one token in one layer.

    Notes
    -----
    Keys and values of every key-value head; for MLA the compressed latent and the shared rotary key.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1 (multi-head latent attention).
    """
    if spec.attention == "mla":
        return spec.kv_lora_rank + spec.qk_rope_head_dim
    return 2 * spec.n_kv_head * spec.head_dim
