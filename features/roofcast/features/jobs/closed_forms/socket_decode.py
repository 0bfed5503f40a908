"""Decode of a large model over the sockets of server processors."""

from __future__ import annotations


def socket_decode_s(
    weight_byte: float,
    n_socket: int,
    bandwidth_byte_per_s: float,
    *,
    bandwidth_ratio: float = 0.8,
    n_layer: int = 0,
    reduction_s: float = 0.0,
) -> float:
    """Return the time of one token: each socket reads its share of the weights, and two reductions a layer join them.

    References
    ----------
    P. He et al., "Distributed Inference Performance Optimization for LLMs on CPUs", 2024: 140 ms a token for 72
    billion weights on 5th-generation Xeon; neither precision nor number of sockets stands in its abstract.

    Examples
    --------
    72.7 GB of INT8 weights on two sockets of eight channels of DDR5-5600, 358 GB/s each, 80 layers, 0.1 ms for each
    reduction:

    >>> round(socket_decode_s(72.7e9, 2, 358.4e9, n_layer=80, reduction_s=1e-4), 3)
    0.143
    """
    return weight_byte / n_socket / (bandwidth_ratio * bandwidth_byte_per_s) + 2.0 * n_layer * reduction_s
