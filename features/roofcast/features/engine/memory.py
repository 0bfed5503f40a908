"""Memory of a replica: weights, cache per sequence and the number of sequences that fit."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.engine.cache_pages import admitted_byte, running_byte
from roofcast.features.engine.coefficients import RowCoefficients
from roofcast.features.engine.engine_budgets import budget_column, cache_ratio, usable_byte
from roofcast.features.engine.loaded_weights import loaded_byte
from roofcast.features.queries import BoolArray, FloatArray, Queries

_SGLANG: Final = float(ENGINES.index("sglang"))


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one replica, summed over its accelerators; every array has shape (n_row,).

    - `usable_byte`: Memory for weights and cache: what the engine's share leaves beside its buffers.
    - `weight_byte`: Weights on the accelerators with their data-parallel copies.
    - `kv_byte_per_sequence`: Cache of one decoding request at its mean length: keys, values and states, in whole
      pages.
    - `longest_byte`: Cache of the longest request that the server accepts, without which it does not start.
    - `capacity`: Requests that fit beside the weights; 0 if the weights do not fit.
    """

    usable_byte: FloatArray
    weight_byte: FloatArray
    kv_byte_per_sequence: FloatArray
    longest_byte: FloatArray
    capacity: FloatArray

    @property
    def needed_byte(self) -> FloatArray:
        """Weights and the cache of one request, the longest that is served."""
        return self.weight_byte + np.maximum(self.kv_byte_per_sequence, self.longest_byte)

    @property
    def fits(self) -> BoolArray:
        """Whether the weights and the KV cache of one request fit."""
        return self.needed_byte <= self.usable_byte


def n_slot(d: Queries, memory: Memory) -> FloatArray:
    """Return the most running requests, at least 1: those that fit, and into the steps of all attention ranks."""
    return np.maximum(np.minimum(memory.capacity, d["config.max_num_seqs"] * d["config.dp"]), 1.0)


def context_token(d: Queries) -> FloatArray:
    """Return the mean cached tokens of a running request: its input and half its output."""
    return d["workload.n_input_token"] + d["workload.n_output_token"] / 2


def weight_byte(d: Queries) -> FloatArray:
    """Return the bytes of a replica's weights on its accelerators, with their copies.

    Weights outside experts are copied to each attention rank; experts exist once in each group that shares them.
    Each rank of tensors holds the projections to latents, where SGLang exchanges tokens between experts the other
    MLPs, and with its attention ranks the input embedding.

    References
    ----------
    SGLang, ``models/deepseek_v2.py``: shared experts have a tensor parallelism of 1 with an all-to-all backend, and
    its deployments set ``--moe-dense-tp-size 1``; ``VocabParallelEmbedding`` has ``enable_tp=not
    is_dp_attention_enabled()``.
    """
    n_copy = d["config.n_accelerator"] / d["config.pp"] / d["config.expert_rank"]
    byte = loaded_byte(d)
    outside = sum(byte.values()) - byte["expert"]
    n_mlp = d["model.n_mlp_layer"] * d["model.mlp_width"] * d["model.n_mlp_matrix"] * d["model.hidden_size"]
    is_exchanged = (d["config.engine"] == _SGLANG) & (d["config.ep"] > 1)
    copied = (d["model.n_param_copied"] + n_mlp * is_exchanged) * d["config.dense_byte_per_element"]
    is_apart = (d["config.engine"] == _SGLANG) & (d["config.dp"] > 1)
    outside = outside + (copied + byte["embedding"] * is_apart) * (d["config.tp"] - 1)
    weight = byte["expert"] * n_copy + outside * d["config.dp"] * d["config.cp"]
    return np.asarray(np.maximum(weight - d["config.host_weight_byte"], 0.0), dtype=np.float64)


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
    weight = weight_byte(d)
    free = cache_ratio(d) * (usable_byte(d) - weight)
    context = context_token(d)
    kv, admitted = running_byte(d, context), admitted_byte(d, context)
    padded = np.where(d["config.flash_attention"] > 0.5, 1.0, c["kv_waste_padded"])
    served = d["config.served_context_token"] * budget_column(d, "is_checked")
    longest = np.where(served > 0, admitted_byte(d, np.maximum(served, 1.0)), admitted)
    capacity = np.maximum(free - d["config.dp"] * (admitted - kv), 0.0) / (kv * padded)
    return Memory(np.maximum(weight + free, 0.0), weight, kv, longest, capacity)
