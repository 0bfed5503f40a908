"""Memory budgets of engines: what a server keeps for itself before its cache, by accelerator."""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.queries import FloatArray, Queries

GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True)
class Budget:
    """How an engine divides the memory of an accelerator.

    - `ratio`: Default of `gpu_memory_utilization`, in the engine's sense.
    - `is_of_free`: Whether it is a share of what weights and buffers leave, rather than of the accelerator.
    - `own_byte`: Context of the driver, buffers of messages and libraries.
    - `card_ratio`: Share of the accelerator that the engine looks at.
    - `is_profiled`: Whether the peak of a full chunk is taken out of the share; otherwise the share leaves room for
      it.
    - `sampler_byte`: Bytes of the profiled sampler for each entry of the vocabulary and sequence.
    - `page_token`: Tokens of a page of the cache.
    - `is_checked`: Whether a server starts only with room for a request of its longest context.
    """

    ratio: float
    own_byte: float
    is_of_free: bool = False
    card_ratio: float = 1.0
    is_profiled: bool = False
    sampler_byte: float = 0.0
    page_token: float = 16.0
    is_checked: bool = False


OTHER_BUDGET: Final = Budget(0.90, 2 * GIB, page_token=1.0)

BUDGETS: Final = {
    "vllm": Budget(0.92, 0.4 * GIB, is_profiled=True, sampler_byte=30.0, is_checked=True),
    "sglang": Budget(0.88, 0.6 * GIB, page_token=1.0),
    "trtllm": Budget(0.90, 1.8 * GIB, is_of_free=True, is_profiled=True, page_token=32.0),
    "llama.cpp": Budget(1.0, 0.4 * GIB, is_profiled=True, sampler_byte=4.0, page_token=256.0, is_checked=True),
    "tgis": Budget(0.80, 1.7 * GIB, is_of_free=True, card_ratio=0.965, page_token=1.0),
    "lmdeploy": Budget(0.80, 1 * GIB, is_of_free=True, page_token=64.0),
    "turbomind": Budget(0.80, 1 * GIB, is_of_free=True, page_token=64.0),
}
"""Budgets by engine.

References
----------
vLLM, ``Worker.determine_available_memory``: the share less weights, the peak of a dummy step of
``max_num_batched_tokens`` tokens, and a dummy sampler of ``max_num_seqs`` (logits of 16 and 32 bits, and of the
sort values, indices, softmax, sum and result: 30 bytes an entry). SGLang, ``KVCacheConfigurator``: free memory after
the load less ``1 - mem_fraction_static`` of that before. TensorRT-LLM,
``KvCacheConfig.free_gpu_memory_fraction``: 0.9 of what weights and a dummy step leave. llama.cpp: everything less
the context and the compute buffer of a micro-batch, whose logits are 32-bit. LMDeploy, ``cache_max_entry_count``:
0.8 of what weights leave. IBM's text-generation-inference (tgis), ``memory_characterizer.py``: a margin of 20 % on
what weights leave; its share and bytes are judgement, with the profiles that LLM-Pilot lacks in view. Bytes that
engines keep for themselves are about the medians of the shipped starts.
"""

_COLUMNS: Final = {
    field.name: np.array([getattr(BUDGETS.get(engine, OTHER_BUDGET), field.name) for engine in ENGINES], dtype=float)
    for field in fields(Budget)
}

_VLLM, _SGLANG = (float(ENGINES.index(name)) for name in ("vllm", "sglang"))

RECENT_SAMPLER_BYTE: Final = 14.0
"""As `Budget.sampler_byte`, of releases of vLLM that sort nothing: logits of 16 and 32 bits, softmax and noise."""

MAX_SEQUENCE: Final = 1024.0
"""Sequences of the profiled sampler where only memory limits them."""

TOWER_PATCH: Final = 65_536.0
TOWER_LAYER: Final = 29.5
TOWER_BYTE: Final = 17.0
"""Patches of the largest image (16,384 tokens of two by two, `max_pixels` of Qwen's processors), layers of a tower
with 12 squared widths each (27, and mergers of patches of 2.5), and bytes of a patch for each element of the width
while its MLP runs: a residual, and 3.75 widths before and after the activation."""

SPARSE_HEADS: Final = 64.0
"""Heads whose multiple the buffers of sparse latent attention hold on each accelerator: vLLM,
``get_padded_num_q_heads`` of ``models/deepseek_v4/attention.py``, for kernels of 64 heads."""

RANK_BYTE: Final = 0.25 * GIB
"""Buffers of messages of a rank of several: judgement, with the shipped starts in view."""

GRAPH_MIB: Final = (8.0, 0.25)
"""Graphs of one layer in MiB, and of each size of batch that is captured: about the shipped starts of vLLM, 0.1 to
1.2 GiB in all."""


def budget_column(d: Queries, name: str) -> FloatArray:
    """Return a field of `Budget` of the engine of each row: shape (n_row,)."""
    return np.asarray(_COLUMNS[name][d["config.engine"].astype(np.intp)], dtype=np.float64)


def activation_byte(d: Queries) -> FloatArray:
    """Return the peak of a step's buffers on one accelerator: a full chunk, the largest image, or the sampler.

    Notes
    -----
    In 16 bits a token takes three widths of the residual stream, and three of the widest MLP: gate and up
    projection and their product. Experts take their share of the ranks and a stream for each chosen expert. Sparse
    attention over latents takes the projected queries, and queries and outputs of as many heads as its kernels have.
    """
    expert = d["model.n_expert_per_token"] * (3 * d["model.moe_width"] / d["config.tp"] + d["model.hidden_size"])
    widest = np.maximum(3 * d["model.mlp_width"] / d["config.tp"], np.where(d["model.n_expert"] > 0, expert, 0.0))
    n_head = d["model.n_head"] / d["config.tp"]
    n_padded = np.ceil(n_head / SPARSE_HEADS) * SPARSE_HEADS
    sparse = (d["model.n_sparse_layer"] > 0) * (n_head + 2 * n_padded) * d["model.decode_qk_dim"]
    token = 2.0 * (3 * d["model.hidden_size"] + np.maximum(widest, sparse))
    chunk = np.minimum(d["config.chunk_token"], 131072.0)
    n_sequence = np.minimum(d["config.max_num_seqs"], MAX_SEQUENCE)
    entry = np.where(d["config.is_recent"] > 0, RECENT_SAMPLER_BYTE, budget_column(d, "sampler_byte"))
    sampler = entry * n_sequence * d["model.vocab_size"]
    tower_width = np.sqrt(d["model.tower_byte"] / (2 * TOWER_LAYER * 12))
    tower = (d["config.engine"] == _VLLM) * TOWER_PATCH * TOWER_BYTE * tower_width / d["config.tp"]
    peaks = (chunk * token, tower, 2.0 * chunk * d["model.hidden_size"] + sampler)
    return np.asarray(np.maximum.reduce(peaks), dtype=np.float64)


def usable_byte(d: Queries) -> FloatArray:
    """Return the memory of all accelerators for weights and cache, of what the engine's share covers."""
    n = d["config.n_accelerator"]
    is_of_free = budget_column(d, "is_of_free") > 0
    share = np.where(is_of_free, 1.0, d["config.memory_ratio"]) * budget_column(d, "card_ratio")
    own = budget_column(d, "own_byte") + np.where(n > d["config.dp"], RANK_BYTE, 0.0)
    own = own + budget_column(d, "is_profiled") * activation_byte(d)
    own = own + d["config.is_recent"] * (1 - d["config.is_eager"]) * graph_byte(d)
    is_static = (d["config.engine"] == _SGLANG) * 1.0
    covered = share * (d["hardware.memory_byte"] - is_static * own) - (1 - is_static) * own
    return np.asarray(np.maximum(n * covered, 0.0), dtype=np.float64)


def graph_byte(d: Queries) -> FloatArray:
    """Return the graphs of one accelerator.

    vLLM captures batches of 1, 2, 4 and multiples of 8 up to twice the sequences, at most 512.
    """
    n_size = 3 + np.minimum(2 * d["config.max_num_seqs"], 512.0) / 8
    mib = GRAPH_MIB[0] + GRAPH_MIB[1] * n_size
    return np.asarray(mib * 2.0**20 * d["model.n_layer"] / d["config.pp"], dtype=np.float64)


def cache_ratio(d: Queries) -> FloatArray:
    """Return the part of the memory beside the weights that the cache takes."""
    ratio = np.where(budget_column(d, "is_of_free") > 0, d["config.memory_ratio"], 1.0)
    return np.asarray(ratio, dtype=np.float64)
