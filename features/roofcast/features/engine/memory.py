"""Memory of a replica: weights, cache per sequence and the number of sequences that fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import RowCoefficients
from roofcast.features.engine.loaded_weights import loaded_byte
from roofcast.features.queries import FloatArray, Queries

GIB: Final = 2.0**30

ENGINE_MEMORY: Final = {
    "vllm": (0.90, 3 * GIB, 1.0),
    "sglang": (1.0, 12.5 * GIB, 1.0),
    "trtllm": (1.0, 4 * GIB, 0.90),
    "tgis": (0.96, 2.3 * GIB, 0.80),
    "other": (0.90, 2 * GIB, 1.0),
}
"""Default memory settings by engine: share of the memory used, bytes reserved per accelerator, and share of the
remainder given to the cache. The reserve holds the driver's context, message and graph buffers, activations, and
fragmentation of the allocator's blocks of 2 and 20 MiB; partly filled cache pages are in `kv_waste`.

References
----------
vLLM, option ``--gpu-memory-utilization``, 0.9; its reserve is the profiled peak of activations. SGLang,
``server_args.py``: keeps 1.5 MiB for each token of a chunk of 8,192 and the graphs' buffers. TensorRT-LLM,
``KvCacheConfig.free_gpu_memory_fraction``, 0.9 of what is cache_byte beside weights and activations. PyTorch,
``CUDACachingAllocator.cpp``: sizes of blocks. IBM's text-generation-inference (tgis),
``memory_characterizer.py``: a margin of 20 % on what the weights leave; its share and bytes are judgement, with the
profiles that LLM-Pilot lacks in view.
"""

_ENGINE_COLUMNS: Final = tuple(
    np.array([ENGINE_MEMORY.get(engine, ENGINE_MEMORY["other"])[i] for engine in ENGINES]) for i in range(3)
)


def visible_byte(spec: AcceleratorSpec) -> float:
    """Return the memory that the driver reports: data-centre GDDR6 keeps a 16th for error correction.

    HBM stores these codes separately; on workstation cards error correction is off by default.

    References
    ----------
    NVIDIA, "CUDA C++ Best Practices Guide", section on effective bandwidth (error correction takes 6.25 % of GDDR
    memory); "IGX User Guide", DRAM-ECC (inline: one 16th).

    Examples
    --------
    An L4 of 24 GiB reports 22.5:

    >>> from roofcast.data.catalog import load_catalog
    >>> visible_byte(load_catalog().accelerators["nvidia-l4-24gb"]) / GIB
    22.5
    """
    is_inline = spec.vendor.lower() == "nvidia" and spec.memory_type == "GDDR6" and spec.form_factor == "PCIe"
    return spec.memory_byte * (15 / 16 if is_inline else 1.0)


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one replica, summed over its accelerators; every array has shape (n_row,).

    Parameters
    ----------
    usable_byte
        Memory available to the engine.
    weight_byte
        Weights with their data-parallel copies.
    kv_byte_per_sequence
        KV cache of one running request at its mean length.
    capacity
        Requests that fit beside the weights; 0 if the weights do not fit.
    """

    usable_byte: FloatArray
    weight_byte: FloatArray
    kv_byte_per_sequence: FloatArray
    capacity: FloatArray

    @property
    def needed_byte(self) -> FloatArray:
        """Weights and the KV cache of one request."""
        return self.weight_byte + self.kv_byte_per_sequence

    @property
    def fits(self) -> npt.NDArray[np.bool_]:
        """Whether the weights and the KV cache of one request fit."""
        return self.needed_byte <= self.usable_byte


def n_slot(d: Queries, memory: Memory) -> FloatArray:
    """Return the most running requests, at least 1: those that fit, and into the steps of all attention ranks."""
    return np.maximum(np.minimum(memory.capacity, d["config.max_num_seqs"] * d["config.dp"]), 1.0)


def context_token(d: Queries) -> FloatArray:
    """Return the mean cached tokens of a running request: its input and half its output."""
    return d["workload.n_input_token"] + d["workload.n_output_token"] / 2


def kv_token(d: Queries) -> tuple[FloatArray, FloatArray]:
    """Return the mean cached tokens of a running request in full-attention and in sliding-window layers.

    Notes
    -----
    A request's context grows from its input to input plus output; over its life it averages input plus half the
    output. Encoder-decoder models cache the input (cross attention) and the output alike.
    """
    context = context_token(d)
    window = np.where(d["model.sliding_window"] > 0, d["model.sliding_window"], np.inf)
    return context, np.minimum(context, window)


def kv_replication(d: Queries) -> FloatArray:
    """Return the copies of each cache element over tensor-parallel ranks: ranks over key-value heads, at least 1."""
    return np.maximum(1.0, d["config.tp"] / d["model.n_kv_head"])


def weight_byte(d: Queries) -> FloatArray:
    """Return the bytes of a replica's weights with their copies.

    Weights outside experts are copied to each attention rank; experts exist once in each group that shares them.
    """
    n_copy = d["config.n_accelerator"] / d["config.pp"] / d["config.expert_rank"]
    byte = loaded_byte(d)
    outside = sum(byte.values()) - byte["expert"]
    return np.asarray(byte["expert"] * n_copy + outside * d["config.dp"] * d["config.cp"], dtype=np.float64)


def estimate_memory(d: Queries, c: RowCoefficients) -> Memory:
    """Return the memory of a replica and the requests that fit.

    Examples
    --------
    A 7-billion-parameter model in 16 bits takes 14 GB of an 80 GB accelerator:

    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> d = example_descriptors()
    >>> memory = estimate_memory(d, DEFAULT_COEFFICIENTS.by_row(d["config.engine"]))
    >>> float(memory.weight_byte[0]) / 1e9
    14.0

    References
    ----------
    W. Kwon et al., "Efficient Memory Management for LLM Serving with PagedAttention", SOSP 2023.
    """
    n = d["config.n_accelerator"]
    ratio, reserve, cache_ratio = (column[d["config.engine"].astype(np.intp)] for column in _ENGINE_COLUMNS)
    usable = np.maximum(n * (ratio * d["hardware.memory_byte"] - c["reserve_ratio"] * reserve), 0.0)
    weight = weight_byte(d)
    full, window = kv_token(d)
    element = d["model.kv_width"] * full + d["model.kv_width_sliding"] * window
    cache = element * d["config.kv_byte_per_element"] + d["model.index_byte"] * full
    kv = np.maximum(cache * kv_replication(d) + d["model.state_byte"], 1.0)
    waste = c["kv_waste"] * np.where(d["config.flash_attention"] > 0.5, 1.0, c["kv_waste_padded"])
    waste = waste * np.where(d["model.n_encoder_layer"] > 0, c["kv_waste_encoder_decoder"], 1.0)
    cache_byte = cache_ratio * np.maximum(usable - weight, 0.0)
    return Memory(usable, weight, kv, cache_byte / (kv * waste))
