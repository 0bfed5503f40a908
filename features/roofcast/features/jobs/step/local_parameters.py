"""Weights on one accelerator by part, and layers of the first and last pipeline stage."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roofcast.features.jobs.run_columns import JobRuns, ModelShape, Plan
from roofcast.features.queries import FloatArray


@dataclass(frozen=True, slots=True)
class LocalParameters:
    """Weights on one accelerator before sharding over data-parallel ranks, each of shape (n_row,).

    `layer_dense` and `layer_expert` are those of one mean layer; `embedding` those of the input embedding or of the
    head, which are of one size.
    """

    layer_dense: FloatArray
    layer_expert: FloatArray
    embedding: FloatArray


def local_parameters(model: ModelShape, plan: Plan) -> LocalParameters:
    """Return the weights of one accelerator.

    Examples
    --------
    See `roofcast.features.jobs.step.job_memory`.
    """
    n_dense = model.n_param - model.n_param_expert - model.n_param_embedding * (2.0 - model.is_tied)
    return LocalParameters(
        np.maximum(n_dense, 0.0) / model.n_layer / plan.tp,
        model.n_param_expert / model.n_layer / _expert_ranks(plan),
        model.n_param_embedding / plan.tp,
    )


def _expert_ranks(plan: Plan) -> FloatArray:
    return np.where(plan.ep > 1.0, plan.ep, plan.tp)


def trained_parameters(
    runs: JobRuns, local: LocalParameters, n_layer: FloatArray, n_embedding: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the trained weights of a rank of a stage before sharding: outside routed experts, and in them.

    Adapters are spread like the weights that they change.

    `n_layer` and `n_embedding`: layers of the stage, and matrices of the size of the embedding.
    """
    job, plan = runs.job, runs.plan
    adapters = job.n_param_trained / plan.pp
    outside, inside = (1.0 - job.adapter_expert_ratio) / plan.tp, job.adapter_expert_ratio / _expert_ranks(plan)
    is_frozen = job.is_frozen > 0
    dense = n_layer * local.layer_dense + n_embedding * local.embedding
    return (
        np.where(is_frozen, outside * adapters, dense),
        np.where(is_frozen, inside * adapters, n_layer * local.layer_expert),
    )


def state_shards(plan: Plan, stage: float) -> tuple[FloatArray, FloatArray]:
    """Return the ranks over which states that ZeRO shards from `stage` on are sharded: outside experts, and in them.

    1 where the plan does not shard them. Experts that spread over `ep` ranks have ``tp / ep`` times as many replicas
    as the other weights, so that a rank has the same share of all weights whatever `ep`.

    References
    ----------
    S. Rajbhandari et al., "ZeRO", 2020, section 5; S. Singh et al., "A Hybrid Tensor-Expert-Data Parallelism Approach
    to Optimize Mixture-of-Experts Training", 2023.
    """
    is_sharded = plan.zero_stage >= stage
    of_expert = np.where(plan.ep > 1.0, np.maximum(plan.tp * plan.n_shard / plan.ep, 1.0), plan.n_shard)
    return np.where(is_sharded, plan.n_shard, 1.0), np.where(is_sharded, of_expert, 1.0)


def gathers_once(runs: JobRuns) -> npt.NDArray[np.bool_]:
    """Return whether fully sharded weights are gathered once a step and kept over its micro-batches: shape (n_row,).

    Pipelines of PyTorch do so, and scatter the sum of the gradients after the last backward pass.

    References
    ----------
    torchtitan, ``fsdp_reshard_after_forward``, by default off in a pipeline; ``torch.distributed.pipelining.stage``,
    ``backward_maybe_with_nosync``.
    """
    return (runs.plan.pp > 1.0) & (runs.job.is_stage_gathered > 0)


def sharded_parameters(plan: Plan, dense: FloatArray, expert: FloatArray, stage: float) -> FloatArray:
    """Return the weights of a rank whose states ZeRO shards from `stage` on."""
    dense_shard, expert_shard = state_shards(plan, stage)
    return dense / dense_shard + expert / expert_shard


def stage_layers(runs: JobRuns, head_layer: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the layers of the first pipeline stage and of the last.

    `head_layer`: cost of the output head in layers.

    Notes
    -----
    Layers are spread evenly, the last stage taking what is left, or by cost: then the head counts as layers of the
    last stage.
    """
    n_layer, pp = runs.model.n_layer, runs.plan.pp
    even = np.ceil(n_layer / pp)
    even_last = np.maximum(n_layer - (pp - 1.0) * even, 0.0)
    # stages by cost: whole layers, the first stages take the remainder
    share = np.minimum(np.ceil((n_layer + head_layer) / pp - 0.5), n_layer)
    first = np.maximum(share, np.ceil(n_layer / pp))
    last = np.maximum(n_layer - (pp - 1.0) * first, 0.0)
    is_balanced = runs.job.is_stage_balanced > 0
    single = pp <= 1.0
    first = np.where(is_balanced, first, even)
    last = np.where(is_balanced, last, even_last)
    return np.where(single, n_layer, first), np.where(single, n_layer, last)
