"""Time of one optimizer step by part, and the throughput that follows."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.engine.kernel_times import joint_s
from roofcast.features.jobs.hardware import HOST_SIZE
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
from roofcast.features.jobs.step.job_memory import layer_activation_byte
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

PIPELINE_EXPOSED: Final = 0.7
"""Share of expert-parallel transfers that does not overlap in a pipeline relative to without one, of runs of NeMo."""

HOST_BYTE_PER_S: Final = 80e9
"""Host memory bandwidth that the ranks of a host share in the update of an offloaded optimizer, and in transfers.

References
----------
Full fine-tunings with and without it: DeepSpeedExamples (Falcon-7B, ZeRO-2 and 3, eight A100: 50 GB/s), and
torchtune's README (70B, eight A100: 120 GB/s).
"""


@dataclass(frozen=True, slots=True)
class JobTime:
    """Time of one optimizer step by part, in seconds, each of shape (n_row,); the step takes their sum.

    - `compute_s`: Forward and backward of the micro-batches of the slowest stage, with launches that exceed them.
    - `recomputation_s`: Forward operators that run again in the backward pass.
    - `tensor_s`, `context_s`, `expert_s`, `stage_s`: Collectives and messages of tensor, context, expert and pipeline
      parallelism that do not overlap.
    - `bubble_s`: Time in which the slowest stage waits for the pipeline to fill and drain.
    - `data_s`: Data-parallel collectives that do not overlap, those of sharded weights included.
    - `optimizer_s`, `offload_s`, `overhead_s`: Update of the weights, transfers to the host, and what is outside the
      model.
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
        offload_s=_offload_s(runs, c, local, n_first, work * (parts.compute_s + parts.recomputation_s)),
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
    model_s, expert = layer.forward.total_s + layer.backward.total_s + again, n_pass * traffic.expert_s
    parts = _LayerParts(
        compute_s=layer.forward.total_s + layer.backward.total_s,
        recomputation_s=again,
        tensor_s=c.value("tp_exposed") * n_pass * traffic.tensor_s,
        context_s=np.maximum(c.value("cp_exposed") * context, hidden_context),
        expert_s=np.maximum(_ep_exposed(runs, c) * expert, np.where(runs.plan.pp > 1.0, expert - model_s, 0.0)),
        data_s=_sharded_s(runs, c, traffic, layer.forward.total_s, layer.backward.total_s + again),
    )
    floor_s = c.value("floor_s") * runs.job.launch_ratio * n_pass / 2.0 * (1.0 - runs.job.is_compiled)
    floor_s = floor_s + n_pass * tensor_latency_s(runs, c)
    share = runs.model.n_moe_layer / runs.model.n_layer
    n_local = np.maximum(runs.model.n_expert / runs.plan.ep, 1.0) * share * runs.job.loops_experts
    floor_s = floor_s + c.value("expert_floor_s") * n_local * n_pass / 2.0
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


def _ep_exposed(runs: JobRuns, c: StepCoefficients) -> FloatArray:
    # a pipeline runs one micro-batch behind the transfers of another: DeepSeek-V3, 2024, section 3.2.1 (DualPipe)
    return c.value("ep_exposed") * np.where(runs.plan.pp > 1.0, PIPELINE_EXPOSED, 1.0)


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
    return np.where(plan.offload_optimizer > 0, byte / _host_byte_per_s(runs), device_s)


def _host_byte_per_s(runs: JobRuns) -> FloatArray:
    return HOST_BYTE_PER_S / np.minimum(runs.job.n_accelerator, HOST_SIZE)


def _offload_s(
    runs: JobRuns, c: StepCoefficients, local: LocalParameters, n_first: FloatArray, compute_s: FloatArray
) -> FloatArray:
    # Offloaded states move gradients out, in every micro-batch if they are sharded, and weights in once a step;
    # offloaded weights move in twice a micro-batch; offloaded activations move out and in, behind the layers.
    job, plan, h = runs.job, runs.plan, runs.hardware
    if not (plan.offload_optimizer + plan.offload_parameter + plan.offload_activation > 0).any():
        return np.zeros_like(plan.tp)
    trained = sharded_parameters(plan, *_trained_on_rank(runs, local, n_first), 1.0)
    state_byte = plan.offload_optimizer * trained * (job.reduced_byte * n_scatter(plan) + job.weight_byte)
    n_weight = sharded_parameters(plan, n_first * local.layer_dense, n_first * local.layer_expert, 3.0)
    weight_byte = np.where(job.is_frozen > 0, np.minimum(job.frozen_byte, job.element_byte), job.element_byte)
    moved_byte = plan.offload_parameter * 2.0 * plan.n_micro_batch * weight_byte * n_weight
    kept, scores, layer_input = layer_activation_byte(runs)
    each = np.where(plan.recomputation > 1.5, layer_input, job.activation_ratio * (kept + scores))
    kept_byte = plan.offload_activation * 2.0 * plan.n_micro_batch * n_first * micro_batch_token(runs) * each
    bus_byte_per_s = np.minimum(h.host_byte_per_s, _host_byte_per_s(runs)) / job.host_ratio
    hidden_s = compute_s * np.minimum(plan.offload_activation, 1.0)
    streamed_s = np.maximum(kept_byte / bus_byte_per_s - hidden_s, 0.0)
    return c.value("offload_exposed") * (state_byte + moved_byte) / bus_byte_per_s + streamed_s


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
