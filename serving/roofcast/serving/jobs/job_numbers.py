"""Numbers of jobs with plans: rates, times, utilisation, memory by part, and power."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.analysis.power import DRAW
from roofcast.features.descriptors.descriptor_table import TYPICAL_TDP_W
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.step.job_memory import JobMemory
from roofcast.features.jobs.step.step import JobTime, mfu_ratio, throughput_token_per_s
from roofcast.features.queries import FloatArray
from roofcast.training.jobs.job_predictor import JobPrediction

Columns = dict[str, npt.NDArray[Any]]

STAGE_PARTS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
MEMORY_PARTS: Final = (*STAGE_PARTS, "reserve")
"""Parts of allocated memory, and what the allocator and the driver hold beyond."""

INTERVAL_METRICS: Final = ("step_time_s", "throughput_token_per_s", "mfu_ratio", "peak_memory_byte")
METRIC_COLUMNS: Final = tuple(f"{metric}{end}" for metric in INTERVAL_METRICS for end in ("", "_lo", "_hi"))
MEMORY_COLUMNS: Final = (
    *(f"memory_{part}_byte" for part in MEMORY_PARTS), "memory_capacity_byte", "memory_host_byte",
)  # fmt: skip


def job_numbers(runs: JobRuns, time: JobTime, memory: JobMemory, prediction: JobPrediction) -> Columns:
    """Return `METRIC_COLUMNS`, `MEMORY_COLUMNS`, `p_fits` and `power_share` of jobs: shapes (n_job,).

    `memory`: with the predicted peak, see `roofcast.features.jobs.step.job_memory.correct_memory`.
    """
    plan, job, n = runs.plan, runs.job, runs.job.n_accelerator
    token = plan.n_micro_batch * plan.micro_batch * plan.dp * job.n_token * job.content_ratio  # without padding
    mfu_of_rate = mfu_ratio(runs, time) / throughput_token_per_s(runs, time)
    rate = {
        "": prediction.token_per_s_per_accelerator * n,
        "_lo": prediction.token_per_s_per_accelerator_low * n,
        "_hi": prediction.token_per_s_per_accelerator_high * n,
    }
    numbers: Columns = {"p_fits": prediction.p_fits, "power_share": power_share(time)}
    for end, opposite in (("", ""), ("_lo", "_hi"), ("_hi", "_lo")):
        numbers[f"throughput_token_per_s{end}"] = rate[end]
        numbers[f"step_time_s{end}"] = token / rate[opposite]
        numbers[f"mfu_ratio{end}"] = rate[end] * mfu_of_rate
    numbers["peak_memory_byte"] = prediction.peak_memory_byte
    numbers["peak_memory_byte_lo"] = prediction.peak_memory_byte_low
    numbers["peak_memory_byte_hi"] = prediction.peak_memory_byte_high
    numbers |= {f"memory_{part}_byte": values for part, values in memory_parts(memory).items()}
    numbers |= {"memory_capacity_byte": runs.hardware.memory_byte, "memory_host_byte": memory.host}
    return {name: np.broadcast_to(values, n.shape) for name, values in numbers.items()}


def memory_parts(memory: JobMemory) -> dict[str, FloatArray]:
    """Return the estimated memory in use on the device by part, of the pipeline stage that needs most.

    The parts add up to `JobMemory.device`.
    """
    is_first = memory.first.allocated >= memory.last.allocated
    parts = {
        name: np.where(is_first, getattr(memory.first, name), getattr(memory.last, name)) for name in STAGE_PARTS
    }
    return parts | {"reserve": memory.device - memory.allocated}


def design_power_w(accelerator: AcceleratorSpec) -> float:
    """Return the design power of an accelerator, or a typical one where its data sheet has none."""
    return accelerator.tdp_w or TYPICAL_TDP_W


def power_share(time: JobTime) -> FloatArray:
    """Return the mean power over the design power of an accelerator: shape (n_row,).

    Products draw the design power, links and launches less, the optimizer that of memory traffic, a pipeline that
    waits that of an idle board: see `roofcast.features.analysis.power.DRAW`.
    """
    links = time.tensor_s + time.context_s + time.expert_s + time.stage_s + time.data_s + time.offload_s
    drawn = DRAW["compute"] * (time.compute_s + time.recomputation_s) + DRAW["link"] * links
    drawn = drawn + DRAW["memory"] * time.optimizer_s + DRAW["launch"] * time.overhead_s
    return (drawn + DRAW["queue"] * time.bubble_s) / time.total_s
