"""Pools of consumer accelerators that train one model as a pipeline over a wide-area network."""

from __future__ import annotations


def pool_flop_per_s(
    n_peer: int,
    peak_flop_per_s: float,
    *,
    efficiency: float,
    stage_flop: float,
    message_byte: float,
    byte_per_s: float,
    n_micro_batch: int,
    n_stage: int,
    failures_per_h: float = 0.0,
    recovery_h: float = 0.0,
) -> float:
    """Return the sustained operations per second of a pool, pipelines of `n_stage` peers side by side.

    Parameters
    ----------
    efficiency
        Share of the peak that a peer sustains alone.
    stage_flop, message_byte
        Operations of a stage for one micro-batch, forward and backward, and bytes that it passes on in each
        direction.
    byte_per_s
        Bandwidth of a peer in one direction; transfers overlap with computing, and the longer of both counts.
    n_micro_batch, n_stage
        Micro-batches of a step, and stages of a pipeline, whose bubble is ``(p - 1) / m``.
    failures_per_h, recovery_h
        Departures of one peer, each of which stops its pipeline for the time to replace it.

    References
    ----------
    Z. Tang et al., "FusionAI: Decentralized Training and Deploying LLMs with Massive Consumer-Level GPUs", 2023.

    Examples
    --------
    50 RTX 3080 of 59.5 TFLOP/s in two pipelines of 25 stages, 100 Mbit/s each; a stage computes 20 TFLOP on a
    message of 8 MB: 0.64 s of transfer hide behind 0.84 s of work. A bubble of 24 / 100, and one departure in ten
    hours a peer that takes 0.1 h to mend, leave 65 % of 2975 TFLOP/s x 0.4:

    >>> pool = {"efficiency": 0.4, "stage_flop": 20e12, "message_byte": 8e6, "byte_per_s": 12.5e6}
    >>> rate = pool_flop_per_s(
    ...     50, 59.5e12, n_micro_batch=100, n_stage=25, failures_per_h=0.1, recovery_h=0.1, **pool
    ... )
    >>> round(rate / 10**12)
    768

    Four H100 at the same share of 989.4 TFLOP/s:

    >>> round(4 * 989.4 * 0.4)
    1583
    """
    compute_s = stage_flop / (efficiency * peak_flop_per_s)
    busy = compute_s / max(compute_s, message_byte / byte_per_s)
    bubble = 1.0 + (n_stage - 1) / n_micro_batch
    available = 1.0 / (1.0 + n_stage * failures_per_h * recovery_h)
    return n_peer * efficiency * peak_flop_per_s * busy / bubble * available
