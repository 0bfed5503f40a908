"""Default server settings of engines: chunk size and the most sequences of a step."""

from __future__ import annotations

from typing import Final

import numpy as np

from roofcast.features.descriptors.precisions import Names
from roofcast.features.queries import FloatArray

GIB: Final = 2.0**30

LARGE_GIB: Final = 70.0
"""Memory from which vLLM counts an accelerator as large; an A100 never is."""

TYPICAL_CHUNK_TOKEN: Final = 8192.0
"""Chunk size of engines not in `CHUNK_TOKEN`; default of TensorRT-LLM (``max_num_tokens``)."""

CHUNK_TOKEN: Final = {
    "vllm": ((0.0, 2048.0), (LARGE_GIB, 8192.0)),
    "sglang": ((0.0, 2048.0), (35.0, 4096.0), (60.0, 8192.0), (90.0, 16384.0)),
    "llama.cpp": ((0.0, 512.0),),
}
"""Default chunk size by engine, from the least memory of an accelerator in GiB that it applies to.

References
----------
vLLM, ``EngineArgs.get_batch_defaults``: 8,192 for an API server on accelerators of at least 70 GiB but the A100,
else 2,048. SGLang,
``ServerArgs._handle_gpu_memory_settings``: ``chunked_prefill_size`` by memory. llama.cpp, option ``--ubatch-size``:
the micro-batches of a prompt follow each other through the accelerators of a layer split.
"""

MAX_NUM_SEQS: Final = {
    "vllm": ((0.0, 256.0), (LARGE_GIB, 1024.0)),
    "trtllm": ((0.0, 2048.0),),
}
"""The same for the most sequences of a step; other engines are limited by memory alone.

References
----------
vLLM, ``EngineArgs.get_batch_defaults``; TensorRT-LLM, ``trtllm-serve``, option ``--max_batch_size``.
"""


def default_setting(
    table: dict[str, tuple[tuple[float, float], ...]], engine: Names, memory_byte: FloatArray, typical: float
) -> FloatArray:
    """Return the default of each row's engine for the memory of its accelerator, `typical` if not in the table.

    Examples
    --------
    >>> engine = np.array(["vllm", "vllm", "tgi"], dtype=object)
    >>> default_setting(CHUNK_TOKEN, engine, np.array([24e9, 80e9, 80e9]), 1.0)
    array([2.048e+03, 8.192e+03, 1.000e+00])
    """
    value = np.full(len(engine), typical)
    for name, steps in table.items():
        for least_gib, setting in steps:
            value[(engine == name) & (memory_byte >= least_gib * GIB)] = setting
    return value
