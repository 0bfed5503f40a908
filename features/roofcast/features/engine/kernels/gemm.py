"""Time of a dense matrix product."""

from __future__ import annotations

import numpy as np

from roofcast.features.engine.kernels.efficiency import GemmEfficiency, Number, joint_s
from roofcast.features.queries import FloatArray

OUTPUT_BYTE = 2.0


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

    Parameters
    ----------
    m
        Rows of the activations: tokens.
    n, k
        Output columns and reduction depth.
    weight_byte, activation_byte
        Bytes of one weight and of one activation as operands; one output has two bytes.
    flop_per_s, bandwidth_byte_per_s
        Data-sheet peaks, dense.
    efficiency
        Parameters, each a number or of shape (n_row,).

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
    byte = weight_byte * n * k + m * (activation_byte * k + OUTPUT_BYTE * n)
    row_s = m / np.asarray(flop_per_s)
    padded_s = row_s + np.minimum(efficiency.pad_ridge / np.asarray(bandwidth_byte_per_s), row_s)
    return efficiency.launch_s + joint_s(
        byte / (efficiency.bandwidth_ratio * bandwidth_byte_per_s),
        2.0 * padded_s * ((n + efficiency.pad_column) * k) / efficiency.flop_ratio,
        np.asarray(efficiency.depth_s * k),
    )
