"""Time of one optimizer step by part, and the throughput that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.engine.kernel_times import joint_s
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.step.communication import (
    LayerTraffic,
    gradient_s,
    layer_traffic,
    n_scatter,
    stage_message_s,
    tensor_latency_s,
)
from roofcast.features.jobs.step.flops import model_flop
from roofcast.features.jobs.step.job_coefficients import DEFAULT_TRAINING_COEFFICIENTS, StepCoefficients
from roofcast.features.jobs.step.layer import LayerTime, estimate_layer, micro_batch_token
from roofcast.features.jobs.step.local_parameters import (
    LocalParameters,
    gathers_once,
    local_parameters,
    sharded_parameters,
    stage_layers,
    trained_parameters,
)
from roofcast.features.queries import FloatArray

OPTIMIZER_PASS_BYTE: Final = 14.0
"""Bytes per weight that an optimizer moves beside reading and writing its states: gradient, and 16-bit weight."""

HOST_ADAM_BYTE_PER_S: Final = 50e9
"""Host memory bandwidth of one rank for the update of an offloaded optimizer: judgement, from DDR5."""


@dataclass(frozen=True, slots=True)
class JobTime:
    """Time of one optimizer step by part, in seconds, each of shape (n_row,); the step takes their sum.

    Parameters
    ----------
    compute_s
        Forward and backward of the micro-batches of the slowest stage, with launches that exceed them.
    recomputation_s
        Forward operators that run again in the backward pass.
    tensor_s, context_s, expert_s, stage_s
        Collectives and messages of tensor, context, expert and pipeline parallelism that do not overlap.
    bubble_s
        Time in which the slowest stage waits for the pipeline to fill and drain.
    data_s
        Data-parallel collectives that do not overlap, those of sharded weights included.
    optimizer_s, offload_s, overhead_s
        Update of the weights, transfers to the host, and what is outside the model.
    """

    compute_s: FloatArray
    recomputation_s: FloatArray
    tensor_s: FloatArray
    context_s: FloatArray
    expert_s: FloatArray
    stage_s: FloatArray
    bubble_s: FloatArray
    data_s: FloatArray
    optimizer_s: FloatArray
    offload_s: FloatArray
    overhead_s: FloatArray

    @property
    def total_s(self) -> FloatArray:
        """Time of the step."""
        model = self.compute_s + self.recomputation_s
        links = self.tensor_s + self.context_s + self.expert_s + self.stage_s + self.data_s
        return model + links + self.bubble_s + self.optimizer_s + self.offload_s + self.overhead_s


@dataclass(frozen=True, slots=True)
class _LayerParts:
    compute_s: FloatArray
    recomputation_s: FloatArray
    tensor_s: FloatArray
    context_s: FloatArray
    expert_s: FloatArray
    data_s: FloatArray

    @property
    def total_s(self) -> FloatArray:
        links = self.tensor_s + self.context_s + self.expert_s + self.data_s
        return self.compute_s + self.recomputation_s + links


def estimate_training(runs: JobRuns, c: StepCoefficients = DEFAULT_TRAINING_COEFFICIENTS) -> JobTime:
    """Return the time of one optimizer step by part.

    Notes
    -----
    With m micro-batches, stage times t_i, the largest T, and v chunks of a stage, a 1F1B pipeline takes
    ``m T + (sum t_i - T) / v``: for equal stages the bubble ``(p - 1) t / v``. Fewer micro-batches than stages cannot
    interleave: then v is 1.

    References
    ----------
    D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021,
    section 2.2.
    """
    plan = runs.plan
    local = local_parameters(runs.model, plan)
    layer = estimate_layer(runs, c)
    parts = _layer_parts(runs, c, layer, layer_traffic(runs, c, local))
    head_s = layer.head_forward_s + layer.head_backward_s
    n_first, n_last = stage_layers(runs, head_s / parts.total_s)
    is_last = n_last * parts.total_s + head_s > n_first * parts.total_s
    n_slow, head_slow_s = np.where(is_last, n_last, n_first), np.where(is_last, head_s, 0.0)
    stage_s = n_slow * parts.total_s + head_slow_s
    all_s = runs.model.n_layer * parts.total_s + head_s
    m = plan.n_micro_batch
    v = np.where(m < plan.pp, 1.0, plan.vp)
    message_s = 2.0 * stage_message_s(runs, c)
    scale = 1.0 + c.value("straggler") * np.log2(np.maximum(runs.job.n_accelerator / 8.0, 1.0))
    work = m * n_slow * scale
    return JobTime(
        compute_s=work * parts.compute_s + m * head_slow_s * scale,
        recomputation_s=work * parts.recomputation_s,
        tensor_s=work * parts.tensor_s,
        context_s=work * parts.context_s,
        expert_s=work * parts.expert_s,
        stage_s=c.value("pp_exposed") * m * v * message_s,
        bubble_s=np.maximum(all_s - stage_s, 0.0) / v * scale + (plan.pp - 1.0) * message_s,
        data_s=work * parts.data_s
        + _step_data_s(runs, c, local, n_first=n_first, hiding_s=n_slow * layer.backward.total_s),
        optimizer_s=_optimizer_s(runs, c, local, n_first),
        offload_s=_offload_s(runs, c, local, n_first),
        overhead_s=np.full_like(m, c.value("step_s")),
    )


def _layer_parts(runs: JobRuns, c: StepCoefficients, layer: LayerTime, traffic: LayerTraffic) -> _LayerParts:
    level = runs.plan.recomputation
    is_full, is_selective = level > 1.5, (level > 0.5) & (level < 1.5)
    f = layer.forward
    by_operator_s = 0.5 * f.dense_s + f.expert_s + f.elementwise_s
    core_s = np.where(runs.job.is_flash > 0, f.elementwise_s, f.attention_s)
    selective_s = np.where(runs.job.is_operator_recomputed > 0, by_operator_s, core_s)
    share = runs.job.recomputed_ratio
    again = share * np.where(is_full, f.total_s, np.where(is_selective, selective_s, 0.0))
    n_pass = np.where(is_full, 2.0 + share, 2.0)
    context = (1.0 + n_pass) * traffic.context_s  # forward passes keys and values, backward their gradients as well
    attention_s = (n_pass - 1.0) * layer.forward.attention_s + layer.backward.attention_s
    hidden_context = np.maximum(context - attention_s, 0.0)
    parts = _LayerParts(
        compute_s=layer.forward.total_s + layer.backward.total_s,
        recomputation_s=again,
        tensor_s=c.value("tp_exposed") * n_pass * traffic.tensor_s,
        context_s=np.maximum(c.value("cp_exposed") * context, hidden_context),
        expert_s=c.value("ep_exposed") * n_pass * traffic.expert_s,
        data_s=_sharded_s(runs, c, traffic, layer.forward.total_s, layer.backward.total_s + again),
    )
    floor_s = c.value("floor_s") * runs.job.launch_ratio * n_pass / 2.0 * (1.0 - runs.job.is_compiled)
    floor_s = floor_s + n_pass * tensor_latency_s(runs, c)
    total = parts.total_s
    launch_s = joint_s(total, floor_s) - total
    return _LayerParts(
        parts.compute_s + launch_s,
        parts.recomputation_s,
        parts.tensor_s,
        parts.context_s,
        parts.expert_s,
        parts.data_s,
    )


def _sharded_s(
    runs: JobRuns, c: StepCoefficients, traffic: LayerTraffic, forward_s: FloatArray, backward_s: FloatArray
) -> FloatArray:
    # Each pass gathers the weights, and the backward pass scatters their gradients. Where a step gathers them once,
    # no backward pass hides the scatter after the last one; a micro-batch has its share of both.
    exposed, gather, reduce = c.value("dp_exposed"), traffic.gather_s, traffic.reduce_s
    forward = exposed * gather + np.maximum((1.0 - exposed) * gather - forward_s, 0.0)
    backward = exposed * (gather + reduce) + np.maximum((1.0 - exposed) * (gather + reduce) - backward_s, 0.0)
    return np.where(gathers_once(runs), (forward + reduce) / runs.plan.n_micro_batch, forward + backward)


def _trained_on_rank(runs: JobRuns, local: LocalParameters, n_first: FloatArray) -> tuple[FloatArray, FloatArray]:
    return trained_parameters(runs, local, n_first, np.where(runs.plan.pp > 1.0, 1.0, 2.0 - runs.model.is_tied))


def _step_data_s(
    runs: JobRuns,
    c: StepCoefficients,
    local: LocalParameters,
    *,
    n_first: FloatArray,
    hiding_s: FloatArray,
) -> FloatArray:
    total = gradient_s(runs, c, *_trained_on_rank(runs, local, n_first))
    exposed = c.value("dp_exposed")
    return exposed * total + np.maximum((1.0 - exposed) * total - n_scatter(runs.plan) * hiding_s, 0.0)


def _optimizer_s(runs: JobRuns, c: StepCoefficients, local: LocalParameters, n_first: FloatArray) -> FloatArray:
    job, plan = runs.job, runs.plan
    trained = sharded_parameters(plan, *_trained_on_rank(runs, local, n_first), 1.0)
    byte = trained * (2.0 * job.optimizer_byte + OPTIMIZER_PASS_BYTE)
    device_s = c.value("optimizer_ratio") * byte / runs.hardware.bandwidth_byte_per_s
    return np.where(job.offload_optimizer > 0, byte / HOST_ADAM_BYTE_PER_S, device_s)


def _offload_s(runs: JobRuns, c: StepCoefficients, local: LocalParameters, n_first: FloatArray) -> FloatArray:
    # Offloaded states move gradients out and weights in once a step; offloaded weights move in twice a micro-batch;
    # offloaded activations, one hidden vector a token and layer, move out and in.
    job, plan, h = runs.job, runs.plan, runs.hardware
    if not (job.offload_optimizer + job.offload_parameter + job.offload_activation > 0).any():
        return np.zeros_like(plan.tp)
    trained = sharded_parameters(plan, *_trained_on_rank(runs, local, n_first), 1.0)
    state_byte = job.offload_optimizer * trained * (job.reduced_byte + job.weight_byte)
    n_weight = sharded_parameters(plan, n_first * local.layer_dense, n_first * local.layer_expert, 3.0)
    weight_byte = job.offload_parameter * 2.0 * plan.n_micro_batch * 2.0 * n_weight
    hidden_byte = 2.0 * micro_batch_token(runs) * runs.model.hidden_size / plan.tp
    kept_byte = job.offload_activation * 2.0 * plan.n_micro_batch * n_first * hidden_byte
    return c.value("offload_exposed") * (state_byte + weight_byte + kept_byte) / h.host_byte_per_s


def throughput_token_per_s(runs: JobRuns, time: JobTime) -> FloatArray:
    """Return the tokens of the data set per second of the whole job, without padding: shape (n_row,)."""
    return runs.job.content_ratio * _processed_token_per_s(runs, time)


def _processed_token_per_s(runs: JobRuns, time: JobTime) -> FloatArray:
    plan = runs.plan
    return plan.n_micro_batch * plan.micro_batch * plan.dp * runs.job.n_token / time.total_s


def mfu_ratio(runs: JobRuns, time: JobTime) -> FloatArray:
    """Return the model FLOP utilisation: operations without recomputation over the peak of the products' precision.

    Operations on padding count: the accelerator executes them.

    References
    ----------
    A. Chowdhery et al., "PaLM", 2022, appendix B.
    """
    rate = _processed_token_per_s(runs, time) * model_flop(runs.model, runs.job)
    return rate / (runs.job.n_accelerator * runs.hardware.flop_per_s)
