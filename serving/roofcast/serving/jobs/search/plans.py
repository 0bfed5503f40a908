"""Plans of jobs as columns of the training table, and the memory and energy that go with them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.jobs.run_columns import Plan
from roofcast.features.queries import FloatArray, RowIndex

PLAN_COLUMNS: Final = (
    "tp", "pp", "vp", "cp", "dp", "ep", "sharding", "recomputation", "sequence_parallel", "n_micro_batch_sequence",
    "n_gradient_accumulation", "n_global_batch_sequence",
)  # fmt: skip
"""Columns of the training table that state a plan wholly."""

RECOMPUTATIONS: Final = np.array(["none", "selective", "full"], dtype=object)
_SHARDING_OF_STAGE: Final = np.array(["ddp", "zero1", "zero2", "fsdp"], dtype=object)


def plan_columns(plan: Plan, sharding: npt.NDArray[np.object_]) -> dict[str, npt.NDArray[Any]]:
    """Return `PLAN_COLUMNS` of plans.

    Parameters
    ----------
    sharding : shape (n_row,)
        As stated; blank for the framework's own.
    """
    stage = _SHARDING_OF_STAGE[plan.zero_stage.astype(int)]
    return {
        **{name: getattr(plan, name) for name in ("tp", "pp", "vp", "cp", "dp", "ep")},
        "sharding": np.where(sharding == "", stage, sharding),
        "recomputation": RECOMPUTATIONS[plan.recomputation.astype(int)],
        "sequence_parallel": np.where(plan.is_sequence_parallel > 0, "on", "off").astype(object),
        "n_micro_batch_sequence": plan.micro_batch,
        "n_gradient_accumulation": plan.n_micro_batch,
        "n_global_batch_sequence": plan.micro_batch * plan.n_micro_batch * plan.dp,
    }


def keeps_stated(table: pd.DataFrame, index: RowIndex, plan: Plan) -> npt.NDArray[np.bool_]:
    """Return whether each plan has the replicas and micro-batches that its job states: shape (n_plan,).

    Parameters
    ----------
    index : shape (n_plan,)
        Row of the job of each plan.

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
