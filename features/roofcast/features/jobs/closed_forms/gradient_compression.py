"""Traffic of data-parallel training with compressed gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

Compression = Literal["none", "sign", "top_k", "power_sgd", "acp_sgd"]

GRADIENT_BYTE: Final = 4.0
INDEX_BYTE: Final = 4.0


def reduction_s(
    compression: Compression,
    matrices: Sequence[tuple[int, int]],
    *,
    n_rank: int,
    byte_per_s: float,
    latency_s: float = 0.0,
    rank: int = 4,
    kept_ratio: float = 0.001,
) -> float:
    """Return the time to exchange the gradients of a step among `n_rank` replicas, without the compression itself.

    Parameters
    ----------
    compression
        ``none`` (S-SGD, a ring all-reduce in 32 bits), ``sign`` (one bit an element, gathered from all), ``top_k``
        (values and indices of `kept_ratio` of the elements, gathered from all), ``power_sgd`` (two factors of `rank`
        columns, reduced), ``acp_sgd`` (the two factors in turn, one a step, reduced).
    matrices
        Rows and columns of each gradient.
    byte_per_s, latency_s
        Bandwidth of one replica in one direction, and latency of one step of the collective.

    Notes
    -----
    A ring all-reduce moves ``2 (n - 1) / n`` of its bytes; an all-gather of what cannot be summed moves ``n - 1``
    times the bytes of one rank, which is why sign and top-k lose to S-SGD with many replicas.

    References
    ----------
    J. Bernstein et al., "signSGD", 2018; Y. Lin et al., "Deep Gradient Compression", 2018; T. Vogels et al.,
    "PowerSGD", 2019; L. Zhang et al., "Evaluation and Optimization of Gradient Compression for Distributed Deep
    Learning" (ACP-SGD), 2023.

    Examples
    --------
    A hundred gradients of 1000 x 1000 among 32 replicas with 1 Gbit/s: 31 / 16 x 400 MB without compression, 31 x
    12.5 MB of signs, 31 x 0.8 MB of values and indices, 31 / 16 x 3.2 MB of two factors, and half of it for one.

    >>> gradients, port = [(1000, 1000)] * 100, {"n_rank": 32, "byte_per_s": 125e6}
    >>> [round(reduction_s(name, gradients, **port), 4) for name in ("none", "sign", "top_k", "power_sgd", "acp_sgd")]
    [6.2, 3.1, 0.1984, 0.0496, 0.0248]
    """
    n_element = sum(rows * columns for rows, columns in matrices)
    factors = GRADIENT_BYTE * rank * sum(rows + columns for rows, columns in matrices)
    gathered = {"sign": n_element / 8.0, "top_k": kept_ratio * n_element * (GRADIENT_BYTE + INDEX_BYTE)}
    if compression in gathered:
        return (n_rank - 1) * (latency_s + gathered[compression] / byte_per_s)
    reduced = {"none": GRADIENT_BYTE * n_element, "power_sgd": factors, "acp_sgd": factors / 2.0}[compression]
    n_collective = 2 if compression == "power_sgd" else 1
    return 2.0 * (n_rank - 1) * (n_collective * latency_s + reduced / n_rank / byte_per_s)


def exposed_step_s(compute_s: float, backward_ratio: float, exchange_s: float) -> float:
    """Return the time of a step whose exchange overlaps with the backward pass.

    Examples
    --------
    A step of 0.3 s, two thirds of it backward, hides 0.2 s of an exchange:

    >>> exposed_step_s(0.3, 2 / 3, 6.2), exposed_step_s(0.3, 2 / 3, 0.02)
    (6.3, 0.3)
    """
    return round(compute_s + max(exchange_s - backward_ratio * compute_s, 0.0), 12)


def least_bandwidth_byte_per_s(n_byte: float, n_rank: int, hiding_s: float) -> float:
    """Return the bandwidth at which the backward pass hides a ring all-reduce; infinite if nothing hides it.

    Examples
    --------
    400 MB among 32 replicas behind 0.2 s need 31 Gbit/s:

    >>> round(least_bandwidth_byte_per_s(4e8, 32, 0.2) * 8 / 10**9, 1)
    31.0
    """
    return 2.0 * (n_rank - 1) / n_rank * n_byte / hiding_s if hiding_s > 0 else math.inf
