"""Time of attention in prefill and decode, of standard and multi-head latent attention (MLA)."""

from __future__ import annotations

import numpy as np

from roofcast.features.engine.kernels.efficiency import (
    DecodeAttentionEfficiency,
    Number,
    PrefillAttentionEfficiency,
    joint_s,
)
from roofcast.features.queries import FloatArray

ACTIVATION_BYTE = 2.0


def prefill_attention_s(
    *,
    n_sequence: FloatArray,
    n_query: Number,
    n_context: Number,
    n_head: Number,
    n_kv_head: Number,
    qk_dim: Number,
    v_dim: Number,
    window: Number,
    kv_byte: Number,
    flop_per_s: Number,
    bandwidth_byte_per_s: Number,
    efficiency: PrefillAttentionEfficiency,
) -> FloatArray:
    """Return the time of causal attention of new tokens over themselves and a cached prefix: shape (n_row,).

    Parameters
    ----------
    n_sequence
        Prompts in the batch.
    n_query, n_context
        New tokens of each prompt, and all its tokens, new and cached.
    n_head, n_kv_head
        Query and key-value heads on this accelerator.
    qk_dim, v_dim
        Head widths of the products with keys and with values; 192 and 128 for MLA without absorbed matrices.
    window
        Sliding window in tokens, 0 for none.
    kv_byte
        Bytes of one cached element.
    flop_per_s, bandwidth_byte_per_s
        Data-sheet peaks, dense, of the compute precision of attention.
    efficiency
        Parameters, each a number or of shape (n_row,).

    Notes
    -----
    Query ``i`` of ``q`` attends to ``c - q + i`` keys of ``c``, on average ``c - q / 2``, at most the window. Each
    query-key pair takes two operations per element of the head, with keys and with values.

    References
    ----------
    T. Dao, "FlashAttention-2", 2023, section 4.1 (operations of causal attention).

    Examples
    --------
    A prompt of 1000 tokens, one head of width 100: 4 x 1000 x 500 x 100 operations.

    >>> ideal = PrefillAttentionEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    >>> shape = {"n_head": 1.0, "n_kv_head": 1.0, "qk_dim": 100.0, "v_dim": 100.0, "window": 0.0, "kv_byte": 2.0}
    >>> peaks = {"flop_per_s": 1e9, "bandwidth_byte_per_s": 1e30}
    >>> prefill_attention_s(
    ...     n_sequence=np.array([1.0]), n_query=1e3, n_context=1e3, efficiency=ideal, **shape, **peaks
    ... )
    array([0.2])
    """
    half = 0.5 * np.asarray(n_query)
    attended_token = window_tokens(n_context - half, window)
    pair = (n_query + efficiency.pad_query) * (attended_token + efficiency.pad_key)
    sequence_head = n_sequence * n_head
    flop = 2.0 * (sequence_head + efficiency.pad_head) * pair * (qk_dim + v_dim)
    width = np.asarray(qk_dim) + v_dim
    read = window_tokens(np.asarray(n_context), window + np.asarray(n_query)) * n_kv_head * kv_byte
    byte = n_sequence * width * (ACTIVATION_BYTE * n_query * n_head + read)
    return efficiency.launch_s + joint_s(
        byte / (efficiency.bandwidth_ratio * bandwidth_byte_per_s), flop / (efficiency.flop_ratio * flop_per_s)
    )


def decode_attention_s(
    *,
    n_sequence: FloatArray,
    n_context: Number,
    n_head: Number,
    n_kv_head: Number,
    qk_dim: Number,
    v_dim: Number,
    window: Number,
    kv_width: Number,
    kv_byte: Number,
    flop_per_s: Number,
    bandwidth_byte_per_s: Number,
    efficiency: DecodeAttentionEfficiency,
) -> FloatArray:
    """Return the time of attention of one new token of each sequence over its cache: shape (n_row,).

    Parameters
    ----------
    n_sequence
        Sequences in the batch on this accelerator.
    n_context
        Cached tokens of each.
    n_head, n_kv_head
        Query and key-value heads on this accelerator; MLA with absorbed matrices has one key-value head.
    qk_dim, v_dim
        Head widths of the products with keys and with values; for MLA with absorbed matrices latent plus rotary width
        (576) and latent width (512).
    window
        Sliding window in tokens, 0 for none.
    kv_width
        Cached elements per token and key-value head: twice the head width, or latent plus rotary width.
    kv_byte
        Bytes of one cached element.
    flop_per_s, bandwidth_byte_per_s
        Data-sheet peaks, dense, of the compute precision of attention.
    efficiency
        Parameters, each a number or of shape (n_row,).

    References
    ----------
    T. Dao et al., "Flash-Decoding for long-context inference", 2023; DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1
    and appendix C (absorbed matrices of multi-head latent attention).

    Examples
    --------
    Ten sequences of 1000 tokens, one key-value head, 200 elements of two bytes a token: 4 MB over 1 GB/s.

    >>> ideal = DecodeAttentionEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    >>> shape = {"n_head": 8.0, "n_kv_head": 1.0, "qk_dim": 100.0, "v_dim": 100.0, "window": 0.0, "kv_width": 200.0}
    >>> peaks = {"flop_per_s": 1e30, "bandwidth_byte_per_s": 1e9}
    >>> decode_attention_s(
    ...     n_sequence=np.array([10.0]), n_context=1e3, kv_byte=2.0, efficiency=ideal, **shape, **peaks
    ... )
    array([0.004])
    """
    attended_token = window_tokens(np.asarray(n_context), window) + efficiency.pad_key
    sequence_head = n_sequence * n_kv_head + efficiency.pad_head
    byte = sequence_head * attended_token * kv_width * kv_byte
    head_s = np.asarray(n_head) / n_kv_head / flop_per_s + efficiency.pad_ridge / np.asarray(bandwidth_byte_per_s)
    return efficiency.launch_s + joint_s(
        byte / (efficiency.bandwidth_ratio * bandwidth_byte_per_s),
        2.0 * sequence_head * attended_token * (qk_dim + v_dim) * head_s / efficiency.flop_ratio,
    )


def window_tokens(n_token: FloatArray, window: Number) -> FloatArray:
    """Return the tokens inside an attention window; 0 means no window.

    Examples
    --------
    >>> window_tokens(np.array([100.0, 100.0]), np.array([0.0, 64.0]))
    array([100.,  64.])
    """
    return np.minimum(n_token, np.where(np.asarray(window) > 0, window, np.inf))
