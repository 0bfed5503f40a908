"""Validation and row ids of the training table."""

from __future__ import annotations

from typing import Final

import pandas as pd

from roofcast.data.measurements.job_schema import (
    ADAPTER_TARGETS,
    TRAINING_DEFAULTS,
    TRAINING_OUTCOME_COLUMNS,
    TRAINING_SCHEMA,
    TRAINING_WHOLE_COLUMNS,
)
from roofcast.data.measurements.table_rules import Lines, RowRules, TableRules

STEP_RTOL: Final = 0.05
"""Relative tolerance between throughput and batch x length / step time, which sources round, some to two digits."""


def validate_training_measurements(table: pd.DataFrame, source: str = "", lines: Lines = 0) -> pd.DataFrame:
    """Return the validated table with every column of the training schema, in its order and types.

    Parameters
    ----------
    table
        Rows with some of the `TRAINING_COLUMNS`.
    source, lines
        File name, and line of the first row or of each, for messages; 0 for messages without lines.

    Raises
    ------
    SchemaError
        If a column is unknown or repeated, a value has the wrong type or is out of bounds, a row has no outcome, the
        parallel sizes do not divide the accelerators, an adapter target is unknown, or throughput and step time
        contradict each other; names line and field.
    """
    return _RULES.validate(table, source, lines)


def training_row_ids(table: pd.DataFrame) -> list[str]:
    """Return the content hash of each validated row."""
    return _RULES.row_ids(table)


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


_RULES: Final = TableRules("training table", TRAINING_SCHEMA, TRAINING_DEFAULTS, TRAINING_WHOLE_COLUMNS, _row_rules)
