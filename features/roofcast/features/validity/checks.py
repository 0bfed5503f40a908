"""Flags of prediction inputs that are doubtful but can be answered."""

from typing import Final

import numpy as np

from roofcast.features.engine.memory import Memory
from roofcast.features.queries import BoolArray, Queries
from roofcast.features.validity.model_limits import context_limits

FLAGS: Final[dict[str, str]] = {
    "context_too_long": "input and output together exceed the model's longest context",
    "tp_does_not_divide_heads": "tensor parallelism does not divide the query heads evenly",
    "tp_does_not_divide_kv_heads": "tensor parallelism and key-value heads do not divide each other evenly",
    "more_stages_than_layers": "pipeline parallelism has more stages than the model has layers",
    "ep_does_not_divide_experts": "expert parallelism does not spread the experts evenly",
    "beyond_link_domain": "tensor parallelism reaches beyond the accelerators that the fast link joins",
    "does_not_fit": "weights and the cache of one request exceed the memory",
    "batch_does_not_fit": "the cache has no room for all requests in flight: some wait, or a batch runs in parts",
}
"""Meaning of each flag."""


def find_flags(d: Queries, memory: Memory) -> dict[str, BoolArray]:
    """Return whether each of `FLAGS` applies to each row: shapes (n_row,); `memory` is the estimate's.

    Examples
    --------
    7e9 weights in 16 bits and the cache of 8 requests do not fit in 22 GB:

    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.engine.memory import estimate_memory
    >>> from roofcast.features.examples import example_descriptors
    >>> d = example_descriptors() | {"hardware.memory_byte": np.array([22e9])}
    >>> flags = find_flags(d, estimate_memory(d, DEFAULT_COEFFICIENTS.by_row(d["config.engine"])))
    >>> [name for name, applies in flags.items() if applies[0]]
    ['batch_does_not_fit']
    """
    tp, n_kv_head = d["config.tp"], d["model.n_kv_head"]
    is_mla = d["model.n_mla_layer"] > 0
    concurrency = np.nan_to_num(d["workload.concurrency"])
    flags = {
        "context_too_long": d["workload.n_input_token"] + d["workload.n_output_token"] > context_limits(d),
        "tp_does_not_divide_heads": d["model.n_head"] % tp > 0,
        "tp_does_not_divide_kv_heads": ~is_mla & (n_kv_head % tp > 0) & (tp % n_kv_head > 0),
        "more_stages_than_layers": d["config.pp"] > d["model.n_layer"],
        "ep_does_not_divide_experts": (d["model.n_expert"] > 0) & (d["model.n_expert"] % d["config.ep"] > 0),
        "beyond_link_domain": tp > d["hardware.link_domain_size"],
        "does_not_fit": ~memory.fits,
        "batch_does_not_fit": memory.fits & (concurrency > np.maximum(memory.capacity, 1.0)),
    }
    return {name: flags[name] for name in FLAGS}
