"""Collectives of a step: tensor, context, expert, pipeline and data parallelism.

Ranks are placed as Megatron-LM does: tensor-parallel ranks are neighbours, then context-, data- and pipeline-parallel
ones. A group whose members stand `stride` ranks apart has ``domain / stride`` of them in one scale-up domain.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from roofcast.features.engine.kernels.efficiency import LinkEfficiency
from roofcast.features.engine.links import (
    Links,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    links_among,
    point_to_point_s,
)
from roofcast.features.jobs.run_columns import JobRuns, Plan
from roofcast.features.jobs.step.job_coefficients import StepCoefficients
from roofcast.features.jobs.step.layer import ELEMENT_BYTE, micro_batch_token
from roofcast.features.jobs.step.local_parameters import LocalParameters, state_shards
from roofcast.features.queries import FloatArray

BUCKET_BYTE: Final = 1e8
"""Bytes of one collective of gradients: torch's DDP takes 25 MB, Megatron-LM at least 40 million elements."""


@dataclass(frozen=True, slots=True)
class LayerTraffic:
    """Time of the collectives of one layer and micro-batch, before overlap, each of shape (n_row,).

    Forward and backward of tensor, context and expert parallelism; gathering weights and reducing gradients of a
    layer if weights are sharded (ZeRO-3).
    """

    tensor_s: FloatArray
    context_s: FloatArray
    expert_s: FloatArray
    gather_s: FloatArray
    reduce_s: FloatArray


def layer_traffic(runs: JobRuns, c: StepCoefficients, local: LocalParameters) -> LayerTraffic:
    """Return the collectives of one layer in one direction: forward; backward takes as long except where noted.

    Notes
    -----
    Tensor parallelism reduces the hidden vectors twice a layer; with sequence parallelism a reduce-scatter and an
    all-gather of the same bytes take the place of each all-reduce. Context parallelism passes keys and values round.
    Expert parallelism sends each token's hidden vector to its experts and back, between nodes once for all experts of
    a node.

    References
    ----------
    M. Shoeybi et al., "Megatron-LM", 2019, section 3; V. Korthikanti et al., "Reducing Activation Recomputation in
    Large Transformer Models", 2022, section 4.2.2; S. Rajbhandari et al., "ZeRO", 2020, section 7.
    """
    s, h, plan, job = runs.model, runs.hardware, runs.plan, runs.job
    token = micro_batch_token(runs)
    hidden_byte = job.element_byte * token * s.hidden_size
    moe_share = np.where(plan.ep > 1.0, s.n_moe_layer / s.n_layer, 0.0)
    tensor = all_reduce_s(hidden_byte, plan.tp, group_links(runs, c, h.all_reduce, plan.tp, 1.0))
    kv_byte = job.element_byte * plan.micro_batch * job.n_token * s.n_kv_head * (s.qk_dim + s.v_dim) / plan.tp
    context = all_gather_s(kv_byte, plan.cp, group_links(runs, c, h.all_gather, plan.cp, plan.tp))
    sent_width = s.dispatch_width * s.n_expert_per_token / np.where(plan.ep > 1.0, plan.tp, 1.0)
    sent_byte = job.element_byte * token * sent_width
    expert = all_to_all_s(sent_byte, plan.ep, _expert_links(runs, c))
    gather, reduce = _sharded_layer(runs, c, local)
    return LayerTraffic(
        (2.0 - moe_share) * tensor,
        (1.0 - s.n_linear_layer / s.n_layer) * context,
        2.0 * moe_share * c.value("all_to_all_ratio") * expert,
        gather,
        reduce,
    )


def group_links(
    runs: JobRuns, c: StepCoefficients, efficiency: LinkEfficiency, n: FloatArray, stride: FloatArray | float
) -> Links:
    """Return the links of groups of `n` ranks that stand `stride` ranks apart."""
    h = runs.hardware
    inside = np.maximum(np.floor(h.domain_size / stride), 1.0)
    sheet = Links(
        inside,
        h.link_byte_per_s,
        0.0,
        c.value("network_ratio") * h.network_byte_per_s,
        c.value("network_step_s"),
    )
    return links_among(n, sheet, efficiency)


def _expert_links(runs: JobRuns, c: StepCoefficients) -> Links:
    # k experts of a token stand on n (1 - (1 - 1/n)^k) of n nodes: DeepSeek-AI, "DeepSeek-V3", 2024, section 3.2.2
    links = group_links(runs, c, runs.hardware.all_to_all, runs.plan.ep, 1.0)
    n_node = np.maximum(runs.plan.ep / links.domain_size, 1.0)
    n_chosen = np.maximum(runs.model.n_expert_per_token, 1.0)
    distinct = n_node * (1.0 - (1.0 - 1.0 / n_node) ** n_chosen) / n_chosen
    return replace(links, network_byte_per_s=links.network_byte_per_s / np.minimum(distinct, 1.0))


def tensor_latency_s(runs: JobRuns, c: StepCoefficients) -> FloatArray:
    """Return the latency between nodes of a layer's tensor-parallel collectives, forward or backward.

    Each of four collectives passes every node of its ring once, or each rank if the ranks stand on different nodes.
    """
    plan, domain = runs.plan, runs.hardware.domain_size
    is_strided = (runs.job.is_tensor_strided > 0) & (plan.pp > 1.0) & (runs.job.n_accelerator > domain)
    spanned = np.where(is_strided, plan.tp, np.ceil(plan.tp / domain))
    return np.where(spanned > 1.0, 4.0 * spanned, 0.0) * c.value("tensor_step_s")


def _sharded_layer(runs: JobRuns, c: StepCoefficients, local: LocalParameters) -> tuple[FloatArray, FloatArray]:
    plan, job = runs.plan, runs.job
    none = np.zeros_like(plan.tp)
    if not (plan.zero_stage > 2).any():
        return none, none
    dense_shard, expert_shard = state_shards(plan, 3.0)
    gather, reduce = none, none
    reduced_byte = np.where(job.is_frozen > 0, 0.0, job.reduced_byte)
    weight_byte = np.where(job.is_frozen > 0, np.minimum(job.frozen_byte, job.element_byte), job.element_byte)
    for n_param, n, stride in (
        (local.layer_dense, dense_shard, plan.tp),
        (local.layer_expert, expert_shard, np.where(plan.ep > 1.0, plan.ep, plan.tp)),
    ):
        links = group_links(runs, c, runs.hardware.all_gather, n, stride)
        has = n_param > 0
        gather = gather + np.where(has, all_gather_s(weight_byte * n_param, n, links), 0.0)
        reduce = reduce + np.where(has, all_gather_s(reduced_byte * n_param, n, links), 0.0)
    ratio = np.where(plan.zero_stage > 2, job.gather_ratio, 0.0)
    return ratio * gather, np.where(job.is_frozen > 0, 0.0, ratio * reduce)


def gradient_s(runs: JobRuns, c: StepCoefficients, n_dense: FloatArray, n_expert: FloatArray) -> FloatArray:
    """Return the time of the data-parallel collectives of a step, before overlap: shape (n_row,).

    Replicas (DDP) reduce their gradients; ZeRO-1 scatters them and gathers the updated weights; ZeRO-2 does, and
    scatters in every micro-batch. ZeRO-3 does both in each layer; only replicas of its shards (HSDP) reduce here.

    `n_dense` and `n_expert`: trained weights of a rank outside and in experts.
    """
    plan, job = runs.plan, runs.job
    n_rank = plan.dp * plan.cp
    is_spread = plan.ep > 1.0
    n_expert_rank = np.where(is_spread, np.maximum(n_rank * plan.tp / plan.ep, 1.0), n_rank)
    dense_shard, expert_shard = state_shards(plan, 3.0)
    total = np.zeros_like(plan.tp)
    for n_param, n_copy, n_shard, stride in (
        (n_dense, n_rank, dense_shard, plan.tp),
        (n_expert, n_expert_rank, expert_shard, np.where(is_spread, plan.ep, plan.tp)),
    ):
        held, n = n_param / n_shard, np.maximum(n_copy / n_shard, 1.0)
        scattered, gathered = (job.reduced_byte * held, _gathered_byte(runs) * held)
        links = group_links(runs, c, runs.hardware.all_gather, n, stride * n_shard)
        n_bucket = np.maximum(np.ceil(scattered / BUCKET_BYTE), 1.0)
        scatter_s = n_scatter(plan) * all_gather_s(scattered / n_bucket, n, links)
        bucket_s = scatter_s + all_gather_s(gathered / n_bucket, n, links)
        total = total + np.where(held > 0, n_bucket * bucket_s, 0.0)
    return total


def n_scatter(plan: Plan) -> FloatArray:
    """Return how often a step reduces the gradients of replicas: once, or in every micro-batch (ZeRO-2).

    ZeRO-2 keeps the accumulated gradients of its shard alone, so it cannot wait for the last micro-batch.

    References
    ----------
    S. Rajbhandari et al., "ZeRO", 2020, section 5.2; DeepSpeed, issue 2252: "for zero stage 2 (and 3), gradient
    reduction is required after every backward because of gradient partitioning".
    """
    return np.where(plan.zero_stage == 2.0, plan.n_micro_batch, 1.0)


def _gathered_byte(runs: JobRuns) -> FloatArray:
    is_zero = (runs.plan.zero_stage > 0) & (runs.plan.zero_stage < 3)
    return np.where(is_zero, ELEMENT_BYTE, runs.job.reduced_byte)


def stage_message_s(runs: JobRuns, c: StepCoefficients) -> FloatArray:
    """Return the time of one message between pipeline stages: a micro-batch's hidden vectors, split over TP ranks."""
    plan = runs.plan
    byte = runs.job.element_byte * micro_batch_token(runs) * runs.model.hidden_size / plan.tp
    is_inside = plan.tp * plan.cp * plan.dp * 2.0 <= runs.hardware.domain_size
    links = group_links(runs, c, runs.hardware.all_gather, np.full_like(plan.tp, 2.0), 1.0)
    return np.where(plan.pp > 1.0, point_to_point_s(byte, is_inside, links), 0.0)
