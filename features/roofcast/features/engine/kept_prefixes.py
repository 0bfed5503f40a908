"""Prefix caches of users who think: the contexts that a replica keeps between their requests."""

import numpy as np

from roofcast.features.engine.cache_pages import running_byte
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import FloatArray, Queries


def kept_ratio(d: Queries, e: Estimate, think_time_s: float) -> FloatArray:
    """Return the part of the reused prefixes that is still cached when a user comes back: shape (n_row,).

    Notes
    -----
    By Little's law ``X Z`` users think, each of whom leaves the part of the context that the next request reuses.
    They share the memory that running requests do not fill; what has no room there is computed again. Which contexts
    are dropped is not modelled: each user keeps the same part in the mean.

    References
    ----------
    vLLM, "Automatic Prefix Caching" (blocks without a running request are dropped, the least recently used first).
    """
    memory, n_reused = e.memory, d["workload.prefix_cache_ratio"] * d["workload.n_input_token"]
    n_thinking = e.request_throughput_per_s * think_time_s
    needed = n_thinking * np.where(n_reused > 0, running_byte(d, np.maximum(n_reused, 1.0)), 0.0)
    n_running = np.minimum(np.nan_to_num(e.concurrency), memory.capacity)
    room = (memory.capacity - n_running) * memory.kv_byte_per_sequence
    return np.asarray(np.where(needed > room, room / np.maximum(needed, 1.0), 1.0), dtype=np.float64)
