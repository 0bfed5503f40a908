"""Weights on one accelerator by part, and layers of the first and last pipeline stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roofcast.features.arrays import FloatArray
from roofcast.features.training.jobs.runs import ModelShape, Plan, TrainingRuns


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
    See `roofcast.features.training.step.memory`.
    """
    n_dense = model.n_param - model.n_param_expert - model.n_param_embedding * (2.0 - model.is_tied)
    expert_split = np.where(plan.ep > 1.0, plan.ep, plan.tp)
    return LocalParameters(
        np.maximum(n_dense, 0.0) / model.n_layer / plan.tp,
        model.n_param_expert / model.n_layer / expert_split,
        model.n_param_embedding / plan.tp,
    )


def stage_layers(runs: TrainingRuns, head_layer: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the layers of the first pipeline stage and of the last.

    Parameters
    ----------
    head_layer
        Cost of the output head in layers.

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
