"""Time of the routed experts of one layer on one accelerator."""

from __future__ import annotations

import numpy as np

from roofcast.features.engine.kernels.efficiency import MoeEfficiency, Number, joint_s
from roofcast.features.queries import FloatArray

ACTIVATION_BYTE = 2.0


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

    Parameters
    ----------
    n_token
        Tokens of all expert-parallel ranks together.
    hidden, width
        Hidden size of the model and of one expert.
    n_expert, top_k
        Routed experts of the layer, and experts per token.
    tp, ep
        Accelerators that split each expert's width, and accelerators that share the experts.
    flop_per_s, bandwidth_byte_per_s
        Data-sheet peaks, dense, of the compute precision.
    efficiency
        Parameters, each a number or of shape (n_row,).
    n_matrix
        Matrices of an expert: three if gated, two if plain.

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
