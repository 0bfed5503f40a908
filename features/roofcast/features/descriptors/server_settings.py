"""Default server settings of engines: chunk size and the most sequences of a step."""

import re
from typing import Final

import numpy as np

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.precisions import Names
from roofcast.features.descriptors.prediction_input import PredictionInput, factorize, number_column, text_column
from roofcast.features.queries import FloatArray

GIB: Final = 2.0**30

LARGE_GIB: Final = 70.0
"""Memory from which vLLM counts an accelerator as large, unless `counts_as_small`."""

TYPICAL_CHUNK_TOKEN: Final = 8192.0
"""Chunk size of engines not in `CHUNK_TOKEN`; default of TensorRT-LLM (``max_num_tokens``)."""

CHUNK_TOKEN: Final = {
    "vllm": ((0.0, 2048.0), (LARGE_GIB, 8192.0)),
    "sglang": ((0.0, 2048.0), (35.0, 4096.0), (60.0, 8192.0), (160.0, 16384.0)),
    "llama.cpp": ((0.0, 512.0),),
}
"""Default chunk size by engine, from the least memory of an accelerator in GiB that it applies to.

References
----------
vLLM, ``EngineArgs.get_batch_defaults``: 8,192 for an API server on accelerators of at least 70 GiB but the A100,
else 2,048. SGLang,
``memory_hook.handle_gpu_memory_settings`` of 0.5.23: ``chunked_prefill_size`` by memory. llama.cpp, option
``--ubatch-size``: the micro-batches of a prompt follow each other through the accelerators of a layer split.
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


def counts_as_small(spec: AcceleratorSpec) -> bool:
    """Return whether vLLM gives an accelerator the defaults of small ones, whatever its memory.

    References
    ----------
    vLLM, ``EngineArgs.get_batch_defaults``: an A100, and one whose memory NVML does not tell, as of GB10 and Jetson
    (pull request 57378).
    """
    return "a100" in spec.id or (spec.vendor == "NVIDIA" and "unified" in spec.memory_type)


WHOLE_PROMPT_MINOR: Final = 8.0
MAX_WHOLE_PROMPT: Final = 32768.0
"""Minor version 0.x of vLLM before which a step takes whole prompts, up to this context: ``SchedulerConfig`` of V0,
``max_num_batched_tokens``."""

_MINOR: Final = re.compile(r"^v?0\.(\d+)(?!\.?dev)")


def vllm_minor(queries: PredictionInput, engine: Names) -> FloatArray:
    """Return the minor version 0.x of each row's vLLM; NaN for other engines and where it is unknown.

    Examples
    --------
    >>> versions = np.array(["0.22.1rc1", "v0.9", "nightly"], dtype=object)
    >>> vllm_minor({"engine_version": versions}, np.array(["vllm"] * 3, dtype=object))
    array([22.,  9., nan])
    """
    codes, versions = factorize(text_column(queries, "engine_version", ""))
    found = [_MINOR.match(str(version)) for version in versions]
    minor = np.array([float(match[1]) if match else np.nan for match in found])[codes]
    return np.where(engine == "vllm", minor, np.nan)


def default_chunk(queries: PredictionInput, engine: Names, memory_byte: FloatArray) -> FloatArray:
    """Return the default chunk size of each row's engine and version."""
    chunk = default_setting(CHUNK_TOKEN, engine, memory_byte, TYPICAL_CHUNK_TOKEN)
    longest = number_column(queries, "max_context_token", np.nan)
    is_whole = (vllm_minor(queries, engine) < WHOLE_PROMPT_MINOR) & (longest <= MAX_WHOLE_PROMPT)
    return np.where(is_whole, np.fmax(longest, chunk), chunk)


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
