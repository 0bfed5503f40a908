"""Messages of one pass: all-reduces, exchanges with experts, stage to stage, round the context, prefill to decode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.precisions import ACTIVATION_BYTE as QUANTISED_BYTE
from roofcast.features.engine.coefficients import RowCoefficients
from roofcast.features.engine.kernels.collective import links_among
from roofcast.features.engine.kernels.efficiency import LinkEfficiency
from roofcast.features.engine.kernels.moe import touched_expert
from roofcast.features.engine.kernels.row_kernels import OWN_REDUCE, PRECISIONS, RowKernels
from roofcast.features.engine.links import (
    Links,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    point_to_point_s,
    reduce_scatter_s,
)
from roofcast.features.engine.memo import Memo
from roofcast.features.engine.memory import kv_replication

FloatArray = npt.NDArray[np.float64]
Descriptors = Mapping[str, FloatArray]
T = TypeVar("T")

ACTIVATION_BYTE: Final = 2.0

_IS_DIRECT: Final = np.array([float(engine in OWN_REDUCE) for engine in ENGINES])
_SENT_BYTE: Final = np.array([QUANTISED_BYTE.get(precision, ACTIVATION_BYTE) for precision in PRECISIONS])
"""Bytes of one activation on its way to experts of each precision."""


@dataclass(frozen=True, slots=True)
class EngineInputs:
    """What an estimate is made of: descriptors, coefficients, the kernels' parameters and a memo of kernel times."""

    d: Descriptors
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
    """Return the time of a pass's messages: two all-reduces a layer, exchanges with experts, and stage to stage.

    Parameters
    ----------
    s
    n_token
        Tokens of one rank of attention.
    n_layer
        Layers passed.

    Notes
    -----
    Sequence parallelism splits an all-reduce into a reduce-scatter and an all-gather: the same bytes round the same
    ring, so that it has no descriptor.

    References
    ----------
    V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022, section 4.2.2.
    """
    d = s.d
    token_byte = n_token * d["model.hidden_size"] * ACTIVATION_BYTE
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
    """Return the time in which a layer's tokens reach the experts that ranks of attention share, and come back.

    Notes
    -----
    Either every rank gathers the tokens of all and scatters its part of the sums, or each token goes to the ranks
    that hold its experts, ``R (1 - (1 - 1 / R) ** k)`` of R for k experts, in the experts' own precision, and comes
    back in 16 bits. The engine is taken to do what is faster.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.2.2; DeepEP (github.com/deepseek-ai/DeepEP): dispatch
    in FP8, combine in BF16; vLLM, option ``--all2all-backend``: ``allgather_reducescatter`` unless told otherwise.
    """
    d = s.d
    rank, ep, tp = d["config.expert_rank"], d["config.ep"], d["config.tp"]
    everything = rank / tp * token_byte
    gathered = all_gather_s(everything, rank, _links(s, s.k.all_gather, rank))
    gathered = gathered + reduce_scatter_s(everything, rank, _links(s, s.k.reduce_scatter, rank))
    n_met = touched_expert(ep, 1.0, d["model.n_expert_per_token"]) * rank / ep
    chosen = token_byte / tp * n_met
    links = _links(s, s.k.all_to_all, rank)
    narrow = _SENT_BYTE[d["config.expert_precision"].astype(np.intp)] / ACTIVATION_BYTE
    sent = all_to_all_s(narrow * chosen, rank, links) + all_to_all_s(chosen, rank, links)
    return s.c["exchange_ratio"] * np.minimum(gathered, sent)


def ring_s(s: EngineInputs, n_token: FloatArray, attention_s: FloatArray) -> FloatArray:
    """Return what passing keys and values round the ranks of a context adds to a prefill.

    Parameters
    ----------
    s
    n_token
        Tokens of all prompts on one rank.
    attention_s
        Attention of the pass, behind which the messages hide.

    Notes
    -----
    In each layer the ``cp - 1`` others' keys and values come by, block after block, while attention works on the
    block that is there; the first block is there from the start. What takes longer than attention adds to the pass.

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
    """Return the time in which the ranks of a context put a decode step's partial attention together.

    Notes
    -----
    Each rank attends to its part of the cache; outputs, with one weight of the sum a head, are gathered by all.

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
    """Return how much later a first token comes for its prompt's cache moving from prefill to decode.

    Parameters
    ----------
    s
    n_prompt
        Prompts that move together.
    prefill_s
        Their prefill, behind which the cache of all layers but the last can move.

    Notes
    -----
    Every rank sends its part at once, ``max(T - prefill, T / layers)`` of the whole transfer T shows: the cache of a
    layer leaves when the layer is done.

    References
    ----------
    P. Patel et al., "Splitwise: Efficient Generative LLM Inference Using Phase Splitting", ISCA 2024, section IV-C.
    """
    d = s.d
    n_input, n_rank = d["workload.n_input_token"], d["config.tp"] * d["config.pp"] * d["config.cp"]
    seen = np.where(d["model.sliding_window"] > 0, np.minimum(n_input, d["model.sliding_window"]), n_input)
    element = d["model.kv_width"] * n_input + d["model.kv_width_sliding"] * seen
    byte = n_prompt * element * d["config.kv_byte_per_element"] * kv_replication(d) / n_rank
    is_inside = d["config.n_accelerator"] + d["config.n_prefill_accelerator"] <= d["hardware.host_size"]
    whole = point_to_point_s(byte, is_inside, _links(s, s.k.all_to_all, np.full_like(byte, 2.0)))
    return np.maximum(whole - prefill_s, whole / d["model.n_layer"])


def prefill_descriptors(d: Descriptors) -> Descriptors:
    """Return the descriptors of prefill where it runs apart: its accelerators are all that can share its experts.

    Examples
    --------
    Experts that 32 ranks share in decode lie on the 4 of a prefill:

    >>> d = {"config.n_prefill_accelerator": np.array([4.0, 0.0]), "config.pp": np.ones(2), "config.tp": np.ones(2)}
    >>> prefill_descriptors(d | {"config.expert_rank": np.full(2, 32.0), "config.ep": np.full(2, 32.0)})["config.ep"]
    array([ 4., 32.])
    """
    n = d["config.n_prefill_accelerator"]
    if not (n > 0).any():
        return d
    most = np.where(n > 0, np.maximum(n / d["config.pp"], 1.0), np.inf)
    tp = np.minimum(d["config.tp"], most)
    rank = np.maximum(np.minimum(d["config.expert_rank"], most), tp)
    return {**d, "config.tp": tp, "config.expert_rank": rank, "config.ep": np.minimum(d["config.ep"], rank)}


def _layer_kv_byte(d: Descriptors) -> FloatArray:
    """Return the bytes that one token's keys and values of one layer take on one rank of tensor parallelism."""
    width = d["model.kv_width_layer"] * kv_replication(d) / d["config.tp"]
    return width * d["config.kv_byte_per_element"]


def _links(s: EngineInputs, efficiency: LinkEfficiency, n: FloatArray) -> Links:
    """Return the links of a collective of `n` ranks: the kernel tables' times what calibration says of an engine."""
    d, c = s.d, s.c
    sheet = Links(
        domain_size=d["hardware.host_size"],
        link_byte_per_s=d["hardware.link_byte_per_s"],
        link_latency_s=0.0,
        network_byte_per_s=d["hardware.network_byte_per_s"],
        network_latency_s=d["hardware.network_latency_s"],
        is_direct=_IS_DIRECT[d["config.engine"].astype(np.intp)],
    )
    served = LinkEfficiency(
        launch_s=c["link_latency_ratio"] * efficiency.launch_s,
        step_s=c["link_latency_ratio"] * efficiency.step_s,
        bandwidth_ratio=np.minimum(c["link_ratio"] * efficiency.bandwidth_ratio, 1.0),
        crowding=efficiency.crowding,
    )
    return links_among(n, sheet, served)
