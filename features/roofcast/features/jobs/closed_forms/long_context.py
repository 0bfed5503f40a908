"""Long-context recipes that train on short windows for a long target."""

from __future__ import annotations

from roofcast.data.specs import ModelSpec


def sequence_flop(spec: ModelSpec, n_token: float) -> float:
    """Return the operations to train on one sequence: linear in its length, and quadratic for attention.

    References
    ----------
    J. Kaplan et al., "Scaling Laws for Neural Language Models", 2020, table 1; T. Dao, "FlashAttention-2", 2023.
    """
    value_dim = spec.v_head_dim or spec.head_dim
    n_full = spec.n_layer - spec.n_sliding_layer - spec.n_linear_layer
    pairs = n_full * n_token / 2 + spec.n_sliding_layer * min(n_token / 2, spec.sliding_window)
    product = spec.n_param_active - (0 if spec.tie_word_embeddings else spec.vocab_size * spec.hidden_size)
    return 3.0 * n_token * (2.0 * product + 2.0 * pairs * spec.n_head * (spec.head_dim + value_dim))


def saved_flop_ratio(spec: ModelSpec, target_token: float, window_ratio: float) -> float:
    """Return the share of operations that windows of `window_ratio` of the target save, with as many sequences.

    References
    ----------
    Z. Hu et al., "LongRecipe: Recipe for Efficient Long Context Generalization in Large Language Models", 2024.

    Examples
    --------
    Llama-3-8B with 30 % of 80,000 and of 128,000 tokens; the linear part alone saves 70 %, the quadratic one 91 %:

    >>> from roofcast.data.catalog import load_catalog
    >>> llama = load_catalog().models["meta-llama/Meta-Llama-3-8B"]
    >>> [round(saved_flop_ratio(llama, n, 0.3), 2) for n in (80e3, 128e3)]
    [0.82, 0.85]
    """
    return 1.0 - sequence_flop(spec, window_ratio * target_token) / sequence_flop(spec, target_token)
