"""Validation and row ids of the training table."""

from typing import Final

import pandas as pd

from roofcast.data.measurements.job_schema import (
    ADAPTER_TARGETS,
    TRAINING_OUTCOME_COLUMNS,
    TRAINING_SCHEMA,
)
from roofcast.data.measurements.table_rules import RowRules, TableRules

STEP_RTOL: Final = 0.05
"""Relative tolerance between throughput and batch x length / step time, which sources round, some to two digits."""


def token_per_step(table: pd.DataFrame) -> pd.Series:
    """Return the tokens of a global batch; NaN where batch or length is unknown."""
    return table["n_global_batch_sequence"] * table["n_token_per_sequence"]


def _row_rules(table: pd.DataFrame) -> RowRules:
    has_outcome = table[list(TRAINING_OUTCOME_COLUMNS)].notna().any(axis=1) | (table["status"] != "ok")
    split = table[["tp", "pp", "cp"]].fillna(1).prod(axis=1)
    ratio = table["throughput_token_per_s"] * table["step_time_s"] / token_per_step(table)
    agrees = ratio.isna() | ((ratio - 1.0).abs() <= STEP_RTOL)
    targets = table["adapter_targets"].map(lambda cell: set(str(cell).split()) <= set(ADAPTER_TARGETS))
    return {
        "adapter_targets": (targets.astype(bool), f"must be some of {' '.join(ADAPTER_TARGETS)}"),
        "step_time_s": (has_outcome, "give at least one outcome, or a status other than ok"),
        "tp": (table["n_accelerator"] % split == 0, "tp x pp x cp must divide n_accelerator"),
        "throughput_token_per_s": (agrees, "must be global batch x sequence length / step time"),
    }


_RULES: Final = TableRules("training table", TRAINING_SCHEMA, _row_rules)

validate_training_measurements: Final = _RULES.validate
"""Validate a training table, see `TableRules.validate`.

A row has an outcome or a status other than ok, its parallel sizes divide its accelerators, its adapter targets are
known, and its throughput and step time agree."""

training_row_ids: Final = _RULES.row_ids
