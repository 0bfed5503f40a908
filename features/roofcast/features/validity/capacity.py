"""How many requests, and how long a context, a replica can hold: the memory model turned round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roofcast.features.engine.memory import Memory, kv_replication

FloatArray = npt.NDArray[np.float64]
Descriptors = Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Limits:
    """What fits at most; arrays have shape (n_question,).

    Parameters
    ----------
    spare_byte
        Usable memory beyond the weights and one request; negative by how much they do not fit.
    concurrency
        Whole requests of the question's mean lengths whose cache fits at once.
    context_token
        Tokens, input and output together, that each of the question's requests in flight may hold at once; no more
        than the model's longest context, infinite if neither bounds them.
    """

    spare_byte: FloatArray
    concurrency: FloatArray
    context_token: FloatArray


def greatest(d: Descriptors, memory: Memory) -> Limits:
    """Return the limits of each question.

    Parameters
    ----------
    d
        Descriptors; without a concurrency one request is in flight.
    memory
        What `roofcast.features.engine.memory.estimate_memory` made of them.

    Notes
    -----
    A request's cache is ``(full + sliding) L`` elements until L passes the window W, then ``full L + sliding W``;
    what each of n requests may take is an n-th of the cache that ``capacity`` of them take.

    References
    ----------
    W. Kwon et al., "Efficient Memory Management for LLM Serving with PagedAttention", SOSP 2023.

    Examples
    --------
    Eight sequences of a model with 0.5 MB of cache a token share what its weights leave of 80 GB, but the model ends
    at 4096 tokens:

    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> from roofcast.features.engine.memory import estimate_memory
    >>> d = example_descriptors()
    >>> greatest(d, estimate_memory(d, DEFAULT_COEFFICIENTS.by_row(d["config.engine"]))).context_token
    array([4096.])
    """
    n_request = np.where(np.isnan(d["workload.concurrency"]), 1.0, np.maximum(d["workload.concurrency"], 1.0))
    cache_byte = memory.capacity * memory.kv_byte_per_sequence
    element = cache_byte / n_request / (d["config.kv_byte_per_element"] * kv_replication(d))
    longest = np.minimum(_context(element, d), d["model.max_context_token"])
    return Limits(
        spare_byte=memory.usable_byte - memory.needed_byte,
        concurrency=np.floor(memory.capacity),
        context_token=np.where(cache_byte > 0, np.floor(longest), 0.0),
    )


def _context(element: FloatArray, d: Descriptors) -> FloatArray:
    """Return the tokens whose cache has `element` elements."""
    full, sliding = d["model.kv_width"], d["model.kv_width_sliding"]
    window = np.where(d["model.sliding_window"] > 0, d["model.sliding_window"], np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        short = element / (full + sliding)
        long = (element - sliding * np.where(np.isfinite(window), window, 0.0)) / full
    growing = np.where(full > 0, long, np.inf)
    return np.where(full + sliding <= 0, np.inf, np.where(short <= window, short, growing))
