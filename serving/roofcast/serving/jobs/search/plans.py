"""Plans of jobs as columns of the training table, and the memory and energy that go with them."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.jobs.run_columns import JobRuns, Plan
from roofcast.features.jobs.run_table import framework_code
from roofcast.features.queries import FloatArray, RowIndex

PLAN_COLUMNS: Final = (
    "tp", "pp", "vp", "cp", "dp", "ep", "sharding", "recomputation", "sequence_parallel", "n_micro_batch_sequence",
    "n_gradient_accumulation", "n_global_batch_sequence", "loss", "offload",
)  # fmt: skip
"""Columns of the training table that state a plan wholly."""

RECOMPUTATIONS: Final = np.array(["none", "selective", "full"], dtype=object)
_SHARDING_OF_STAGE: Final = np.array(["ddp", "zero1", "zero2", "fsdp"], dtype=object)
_DEEPSPEED: Final = [framework_code(name) for name in ("deepspeed", "megatron-deepspeed")]
_OFFLOADS: Final = np.array(["none", "optimizer", "parameters", "optimizer+parameters", "activations"], dtype=object)
"""By the sum of 1 for the optimizer, 2 for the parameters and 4 for activations, which come alone."""


def plan_columns(runs: JobRuns, table: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """Return `PLAN_COLUMNS` of jobs with plans, whose sharding, loss and offload stay where they are stated."""
    plan = runs.plan
    is_zero = (plan.zero_stage > 2) & np.isin(runs.job.framework, _DEEPSPEED)
    held = (plan.offload_optimizer, plan.offload_parameter, plan.offload_activation)
    own = {
        "sharding": np.where(is_zero, "zero3", _SHARDING_OF_STAGE[plan.zero_stage.astype(int)]),
        "loss": np.where(plan.logit_share < 1.0, "chunked", "full"),
        "offload": _OFFLOADS[np.array(held, dtype=int).T @ np.array([1, 2, 4])],
    }
    stated = {name: table[name].to_numpy(dtype=object) for name in own}
    return {
        **{name: getattr(plan, name) for name in ("tp", "pp", "vp", "cp", "dp", "ep")},
        **{name: np.where(stated[name] == "", values, stated[name]) for name, values in own.items()},
        "recomputation": RECOMPUTATIONS[plan.recomputation.astype(int)],
        "sequence_parallel": np.where(plan.is_sequence_parallel > 0, "on", "off").astype(object),
        "n_micro_batch_sequence": plan.micro_batch,
        "n_gradient_accumulation": plan.n_micro_batch,
        "n_global_batch_sequence": plan.micro_batch * plan.n_micro_batch * plan.dp,
    }


def keeps_stated(table: pd.DataFrame, index: RowIndex, plan: Plan) -> npt.NDArray[np.bool_]:
    """Return whether each plan has the replicas and micro-batches that its job states: shape (n_plan,).

    `index`: shape (n_plan,): row of the job of each plan.

    Notes
    -----
    `roofcast.features.jobs.plan_enumeration.enumerate_plans` derives both from the split and the batch.
    """
    is_kept = np.ones(len(index), dtype=np.bool_)
    for name, values in (("dp", plan.dp), ("n_gradient_accumulation", plan.n_micro_batch)):
        if name in table:
            stated = table[name].to_numpy(dtype=float)[index]
            is_kept &= np.isnan(stated) | np.isclose(values, stated, rtol=1e-6)
    return is_kept


def is_sound(n_accelerator: FloatArray, n_batch: FloatArray, plan: Plan) -> npt.NDArray[np.bool_]:
    """Return whether each plan uses every accelerator and makes the global batch, NaN if any, of whole micro-batches.

    It has shape (n_plan,). Jobs without a sound plan get one all the same from
    `roofcast.features.jobs.plan_enumeration.enumerate_plans`.
    """
    batch = plan.micro_batch * plan.n_micro_batch * plan.dp
    makes_batch = np.isnan(n_batch) | np.isclose(batch, n_batch, rtol=1e-6)
    makes_batch &= np.isclose(plan.n_micro_batch, np.rint(plan.n_micro_batch), rtol=1e-6)
    return np.asarray((plan.tp * plan.pp * plan.cp * plan.dp == n_accelerator) & makes_batch, dtype=np.bool_)
