"""End-to-end latency with a gateway before the engine."""

from __future__ import annotations

from roofcast.data.errors import InputError


def gateway_share(engine_s: float, gateway_s: float, *, arrivals_per_s: float = 0.0, n_worker: int = 1) -> float:
    """Return the share of the end-to-end latency that a gateway takes.

    Parameters
    ----------
    gateway_s
        Processing of one request in the gateway.
    arrivals_per_s, n_worker
        Requests that arrive, and workers that process them, each with a queue of its own (M/M/1).

    Raises
    ------
    InputError
        If the gateway's workers cannot keep up.

    References
    ----------
    L. Kleinrock, "Queueing Systems", volume 1, 1975, section 3.2.

    Examples
    --------
    20 ms before 2 s are 1 %; with 40 requests a second on one worker they take 100 ms:

    >>> round(gateway_share(2.0, 0.02), 4), round(gateway_share(2.0, 0.02, arrivals_per_s=40.0), 4)
    (0.0099, 0.0476)
    """
    load = arrivals_per_s * gateway_s / n_worker
    if load >= 1.0:
        raise InputError("n_worker", f"must exceed {arrivals_per_s * gateway_s:g} for this load, got {n_worker}")
    waited_s = gateway_s / (1.0 - load)
    return waited_s / (engine_s + waited_s)
