"""Floating-point operations of a training step by operator."""

from dataclasses import dataclass

import numpy as np

from roofcast.features.engine.kernel_times import window_tokens
from roofcast.features.jobs.run_columns import Job, ModelShape
from roofcast.features.queries import FloatArray


@dataclass(frozen=True, slots=True)
class TokenFlop:
    """Operations per token of one forward pass, by operator, each of shape (n_row,)."""

    dense: FloatArray
    expert: FloatArray
    attention: FloatArray
    head: FloatArray

    @property
    def total(self) -> FloatArray:
        """Sum over the operators."""
        return self.dense + self.expert + self.attention + self.head


def forward_flop(model: ModelShape, job: Job) -> TokenFlop:
    """Return the operations per token of a forward pass: two for each weight that a token uses, and attention.

    Notes
    -----
    A causal token attends to half of its sequence on average: ``2 s / 2 (d_qk + d_v)`` operations a head and layer.

    References
    ----------
    J. Kaplan et al., "Scaling Laws for Neural Language Models", 2020, table 1; T. Dao, "FlashAttention-2", 2023,
    section 4.1 (causal attention counts half).
    """
    mixer = model.n_layer * model.hidden_size * (model.mixer_in_width + model.mixer_out_width)
    mlp = model.n_mlp_layer * model.n_mlp_matrix * model.hidden_size * model.mlp_width
    expert = model.n_moe_layer * model.n_expert_per_token * model.n_mlp_matrix * model.hidden_size * model.moe_width
    mean_token = job.n_token * (1.0 - 0.5 * model.is_causal)
    full = model.n_full_layer * window_tokens(mean_token, model.sparse_top_k)
    sliding = model.n_sliding_layer * window_tokens(mean_token, model.sliding_window)
    attention = 2.0 * (full + sliding) * model.n_head * (model.qk_dim + model.v_dim)
    return TokenFlop(2.0 * (mixer + mlp), 2.0 * expert, attention, 2.0 * model.vocab_size * model.hidden_size)


def model_flop(model: ModelShape, job: Job) -> FloatArray:
    """Return the operations per token of forward and backward without recomputation: shape (n_row,).

    Backward takes twice forward; with frozen weights once for products, because no gradient of a weight is computed.
    """
    flop = forward_flop(model, job)
    product = np.where(job.is_frozen > 0, 2.0, 3.0) * (flop.total - flop.attention)
    return product + 3.0 * flop.attention
