"""Flags of prediction inputs that are doubtful but can be answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.features.engine.memory import Memory, estimate_memory
from roofcast.features.queries import descriptor_arrays
from roofcast.features.validity.model_limits import context_limits

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Descriptors = Mapping[str, FloatArray]

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

_NAMES: Final = pd.Index(FLAGS)


def find_flags(descriptors: pd.DataFrame, coefficients: Coefficients = DEFAULT_COEFFICIENTS) -> pd.DataFrame:
    """Return the flags of each row: bool, columns `FLAGS`, index of `descriptors`.

    Parameters
    ----------
    descriptors : shape (n_row, n_descriptor)
    coefficients
        Of the analytic estimate; they include the memory that each engine reserves.

    Examples
    --------
    7e9 weights in 16 bits and the cache of 8 requests do not fit in 24 GB:

    >>> from roofcast.features.examples import example_descriptors
    >>> row = example_descriptors() | {"hardware.memory_byte": np.array([24e9])}
    >>> flags = find_flags(pd.DataFrame(row))
    >>> flags.columns[flags.iloc[0]].tolist()
    ['batch_does_not_fit']
    """
    d = descriptor_arrays(descriptors)
    memory = estimate_memory(d, coefficients.by_row(d["config.engine"]))
    flags = _split_flags(d) | _memory_flags(d, memory)
    total = d["workload.n_input_token"] + d["workload.n_output_token"]
    flags["context_too_long"] = total > context_limits(d)
    return pd.DataFrame(np.column_stack([flags[name] for name in FLAGS]), index=descriptors.index, columns=_NAMES)


def _split_flags(d: Descriptors) -> dict[str, BoolArray]:
    tp, n_kv_head = d["config.tp"], d["model.n_kv_head"]
    is_mla = d["model.n_mla_layer"] > 0
    return {
        "tp_does_not_divide_heads": d["model.n_head"] % tp > 0,
        "tp_does_not_divide_kv_heads": ~is_mla & (n_kv_head % tp > 0) & (tp % n_kv_head > 0),
        "more_stages_than_layers": d["config.pp"] > d["model.n_layer"],
        "ep_does_not_divide_experts": (d["model.n_expert"] > 0) & (d["model.n_expert"] % d["config.ep"] > 0),
        "beyond_link_domain": tp > d["hardware.link_domain_size"],
    }


def _memory_flags(d: Descriptors, memory: Memory) -> dict[str, BoolArray]:
    concurrency = np.nan_to_num(d["workload.concurrency"])
    return {
        "does_not_fit": ~memory.fits,
        "batch_does_not_fit": memory.fits & (concurrency > np.maximum(memory.capacity, 1.0)),
    }
