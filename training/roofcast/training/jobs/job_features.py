"""Columns of the learned correction: shares of the estimate, sizes on one accelerator, and ratios of hardware."""

from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.features.jobs.frameworks import PLAIN_FAMILIES
from roofcast.features.jobs.step.flops import forward_flop
from roofcast.features.jobs.step.job_coefficients import FRAMEWORK_PRIORS
from roofcast.features.jobs.step.step import JobTime, mfu_ratio
from roofcast.features.queries import FloatArray
from roofcast.training.jobs.job_table import JobTable

OUTSIDE: Final = 0.7
"""Distance beyond the range of the training rows, in natural logarithms or as a share, from which a job is far."""

_PLAIN: Final = tuple(list(FRAMEWORK_PRIORS).index(name) for name in PLAIN_FAMILIES)

_PARTS: Final = tuple(JobTime.__slots__)

_MEMORY_PARTS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")

PARTS: Final = (*_PARTS, *_MEMORY_PARTS)
"""Parts of time and memory, whose shares are the first columns."""


def rate_columns(table: JobTable) -> dict[str, FloatArray]:
    """Return the columns of the correction of rates, each of shape (n_job,)."""
    r, t = table.runs, table.time
    model, job, plan, hardware = r.model, r.job, r.plan, r.hardware
    flop = forward_flop(model, job)
    token = plan.micro_batch * job.n_token / plan.cp
    peak_byte_per_s = hardware.bandwidth_byte_per_s
    columns = {f"share.{name}": getattr(t, name) / t.total_s for name in _PARTS}
    columns |= {
        "log.mfu": np.log(mfu_ratio(r, t)),
        "log.step_s": np.log(t.total_s),
        "log.micro_batch_s": np.log(t.total_s / plan.n_micro_batch / model.n_layer * plan.pp),
        "log.micro_batch_token": np.log(token),
        "log.n_token": np.log(job.n_token),
        "log.hidden": np.log(model.hidden_size),
        "log.width": np.log(np.maximum(np.maximum(model.mlp_width, model.moe_width), 1.0) / plan.tp),
        "log.stage_layer": np.log(model.n_layer / plan.pp),
        "log.n_param": np.log(model.n_param),
        "share.attention": flop.attention / flop.total,
        "share.expert": flop.expert / flop.total,
        "share.head": flop.head / flop.total,
        "share.linear": model.n_linear_layer / model.n_layer,
        "share.sliding": model.n_sliding_layer / model.n_layer,
        "log.n_expert": np.log1p(model.n_expert),
        "log.expert_width": np.log1p(model.moe_width * (model.n_expert > 0)),
        "log.expert_token": np.log1p(token * model.n_expert_per_token / np.maximum(model.n_expert / plan.ep, 1.0)),
        "log.n_accelerator": np.log(job.n_accelerator),
        "log.n_domain": np.log(np.maximum(job.n_accelerator / hardware.domain_size, 1.0)),
        "log.tp": np.log(plan.tp), "log.pp": np.log(plan.pp), "log.cp": np.log(plan.cp), "log.ep": np.log(plan.ep),
        "log.dp": np.log(plan.dp), "log.vp": np.log(plan.vp),
        "log.n_micro_batch": np.log(plan.n_micro_batch / plan.pp),
        "zero_stage": plan.zero_stage, "recomputation": plan.recomputation,
        "is_frozen": job.is_frozen, "is_quantised": job.is_quantised, "is_eight_bit": job.is_eight_bit,
        "is_flash": job.is_flash, "is_compiled": job.is_compiled, "is_eager": job.is_eager,
        "is_attention_portable": job.is_attention_portable,
        "log.peak": np.log(hardware.flop_per_s),
        "log.intensity": np.log(hardware.flop_per_s / peak_byte_per_s),
        "log.link_intensity": np.log(hardware.flop_per_s / hardware.link_byte_per_s),
        "log.network_intensity": np.log(hardware.flop_per_s / hardware.network_byte_per_s),
        "log.fill": np.log(table.memory.device / hardware.memory_byte),
    }  # fmt: skip
    return {name: np.broadcast_to(np.asarray(value, dtype=np.float64), len(table)) for name, value in columns.items()}


def memory_columns(table: JobTable) -> dict[str, FloatArray]:
    """Return the columns of the correction of peak memory, each of shape (n_job,)."""
    parts = {
        name: np.maximum(getattr(table.memory.first, name), getattr(table.memory.last, name))
        for name in _MEMORY_PARTS
    }
    total = table.memory.allocated
    shared = rate_columns(table)
    columns = {f"share.{name}": value / total for name, value in parts.items()}
    columns |= {name: shared[name] for name in shared if not name.endswith("_s") and name != "log.mfu"}
    columns["is_token_known"] = np.isfinite(table.number("n_token_per_sequence")).astype(float)
    columns["is_padded"] = (table.text("packing") == "padded").astype(float)
    columns["is_device"] = (table.memory_kind == "device").astype(float)
    columns["is_allocated"] = (table.memory_kind == "allocated").astype(float)
    return {name: np.broadcast_to(np.asarray(value, dtype=np.float64), len(table)) for name, value in columns.items()}


def is_plain(table: JobTable) -> npt.NDArray[np.bool_]:
    """Return whether each job is one of an ordinary trainer: shape (n_job,)."""
    return np.broadcast_to(np.isin(table.runs.job.framework, _PLAIN), len(table))


def outside_range(x: FloatArray, limits: FloatArray) -> npt.NDArray[np.bool_]:
    """Return whether a column of each row lies far from the least and greatest value of `limits`: shape (n_row,)."""
    return np.asarray(((x < limits[0] - OUTSIDE) | (x > limits[1] + OUTSIDE)).any(axis=1))
