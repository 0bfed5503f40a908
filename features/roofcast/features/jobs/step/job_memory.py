"""Peak memory of an accelerator by part and pipeline stage."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.step.job_coefficients import DEFAULT_TRAINING_COEFFICIENTS, StepCoefficients
from roofcast.features.jobs.step.layer import ELEMENT_BYTE, expert_split, micro_batch_token
from roofcast.features.jobs.step.local_parameters import (
    LocalParameters,
    gathers_once,
    local_parameters,
    sharded_parameters,
    stage_layers,
    trained_parameters,
)
from roofcast.features.queries import FloatArray

SCORE_BYTE: Final = 5.0
"""Bytes of each stored attention score: softmax (2), its dropout (2) and the mask (1)."""

EAGER_SCORE_BYTE: Final = 12.0
"""The same without a fused kernel: scaled scores (2), softmax in 32 bits with its input (8), and its copy (2), as
``eager_attention_forward`` of Transformers computes them."""

ALONE_RATIO: Final = 0.4
"""Memory outside the allocator without communicators, relative to that with them."""

MEMORY_KINDS: Final = ("allocated", "reserved", "device")
"""Memory of tensors; of the framework's allocator; in use on the device, as nvidia-smi shows."""


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Allocated memory of a rank of one pipeline stage by part, in bytes, each of shape (n_row,)."""

    weights: FloatArray
    gradients: FloatArray
    optimizer: FloatArray
    activations: FloatArray
    logits: FloatArray
    buffers: FloatArray

    @property
    def states(self) -> FloatArray:
        """Weights, gradients and optimizer states."""
        return self.weights + self.gradients + self.optimizer

    @property
    def allocated(self) -> FloatArray:
        """Sum over the parts."""
        return self.states + self.activations + self.logits + self.buffers


@dataclass(frozen=True, slots=True)
class JobMemory:
    """Memory of the first and the last pipeline stage, the same stage if there is one alone; bytes on the host."""

    first: StageMemory
    last: StageMemory
    fragment_ratio: float
    context_byte: FloatArray | float
    host: FloatArray

    @property
    def allocated(self) -> FloatArray:
        """Peak of allocated tensors over the stages: shape (n_row,)."""
        return np.maximum(self.first.allocated, self.last.allocated)

    @property
    def reserved(self) -> FloatArray:
        """Peak of memory that the allocator reserves."""
        return self.allocated * (1.0 + self.fragment_ratio)

    @property
    def device(self) -> FloatArray:
        """Peak of memory in use on the device."""
        return self.reserved + self.context_byte


MIN_REST: Final = 0.5
"""Share of the correction that activations, logits and buffers take at least, where states alone exceed the peak."""


def correct_memory(memory: JobMemory, device_byte: FloatArray) -> JobMemory:
    """Return the memory with `device_byte` in use on the device: shape (n_row,).

    States follow from the plan, so activations, logits and buffers take the correction. Where they would fall below
    `MIN_REST` of it, states take what is left. Memory outside the tensors keeps its share.
    """
    ratio = np.asarray(device_byte / memory.device, dtype=np.float64)
    first, last = _correct_stage(memory.first, ratio), _correct_stage(memory.last, ratio)
    return JobMemory(first, last, memory.fragment_ratio, ratio * memory.context_byte, memory.host)


def _correct_stage(stage: StageMemory, ratio: FloatArray) -> StageMemory:
    states, rest = stage.states, stage.allocated - stage.states
    of_rest = np.maximum(ratio + (ratio - 1.0) * states / rest, MIN_REST * ratio)
    of_states = np.divide(
        ratio * stage.allocated - of_rest * rest, states, out=np.ones_like(states), where=states > 0
    )
    return StageMemory(
        weights=of_states * stage.weights,
        gradients=of_states * stage.gradients,
        optimizer=of_states * stage.optimizer,
        activations=of_rest * stage.activations,
        logits=of_rest * stage.logits,
        buffers=of_rest * stage.buffers,
    )


def estimate_memory(runs: JobRuns, c: StepCoefficients = DEFAULT_TRAINING_COEFFICIENTS) -> JobMemory:
    """Return the peak memory of an accelerator.

    Notes
    -----
    States: weight, gradient and optimizer bytes of each trained weight, sharded by ZeRO in the order optimizer,
    gradients, weights. The first stage of a 1F1B pipeline holds the activations of ``min(p, m)`` micro-batches, with
    v chunks of ``p (1 + (p - 1) / (p v))``; the last stage those of one, and the logits. Every stage of a GPipe
    pipeline holds all m, because the first backward pass follows the last forward pass.

    References
    ----------
    V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022, sections 4 and 5;
    S. Rajbhandari et al., "ZeRO", 2020, section 5; D. Narayanan et al., "Efficient Large-Scale Language Model
    Training on GPU Clusters Using Megatron-LM", 2021, section 2.2.1 (GPipe).
    """
    plan = runs.plan
    local = local_parameters(runs.model, plan)
    one = np.ones_like(plan.tp)
    head_layer = runs.model.vocab_size * runs.model.hidden_size / plan.tp / np.maximum(_layer_weight(local), 1.0)
    n_first, n_last = stage_layers(runs, head_layer)
    is_single = plan.pp <= 1.0
    is_gpipe = (runs.job.is_gpipe > 0) & ~is_single
    chunks = np.where(plan.vp > 1.0, 1.0 + (plan.pp - 1.0) / (plan.pp * plan.vp), 1.0)
    flight = np.where(is_gpipe, plan.n_micro_batch, np.minimum(plan.pp, plan.n_micro_batch) * chunks)
    last_flight = np.where(is_gpipe, plan.n_micro_batch, one)
    first_embedding = np.where(is_single, 2.0 - runs.model.is_tied, one)
    first, host = _stage(
        runs, c, local, n_layer=n_first, n_embedding=first_embedding, n_flight=flight,
        has_head=np.where(is_single, 1.0, 0.0),
    )  # fmt: skip
    last, _ = _stage(runs, c, local, n_layer=n_last, n_embedding=first_embedding, n_flight=last_flight, has_head=one)
    context_byte = c.value("context_byte") * np.where(runs.job.n_accelerator > 1.0, 1.0, ALONE_RATIO)
    return JobMemory(first, last, c.value("fragment_ratio"), context_byte, host)


def _layer_weight(local: LocalParameters) -> FloatArray:
    return local.layer_dense + local.layer_expert


def _stage(
    runs: JobRuns,
    c: StepCoefficients,
    local: LocalParameters,
    *,
    n_layer: FloatArray,
    n_embedding: FloatArray,
    n_flight: FloatArray,
    has_head: FloatArray,
) -> tuple[StageMemory, FloatArray]:
    job, plan = runs.job, runs.plan
    held, expert = n_layer * local.layer_dense + n_embedding * local.embedding, n_layer * local.layer_expert
    n_trained = trained_parameters(runs, local, n_layer, n_embedding)
    trained = [sharded_parameters(plan, *n_trained, stage) for stage in (1.0, 2.0, 3.0)]
    wide = n_embedding * local.embedding / np.where(plan.zero_stage > 2, plan.n_shard, 1.0)
    wide_byte = np.maximum(ELEMENT_BYTE - job.frozen_byte, 0.0) * wide
    frozen_byte = sharded_parameters(plan, held, expert, 3.0) * job.frozen_byte + wide_byte
    frozen = np.where(job.is_frozen > 0, frozen_byte, 0.0)
    weights = trained[2] * job.weight_byte + frozen
    token = micro_batch_token(runs)
    n_logit = has_head * token * runs.model.vocab_size / plan.tp * plan.logit_share
    logit_byte = c.value("logit_byte") * job.logit_ratio  # half are gradients, of one micro-batch
    logits = n_logit * logit_byte * (1.0 + n_flight) / 2.0
    gathered_byte = _gathered_byte(runs, local, held + expert)
    bucket = np.where(plan.zero_stage > 0, np.minimum(job.bucket_param, sum(n_trained)), 0.0)
    on_device = 1.0 - plan.offload_optimizer
    step_byte = on_device * job.step_byte * trained[0] + 2.0 * ELEMENT_BYTE * bucket
    kept, working = _activation_byte(runs, c)
    kept_byte = token * n_layer * n_flight * kept
    # one layer's activations are on the device while it computes, another's on their way
    left = np.where(plan.offload_activation > 0, np.minimum(2.0 / np.maximum(n_layer * n_flight, 1.0), 1.0), 1.0)
    gradients, optimizer = trained[1] * job.gradient_byte, trained[0] * job.optimizer_byte
    has_gradients = 1.0 - plan.offload_optimizer * np.maximum(job.has_host_gradients, plan.offload_parameter)
    before, after = _moments(runs, has_gradients * gradients, left * kept_byte + logits)
    # layers are recomputed when the logits are gone, unless gathered weights come first; the optimizer's step comes
    # when activations are gone
    again, is_whole = token * working, plan.zero_stage < 3.0
    is_first = logits >= again
    logits, again = np.where(is_whole & ~is_first, 0.0, logits), np.where(is_whole & is_first, 0.0, again)
    passing = after * (left * kept_byte + logits) + again
    update = on_device * job.update_ratio * job.weight_byte * trained[0]
    stage = StageMemory(
        weights=(1.0 - plan.offload_parameter) * weights,
        gradients=has_gradients * before * gradients,
        optimizer=on_device * optimizer,
        activations=after * left * kept_byte + again,
        logits=after * logits,
        buffers=gathered_byte + step_byte + np.maximum(update - passing, 0.0) + c.value("workspace_byte"),
    )
    states = (1.0 - has_gradients) * gradients + plan.offload_optimizer * optimizer + plan.offload_parameter * weights
    return stage, states + (1.0 - left) * kept_byte


def _moments(runs: JobRuns, gradients: FloatArray, kept: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return whether gradients, and whether activations and logits, are held at the peak: 1 or 0.

    Gradients that are freed after each step are absent when the backward pass of its only micro-batch starts, and
    complete when it ends: the peak is the larger of the two moments. Buffers of replicas stay.

    References
    ----------
    PyTorch: ``Optimizer.zero_grad`` sets gradients to None since version 2.0.
    """
    plan, job = runs.plan, runs.job
    is_single = (plan.n_micro_batch <= 1.0) & (plan.pp <= 1.0) & np.isfinite(job.n_global_batch)
    is_free = is_single & (job.frees_gradients > 0) & ((plan.zero_stage > 0) | (plan.dp <= 1.0))
    return np.where(is_free & (gradients < kept), 0.0, 1.0), np.where(is_free & (gradients >= kept), 0.0, 1.0)


def _gathered_byte(runs: JobRuns, local: LocalParameters, held: FloatArray) -> FloatArray:
    """Return the bytes of weights and gradients that ranks hold for a time where weights are sharded.

    Two layers, one in use and one on its way, or as many as ZeRO-3 keeps live, and the embedding. A pipeline may keep
    the weights of its stage gathered over the micro-batches, and sum their gradients before it scatters them.

    References
    ----------
    See `roofcast.features.jobs.step.local_parameters.gathers_once`.
    """
    plan, job = runs.plan, runs.job
    live = np.minimum(job.live_param, runs.model.n_layer * _layer_weight(local))
    layers = job.element_byte * (np.maximum(2.0 * _layer_weight(local), live) + local.embedding)
    gradient_byte = np.where(job.is_frozen > 0, 0.0, job.reduced_byte)
    byte = np.where(gathers_once(runs), (job.element_byte + gradient_byte) * held, layers)
    return np.where(plan.zero_stage > 2, byte, 0.0)


def layer_activation_byte(runs: JobRuns) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return bytes per token and layer: kept activations without scores, stored scores, and the layer's input.

    Notes
    -----
    With hidden size h and width 4 h, dropout and sequence parallelism the first is 34 h / t, and the second
    5 a s / t: the published formula. Norms keep their inputs, products theirs (one byte an element in 8 bits), the
    gated activation three widths.

    References
    ----------
    V. Korthikanti et al., 2022, equations 1 to 4.
    """
    s, job, plan = runs.model, runs.job, runs.plan
    norm_split = np.where(plan.is_sequence_parallel > 0, plan.tp, 1.0)
    is_frozen = job.is_frozen > 0
    operand_byte = np.where(job.is_eight_bit > 0, 1.0, job.element_byte)
    inputs = np.where(is_frozen, 0.0, 2.0 * operand_byte * s.hidden_size)
    hidden = 2.0 * job.element_byte * s.hidden_size + inputs + 2.0 * s.hidden_size * job.has_dropout
    mlp_width = s.mlp_width * s.n_mlp_layer / s.n_layer
    n_kept = s.n_mlp_matrix - 1.0 + np.where(is_frozen, 0.0, operand_byte / job.element_byte)
    out_byte = np.where(is_frozen, 0.0, operand_byte * s.mixer_out_width)
    split = job.element_byte * (s.mixer_in_width + n_kept * mlp_width) + out_byte
    adapter = (1.0 - job.is_input_frozen) * job.element_byte * job.n_adapter_width / 2.0
    _, pair, expert_parts = expert_split(runs)
    moe_share = s.n_moe_layer / s.n_layer
    per_token = pair / np.maximum(micro_batch_token(runs), 1e-9)
    expert = moe_share * per_token * job.element_byte * (2.0 * s.dispatch_width + n_kept * s.moe_width / expert_parts)
    attended = (s.n_full_layer + s.n_sliding_layer) / s.n_layer
    score_byte = np.where(job.is_eager > 0, EAGER_SCORE_BYTE, SCORE_BYTE)
    scores = (1.0 - job.is_flash) * attended * score_byte * s.n_head * job.n_token / plan.tp
    kept = hidden / norm_split + (split + adapter) / plan.tp + expert
    return kept, scores, job.element_byte * s.hidden_size / norm_split


def _activation_byte(runs: JobRuns, c: StepCoefficients) -> tuple[FloatArray, FloatArray]:
    kept, scores, layer_input = layer_activation_byte(runs)
    ratio = c.value("activation_ratio") * runs.job.activation_ratio
    level = runs.plan.recomputation
    is_full, is_selective = level > 1.5, (level > 0.5) & (level < 1.5)
    modules = np.where(runs.job.is_flash > 0, c.value("module_ratio"), 1.0)
    share = np.where(runs.job.is_operator_recomputed > 0, c.value("selective_ratio"), modules)
    selective = np.where(is_selective, share * kept, kept + scores)
    of_all = np.where(is_full, layer_input, ratio * selective)
    is_again = (runs.job.recomputed_ratio > 0).astype(float)
    per_layer = runs.job.recomputed_ratio * of_all + (1.0 - runs.job.recomputed_ratio) * ratio * (kept + scores)
    working = np.where(is_full, ratio * (kept + scores), np.where(is_selective, ratio * scores, 0.0))
    return per_layer, is_again * working
