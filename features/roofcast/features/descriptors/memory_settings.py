"""Memory settings of a server: what the driver reports, the engine's share, and weights in the host's memory."""

from typing import Final

import numpy as np

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.precisions import Names
from roofcast.features.descriptors.prediction_input import PredictionInput, number_column, text_column
from roofcast.features.descriptors.server_settings import vllm_minor
from roofcast.features.engine.engine_budgets import BUDGETS, OTHER_BUDGET
from roofcast.features.engine.loaded_weights import loaded_byte
from roofcast.features.queries import BoolArray, FloatArray

GIB: Final = 2.0**30
MIB: Final = 2.0**20

VLLM_RATIO: Final = (0.90, 0.92)
"""Share of a card that vLLM takes, before and from `VLLM_GRAPH_MINOR`: ``CacheConfig.gpu_memory_utilization`` of the
wheels 0.19.1 and 0.20.0."""

VLLM_GRAPH_MINOR: Final = 20.0
VLLM_GRAPH_DATE: Final = "2026-04-27"
"""Minor version 0.x, and its date, from which vLLM takes the graphs out of its share:
``VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS`` is 0 in the wheel 0.19.1 and 1 in 0.20.0 (whose log says 0.21)."""

VLLM_OVERLAP: Final = (27.0, "2026-08-10")
"""Minor version and its date from which windows of vLLM hold two chunks, as steps overlap:
``VllmConfig.max_in_flight_tokens`` of 0.27.1; a server of 0.25.0 holds one in the shipped starts."""

SGLANG_GRAPH_BATCH: Final = ((0.0, 8.0, 8.0), (20.0, 48.0, 160.0), (35.0, 32.0, 160.0), (60.0, 256.0, 512.0),
                             (160.0, 512.0, 512.0))  # fmt: skip
"""Largest batch of SGLang's graphs by the least memory in GiB, for a tensor parallelism below 4 and from 4:
``memory_hook.handle_gpu_memory_settings`` of the wheel 0.5.23."""

_LLAMA_CPP: Final = float(ENGINES.index("llama.cpp"))

_DRIVER_BYTE: Final = 0.31 * GIB
_DRIVER_RATIO: Final = 0.0065
"""Memory that an NVIDIA driver keeps: a part of its own and one for page tables. The shipped starts report 14.6 of T4
(15 GiB without error correction codes), 22.05 of L4, 23.58 of RTX 3090, 31.4 of RTX 5090, 44.4 of L40S, 79.2 of A100
and H100, 94.97 of RTX PRO 6000 and 139.8 of H200."""

_UNIFIED_RATIO: Final = {"nvidia": 0.926, "apple": 0.75, "amd": 0.94}
"""Part of unified memory that accelerators may take: GB10 reports 121.6 of 128 GiB in the shipped starts, of which
the system and the engine's own processes take three; Metal's ``recommendedMaxWorkingSetSize`` of 64 GB and more;
Strix Halo is judgement."""

_OTHER_RATIO: Final = {"huawei": 0.96}
"""Part of the memory of other vendors that is free at first: 60.9 of 64 GB of a die of an Ascend 910C."""


def visible_byte(spec: AcceleratorSpec) -> float:
    """Return the memory that the driver reports to engines.

    NVIDIA's data-centre cards with GDDR6 keep a 16th for error correction; HBM stores these codes separately, and on
    workstation cards error correction is off by default.

    References
    ----------
    NVIDIA, "CUDA C++ Best Practices Guide", section on effective bandwidth (error correction takes 6.25 % of GDDR
    memory); "IGX User Guide", DRAM-ECC (inline: one 16th).

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> accelerators = load_catalog().accelerators
    >>> [round(visible_byte(accelerators[f"nvidia-{name}"]) / GIB, 1) for name in ("l4-24gb", "h100-sxm-80gb")]
    [22.0, 79.2]
    """
    vendor = spec.vendor.lower()
    if "unified" in spec.memory_type.lower():
        return spec.memory_byte * _UNIFIED_RATIO.get(vendor, 1.0)
    if vendor != "nvidia":
        return spec.memory_byte * _OTHER_RATIO.get(vendor, 1.0)
    is_inline = spec.memory_type == "GDDR6" and spec.form_factor == "PCIe"
    return spec.memory_byte * (15 / 16 if is_inline else 1.0) * (1 - _DRIVER_RATIO) - _DRIVER_BYTE


def describe_memory(queries: PredictionInput, engine: Names, columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the descriptors of the memory settings; `columns` has those of model, hardware and split."""
    is_recent = _is_since(queries, engine, VLLM_GRAPH_MINOR, VLLM_GRAPH_DATE)
    n_chunk = np.where(_is_since(queries, engine, *VLLM_OVERLAP), 2.0, 1.0)
    ratio = np.select(
        [engine == "vllm", engine == "sglang"],
        [np.where(is_recent, VLLM_RATIO[1], VLLM_RATIO[0]), _sglang_ratio(queries, columns)],
        np.array([BUDGETS.get(str(name), OTHER_BUDGET).ratio for name in engine], dtype=float),
    )
    is_reused = (text_column(queries, "prefix_caching", "") == "on") | (columns["workload.prefix_cache_ratio"] > 0)
    return {
        "config.memory_ratio": number_column(queries, "gpu_memory_utilization", ratio),
        "config.is_recent": is_recent.astype(float),
        "config.in_flight_token": n_chunk * columns["config.chunk_token"],
        **_host_weights(queries, columns),
        "config.served_context_token": number_column(queries, "max_context_token", 0.0),
        "config.keeps_prefixes": is_reused.astype(float),
    }


def _is_since(queries: PredictionInput, engine: Names, first_minor: float, first_date: str) -> BoolArray:
    minor = vllm_minor(queries, engine)
    dates = text_column(queries, "date", first_date).astype(str)
    is_since = np.where(np.isnan(minor), dates >= first_date, minor >= first_minor)
    return np.asarray((engine == "vllm") & is_since, dtype=np.bool_)


def _sglang_ratio(queries: PredictionInput, columns: dict[str, FloatArray]) -> FloatArray:
    """Return ``mem_fraction_static`` where it is not set.

    References
    ----------
    SGLang 0.5.23, ``memory_hook.handle_gpu_memory_settings`` (MiB): 512, 1.5 for each token of a chunk, 1,024 for
    eight ranks, 2 for each request of the largest graph; at least 10 GiB on cards above 60 GiB. Its further
    reserve for attention data parallelism is left out: measured servers set their share.
    """
    memory_gib = columns["hardware.memory_byte"] / GIB
    is_wide = columns["config.tp"] * columns["config.dp"] >= 4
    batch = np.zeros_like(memory_gib)
    for least_gib, narrow, wide in SGLANG_GRAPH_BATCH:
        batch = np.where(memory_gib >= least_gib, np.where(is_wide, wide, narrow), batch)
    batch = np.minimum(batch, number_column(queries, "max_num_seqs", np.inf))
    n_rank = np.minimum(columns["config.n_accelerator"], 16.0)
    mib = 512 + 1.5 * np.maximum(columns["config.chunk_token"], 2048) + 128 * n_rank + 2 * batch
    mib = np.where(memory_gib > 60, np.maximum(mib, 10_240.0), mib)
    ratio = np.maximum(1 - mib * MIB / columns["hardware.memory_byte"], 0.1)
    return np.asarray(ratio, dtype=np.float64)


def _host_weights(queries: PredictionInput, columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
    # Layers have equal shares of the weights, as in llama.cpp's split by layers.
    n_layer, n_moe = columns["model.n_layer"], np.maximum(columns["model.n_moe_layer"], 1.0)
    byte = loaded_byte(columns)
    expert = byte["expert"]
    dense = byte["linear"] + byte["other"]
    kept = np.clip(1 - number_column(queries, "n_gpu_layer", np.inf) / n_layer, 0.0, 1.0)
    experts_kept = np.maximum(np.clip(number_column(queries, "n_cpu_moe", 0.0) / n_moe, 0.0, 1.0), kept)
    offloaded = number_column(queries, "cpu_offload_gib", 0.0) * GIB * columns["config.n_accelerator"]
    is_layered = columns["config.engine"] == _LLAMA_CPP  # input embeddings stay in the host's memory
    host = kept * dense + experts_kept * expert + offloaded + is_layered * byte["embedding"]
    n_copy = columns["config.n_accelerator"] / columns["config.pp"] / columns["config.expert_rank"]
    streamed = offloaded / (dense * columns["config.dp"] * columns["config.cp"] + expert * n_copy)
    return {
        "config.host_weight_byte": np.asarray(host, dtype=np.float64),
        "config.host_dense_ratio": np.minimum(kept + streamed, 1.0),
        "config.host_expert_ratio": np.minimum(experts_kept + streamed, 1.0),
    }
