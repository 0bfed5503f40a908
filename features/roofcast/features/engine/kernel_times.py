"""Times of kernels: dense products, attention of prefill and decode, and routed experts."""

from typing import Final

import numpy as np

from roofcast.features.engine.kernels.efficiency import (
    DecodeAttentionEfficiency,
    GemmEfficiency,
    MoeEfficiency,
    Number,
    PrefillAttentionEfficiency,
)
from roofcast.features.queries import FloatArray

ACTIVATION_BYTE: Final = 2.0
"""Bytes of one activation outside quantised products."""


def gemm_s(
    m: FloatArray,
    n: Number,
    k: Number,
    *,
    weight_byte: Number,
    activation_byte: Number,
    flop_per_s: Number,
    bandwidth_byte_per_s: Number,
    efficiency: GemmEfficiency,
) -> FloatArray:
    """Return the time of a product of `m` rows of activations with a `k` x `n` weight: shape (n_row,).

    - `m`: Rows of the activations: tokens.
    - `n`, `k`: Output columns and reduction depth.
    - `weight_byte`, `activation_byte`: Bytes of one weight and of one activation as operands; one output has two
      bytes.
    - `flop_per_s`, `bandwidth_byte_per_s`: Data-sheet peaks, dense.
    - `efficiency`: Parameters, each a number or of shape (n_row,).

    Notes
    -----
    ``launch + (memory^4 + compute^4 + latency^4)^(1/4)`` with ``compute = 2 (m + m0) (n + n0) k / (flop_ratio peak)``
    and ``latency = depth_s k``. The pads m0 and n0 approximate tile and wave quantisation without its steps: a
    product of few rows or columns computes as if it had more. Padding at most doubles the rows: tiles come in powers
    of two, and products of one row have kernels without tiles (cuBLAS's, llama.cpp's and MLX's for matrix times
    vector). Each tile reduces over the whole depth in sequence, at
    memory latency per block, so a deep product takes its time even with few columns.

    References
    ----------
    S. Williams, A. Waterman and D. Patterson, "Roofline", CACM 52(4), 2009; NVIDIA, "Matrix Multiplication
    Background User's Guide", sections on tile and wave quantisation.

    Examples
    --------
    With all ratios 1, no pads and no latency, 2 GB at 1 TB/s take 2 ms; compute time is negligible:

    >>> ideal = GemmEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    >>> peaks = {"flop_per_s": 1e15, "bandwidth_byte_per_s": 1e12}
    >>> gemm_s(np.array([0.0]), 1e4, 1e5, weight_byte=2.0, activation_byte=2.0, efficiency=ideal, **peaks)
    array([0.002])
    """
    byte = weight_byte * n * k + m * (activation_byte * k + ACTIVATION_BYTE * n)
    row_s = m / np.asarray(flop_per_s)
    padded_s = row_s + np.minimum(efficiency.pad_ridge / np.asarray(bandwidth_byte_per_s), row_s)
    return efficiency.launch_s + joint_s(
        byte / (efficiency.bandwidth_ratio * bandwidth_byte_per_s),
        2.0 * padded_s * ((n + efficiency.pad_column) * k) / efficiency.flop_ratio,
        np.asarray(efficiency.depth_s * k),
    )


def joint_s(*times: FloatArray) -> FloatArray:
    """Return the time of partly overlapping data movement, computation and latency: a soft maximum of power 4.

    Examples
    --------
    With two equal times the kernel takes 19 % longer than either:

    >>> joint_s(np.array([1.0, 1.0]), np.array([0.0, 1.0])).round(3)
    array([1.   , 1.189])
    """
    squares = [time * time for time in times]
    total: FloatArray = squares[0] * squares[0]
    for square in squares[1:]:
        total = total + square * square
    return np.sqrt(np.sqrt(total))


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

    - `n_sequence`: Prompts in the batch.
    - `n_query`, `n_context`: New tokens of each prompt, and all its tokens, new and cached.
    - `n_head`, `n_kv_head`: Query and key-value heads on this accelerator.
    - `qk_dim`, `v_dim`: Head widths of the products with keys and with values; 192 and 128 for MLA without absorbed
      matrices.
    - `window`: Sliding window in tokens, 0 for none.
    - `kv_byte`: Bytes of one cached element.
    - `flop_per_s`, `bandwidth_byte_per_s`: Data-sheet peaks, dense, of the compute precision of attention.
    - `efficiency`: Parameters, each a number or of shape (n_row,).

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

    - `n_sequence`: Sequences in the batch on this accelerator.
    - `n_context`: Cached tokens of each.
    - `n_head`, `n_kv_head`: Query and key-value heads on this accelerator; MLA with absorbed matrices has one
      key-value head.
    - `qk_dim`, `v_dim`: Head widths of the products with keys and with values; for MLA with absorbed matrices latent
      plus rotary width (576) and latent width (512).
    - `window`: Sliding window in tokens, 0 for none.
    - `kv_width`: Cached elements per token and key-value head: twice the head width, or latent plus rotary width.
    - `kv_byte`: Bytes of one cached element.
    - `flop_per_s`, `bandwidth_byte_per_s`: Data-sheet peaks, dense, of the compute precision of attention.
    - `efficiency`: Parameters, each a number or of shape (n_row,).

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


def touched_expert(n_expert: Number, n_choice: Number, n_token: FloatArray) -> FloatArray:
    """Return the expected number of experts that a batch of tokens activates.

    Notes
    -----
    With k of E experts drawn uniformly for each of B tokens: ``E (1 - (1 - k / E) ** B)``.

    Examples
    --------
    Two of eight experts; one token, then two tokens:

    >>> touched_expert(8.0, 2.0, np.array([1.0, 2.0]))
    array([2. , 3.5])
    """
    missed = 1.0 - np.minimum(np.asarray(n_choice) / np.maximum(n_expert, 1.0), 1.0 - 1e-12)
    return n_expert * -np.expm1(n_token * np.log(missed))


def moe_s(
    n_token: FloatArray,
    *,
    hidden: Number,
    width: Number,
    n_expert: Number,
    top_k: Number,
    tp: Number,
    ep: Number,
    weight_byte: Number,
    flop_per_s: Number,
    bandwidth_byte_per_s: Number,
    efficiency: MoeEfficiency,
    n_matrix: Number = 3.0,
) -> FloatArray:
    """Return the time of the routed experts on the busiest accelerator: shape (n_row,).

    - `n_token`: Tokens of all expert-parallel ranks together.
    - `hidden`, `width`: Hidden size of the model and of one expert.
    - `n_expert`, `top_k`: Routed experts of the layer, and experts per token.
    - `tp`, `ep`: Accelerators that split each expert's width, and accelerators that share the experts.
    - `flop_per_s`, `bandwidth_byte_per_s`: Data-sheet peaks, dense, of the compute precision.
    - `efficiency`: Parameters, each a number or of shape (n_row,).
    - `n_matrix`: Matrices of an expert: three if gated, two if plain.

    Notes
    -----
    The memory time reads the touched experts of the rank and passes over the hidden vectors of its token-expert
    pairs; the compute time has more rows for each touched expert, ``pad_ridge`` of the ridge point. The busiest of R
    ranks has ``R ** imbalance`` times its share of the pairs, at most all of them.

    Examples
    --------
    One token, two of eight experts of 3 x 1000 x 1000 bytes over 1 GB/s:

    >>> ideal = MoeEfficiency(0.0, 1.0, 1.0, 0.0, 1e-9, 0.0)
    >>> shape = {"hidden": 1e3, "width": 1e3, "n_expert": 8.0, "top_k": 2.0, "tp": 1.0, "ep": 1.0, "weight_byte": 1.0}
    >>> peaks = {"flop_per_s": 1e30, "bandwidth_byte_per_s": 1e9}
    >>> moe_s(np.array([1.0]), efficiency=ideal, **shape, **peaks).round(6)
    array([0.006])
    """
    pair = n_token * top_k * np.minimum(ep ** (np.asarray(efficiency.imbalance) - 1.0), 1.0)
    touched = touched_expert(n_expert, top_k, n_token) / ep
    weight = n_matrix * hidden * (np.asarray(width) / tp)
    byte = touched * weight * weight_byte + efficiency.token_ratio * ACTIVATION_BYTE * pair * hidden
    padded_s = pair / np.asarray(flop_per_s) + touched * (efficiency.pad_ridge / np.asarray(bandwidth_byte_per_s))
    return efficiency.launch_s + joint_s(
        byte / (efficiency.bandwidth_ratio * bandwidth_byte_per_s), 2.0 * weight * padded_s / efficiency.flop_ratio
    )
