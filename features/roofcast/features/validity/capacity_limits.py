"""Greatest concurrency and context that fit in a replica's memory: the inverse of the memory model."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.engine.cache_pages import admitted_byte, running_byte
from roofcast.features.engine.memory import Memory, context_token
from roofcast.features.queries import BoolArray, FloatArray, Queries
from roofcast.features.validity.model_limits import context_limits

_BIT: Final = 40
"""Contexts are below two to this power, in whole tokens."""


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """Memory limits of replicas; arrays have shape (n_row,).

    - `spare_byte`: Usable memory minus the weights and the cache of one request; negative if these do not fit.
    - `concurrency`: Requests of the mean lengths whose cache fits at once, rounded down.
    - `context_token`: Tokens, input and output together, that each request in flight can hold; at most the model's
      context limit, infinite if neither memory nor model bounds them.
    """

    spare_byte: FloatArray
    concurrency: FloatArray
    context_token: FloatArray


def capacity_limits(d: Queries, memory: Memory) -> CapacityLimits:
    """Return the memory limits of each row.

    `d`: descriptors; a missing concurrency counts as one request in flight. `memory`: memory estimate of the same
    rows.

    Notes
    -----
    Each of n requests in flight may take an n-th of the cache memory; a cache of pages grows in steps, so the context
    is found by bisection.

    References
    ----------
    W. Kwon et al., "Efficient Memory Management for LLM Serving with PagedAttention", SOSP 2023.

    Examples
    --------
    Eight sequences with 0.5 MB of cache a token share the memory of 80 GB that the weights leave; the model's own
    context limit of 4096 tokens is less:

    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> from roofcast.features.engine.memory import estimate_memory
    >>> d = example_descriptors()
    >>> capacity_limits(d, estimate_memory(d, DEFAULT_COEFFICIENTS.by_row(d["config.engine"]))).context_token
    array([4096.])
    """
    n_request = np.where(np.isnan(d["workload.concurrency"]), 1.0, np.maximum(d["workload.concurrency"], 1.0))
    cache_byte = memory.capacity * memory.kv_byte_per_sequence + _chunk_byte(d, context_token(d))
    longest = np.minimum(_longest_context(cache_byte, n_request, d), context_limits(d))
    return CapacityLimits(
        spare_byte=memory.usable_byte - memory.needed_byte,
        concurrency=np.floor(memory.capacity),
        context_token=np.where(memory.capacity > 0, np.floor(longest), 0.0),
    )


def _chunk_byte(d: Queries, context: FloatArray) -> FloatArray:
    return d["config.dp"] * (admitted_byte(d, context) - running_byte(d, context))


def _longest_context(byte: FloatArray, n_request: FloatArray, d: Queries) -> FloatArray:
    def has_room(context: FloatArray) -> BoolArray:
        return n_request * running_byte(d, context) + _chunk_byte(d, context) <= byte

    low, high = np.zeros_like(byte), np.full_like(byte, 2.0**_BIT)
    is_endless = has_room(high)
    for _ in range(_BIT):
        middle = (low + high) / 2
        fits = has_room(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(is_endless, np.inf, low)
