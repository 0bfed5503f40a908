"""Communication of one pass: all-reduces, expert exchange, pipeline stages, ring attention, KV transfer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.precisions import ACTIVATION_BYTE as QUANTISED_BYTE
from roofcast.features.engine.cache_pages import kv_replication
from roofcast.features.engine.coefficients import RowCoefficients
from roofcast.features.engine.kernel_times import ACTIVATION_BYTE, touched_expert
from roofcast.features.engine.kernels.efficiency import LinkEfficiency
from roofcast.features.engine.kernels.row_kernels import OWN_REDUCE, PRECISIONS, RowKernels
from roofcast.features.engine.links import (
    Links,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    links_among,
    point_to_point_s,
    reduce_scatter_s,
)
from roofcast.features.engine.memo import Memo
from roofcast.features.queries import FloatArray, Queries

T = TypeVar("T")

_IS_DIRECT: Final = np.array([float(engine in OWN_REDUCE) for engine in ENGINES])
_SENT_BYTE: Final = np.array([QUANTISED_BYTE.get(precision, ACTIVATION_BYTE) for precision in PRECISIONS])
"""Bytes of one activation sent to experts of each precision."""


@dataclass(frozen=True, slots=True)
class EngineInputs:
    """Inputs of the engine model: descriptors, coefficients, kernel parameters and a memo of kernel times."""

    d: Queries
    c: RowCoefficients
    k: RowKernels
    memo: Memo | None = None

    def recall(self, name: str, compute: Callable[[], T], *inputs: object) -> T:
        """Return what `compute` returns, from the memo if there is one; it depends on `d`, `k` and the inputs."""
        return compute() if self.memo is None else self.memo(name, compute, self.d, *inputs)

    def of_prefill(self) -> EngineInputs:
        """Return the inputs of a prefill; see `prefill_descriptors`."""
        return replace(self, d=self.recall("prefill", lambda: prefill_descriptors(self.d)))


def pass_link_s(s: EngineInputs, n_token: FloatArray, n_layer: FloatArray) -> FloatArray:
    """Return the communication time of a pass: two all-reduces a layer, expert exchange, pipeline stages.

    `n_token`: tokens of one attention rank. `n_layer`: layers of the pass.

    Notes
    -----
    Sequence parallelism splits an all-reduce into a reduce-scatter and an all-gather with the same traffic, so it has
    no descriptor.

    References
    ----------
    V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022, section 4.2.2.
    """
    d = s.d
    token_byte = n_token * d["model.hidden_size"] * ACTIVATION_BYTE
    total = np.zeros_like(token_byte)
    if (d["config.tp"] > 1).any():
        total = 2 * n_layer * all_reduce_s(token_byte, d["config.tp"], _links(s, s.k.all_reduce, d["config.tp"]))
    has_exchange = d["config.expert_rank"] > d["config.tp"]
    if has_exchange.any():
        total = total + np.where(has_exchange, d["model.n_moe_layer"] * exchange_s(s, token_byte), 0.0)
    if (d["config.pp"] > 1).any():
        is_inside = d["config.tp"] * d["config.pp"] <= d["hardware.host_size"]
        stage = point_to_point_s(token_byte, is_inside, _links(s, s.k.all_to_all, d["config.pp"]))
        total = total + (d["config.pp"] - 1) * stage
    return total


def exchange_s(s: EngineInputs, token_byte: FloatArray) -> FloatArray:
    """Return the time of one layer's expert exchange: tokens to the ranks of their experts, and back.

    Notes
    -----
    Either each rank gathers all tokens and reduce-scatters the sums, or each token is sent to the ranks of its
    experts, ``R (1 - (1 - 1 / R) ** k)`` of R ranks for k experts, in the experts' precision, and returned in 16
    bits. The faster one is used.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.2.2; DeepEP (github.com/deepseek-ai/DeepEP): dispatch
    in FP8, combine in BF16; vLLM, option ``--all2all-backend``: ``allgather_reducescatter`` by default.
    """
    d = s.d
    rank, ep, tp = d["config.expert_rank"], d["config.ep"], d["config.tp"]
    gathered_byte = rank / tp * token_byte
    gathered = all_gather_s(gathered_byte, rank, _links(s, s.k.all_gather, rank))
    gathered = gathered + reduce_scatter_s(gathered_byte, rank, _links(s, s.k.reduce_scatter, rank))
    n_target = touched_expert(ep, 1.0, d["model.n_expert_per_token"]) * rank / ep
    routed = token_byte / tp * n_target
    links = _links(s, s.k.all_to_all, rank)
    precision_ratio = _SENT_BYTE[d["config.expert_precision"].astype(np.intp)] / ACTIVATION_BYTE
    sent = all_to_all_s(precision_ratio * routed, rank, links) + all_to_all_s(routed, rank, links)
    return s.c["exchange_ratio"] * np.minimum(gathered, sent)


def ring_s(s: EngineInputs, n_token: FloatArray, attention_s: FloatArray) -> FloatArray:
    """Return the time that ring attention over the context-parallel ranks adds to a prefill.

    `n_token`: tokens of all prompts on one rank. `attention_s`: attention of the pass, which overlaps the messages.

    Notes
    -----
    In each layer the keys and values of the ``cp - 1`` other ranks are passed on block by block while attention
    computes on the previous block; the first block is local. Time in excess of attention adds to the pass.

    References
    ----------
    H. Liu, M. Zaharia and P. Abbeel, "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023,
    section 3.
    """
    d, cp = s.d, s.d["config.cp"]
    n_layer = d["model.n_full_layer"] + d["model.n_sliding_layer"]
    is_inside = d["config.tp"] * cp <= d["hardware.host_size"]
    block = n_token * _layer_kv_byte(d)
    hop = point_to_point_s(block, is_inside, _links(s, s.k.all_to_all, cp))
    return np.maximum((cp - 1) * n_layer * hop - attention_s * (cp - 1) / cp, 0.0)


def merge_s(s: EngineInputs, batch: FloatArray) -> FloatArray:
    """Return the time to merge the partial attention of the context-parallel ranks in a decode step.

    Notes
    -----
    Each rank attends to its share of the cache; outputs and one softmax sum per head are all-gathered.

    References
    ----------
    A. Yang et al., "Context Parallelism for Scalable Million-Token Inference", 2024 (decode).
    """
    d, cp = s.d, s.d["config.cp"]
    n_layer = d["model.n_full_layer"] + d["model.n_sliding_layer"]
    n_token = batch * (1 + d["config.n_draft_token"])
    part = n_token * d["model.n_head"] / d["config.tp"] * (d["model.decode_v_dim"] + 1) * ACTIVATION_BYTE
    return n_layer * all_gather_s(cp * part, cp, _links(s, s.k.all_gather, cp))


def transfer_s(s: EngineInputs, n_prompt: FloatArray, prefill_s: FloatArray) -> FloatArray:
    """Return the delay of the first token by the transfer of the KV cache from prefill to decode.

    `n_prompt`: prompts transferred together. `prefill_s`: their prefill, which overlaps the transfer of all layers
    but the last.

    Notes
    -----
    All ranks send their shares at once. The cache of a layer is sent when the layer is done, so of the total transfer
    T ``max(T - prefill, T / layers)`` is not overlapped.

    References
    ----------
    P. Patel et al., "Splitwise: Efficient Generative LLM Inference Using Phase Splitting", ISCA 2024, section IV-C.
    """
    d = s.d
    n_input, n_rank = d["workload.n_input_token"], d["config.tp"] * d["config.pp"] * d["config.cp"]
    window_token = np.where(d["model.sliding_window"] > 0, np.minimum(n_input, d["model.sliding_window"]), n_input)
    element = d["model.kv_width"] * n_input + d["model.kv_width_sliding"] * window_token
    byte = n_prompt * element * d["config.kv_byte_per_element"] * kv_replication(d) / n_rank
    is_inside = d["config.n_accelerator"] + d["config.n_prefill_accelerator"] <= d["hardware.host_size"]
    total = point_to_point_s(byte, is_inside, _links(s, s.k.all_to_all, np.full_like(byte, 2.0)))
    return np.maximum(total - prefill_s, total / d["model.n_layer"])


def prefill_descriptors(d: Queries) -> Queries:
    """Return the descriptors of disaggregated prefill, whose experts are shared by its own accelerators only.

    Examples
    --------
    Experts shared by 32 ranks in decode are on the 4 accelerators of prefill:

    >>> d = {"config.n_prefill_accelerator": np.array([4.0, 0.0]), "config.pp": np.ones(2), "config.tp": np.ones(2)}
    >>> prefill_descriptors(d | {"config.expert_rank": np.full(2, 32.0), "config.ep": np.full(2, 32.0)})["config.ep"]
    array([ 4., 32.])
    """
    n = d["config.n_prefill_accelerator"]
    if not (n > 0).any():
        return d
    max_rank = np.where(n > 0, np.maximum(n / d["config.pp"], 1.0), np.inf)
    tp = np.minimum(d["config.tp"], max_rank)
    rank = np.maximum(np.minimum(d["config.expert_rank"], max_rank), tp)
    return {**d, "config.tp": tp, "config.expert_rank": rank, "config.ep": np.minimum(d["config.ep"], rank)}


def _layer_kv_byte(d: Queries) -> FloatArray:
    width = d["model.kv_width_layer"] * kv_replication(d) / d["config.tp"]
    return width * d["config.kv_byte_per_element"]


def _links(s: EngineInputs, efficiency: LinkEfficiency, n: FloatArray) -> Links:
    d, c = s.d, s.c
    sheet = Links(
        domain_size=d["hardware.host_size"],
        link_byte_per_s=d["hardware.link_byte_per_s"],
        link_latency_s=0.0,
        network_byte_per_s=d["hardware.network_byte_per_s"],
        network_latency_s=d["hardware.network_latency_s"],
        is_direct=_IS_DIRECT[d["config.engine"].astype(np.intp)] * d["hardware.peer_to_peer"],
    )
    calibrated = LinkEfficiency(
        launch_s=c["link_latency_ratio"] * efficiency.launch_s,
        step_s=c["link_latency_ratio"] * efficiency.step_s,
        bandwidth_ratio=np.minimum(c["link_ratio"] * efficiency.bandwidth_ratio, 1.0),
        crowding=efficiency.crowding,
    )
    return links_among(n, sheet, calibrated)
