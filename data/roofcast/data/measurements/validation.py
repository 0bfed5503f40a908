"""Validation and row ids of the measurement table."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.measurements.column_types import Column
from roofcast.data.measurements.schema import MEAN_ONLY_COLUMNS, OUTCOME_COLUMNS, SCHEMA
from roofcast.data.measurements.table_rules import Columns, RowRules, TableRules


def with_column_types(table: pd.DataFrame, schema: Mapping[str, Column] = SCHEMA) -> pd.DataFrame:
    """Return stored rows in the order and types of a schema, not validated again; None is an unknown number."""
    return table[list(schema)].astype({name: column.kind for name, column in schema.items()})


_NOT_IN_ID: Final[dict[str, float | str]] = {"length_variation": np.nan, "stack": ""}
"""Columns that importers computed only from some version on, and their blanks: they do not change the id of a row."""


def row_ids(table: pd.DataFrame) -> list[str]:
    """Return the content hash of each validated row: equal rows have equal ids on every machine."""
    return _RULES.row_ids(table.assign(**_NOT_IN_ID))


def _fill_load(columns: Columns) -> dict[str, pd.Series]:
    load, concurrency = columns["load"], columns["concurrency"]
    is_blank = load.astype(str) == ""
    if not is_blank.any():
        return {}
    is_closed = concurrency.notna() & (concurrency.astype(str).str.strip() != "")
    implied = is_closed.map({True: "closed_loop", False: "open_loop"})
    return {"load": load.astype(object).where(~is_blank, implied)}


def _row_rules(table: pd.DataFrame) -> RowRules:
    has_outcome = table[list(OUTCOME_COLUMNS)].notna().any(axis=1) | (table["status"] != "ok")
    has_load = table[["concurrency", "request_rate"]].notna().any(axis=1) | (table["load"] == "offline")
    is_mean = table["statistic"] == "mean"
    workers = table["n_prefill_accelerator"] + table["n_decode_accelerator"]
    return {
        "ttft_s": (has_outcome, "give at least one outcome, or a status other than ok"),
        "concurrency": (has_load, "give concurrency or request_rate"),
        "n_failed": (~(table["n_failed"] > table["n_request"]), "must not exceed n_request"),
        "n_prefill_accelerator": (
            workers.isna() | (workers == table["n_accelerator"]),
            "must add up to n_accelerator with n_decode_accelerator",
        ),
        **{
            column: (is_mean | table[column].isna(), "belongs only in the row of statistic mean")
            for column in MEAN_ONLY_COLUMNS
        },
        "derived": (
            table["derived"].isin([names for names in table["derived"].unique() if _are_outcomes(names)]),
            "must name outcome columns, separated by spaces",
        ),
    }


def _are_outcomes(names: str) -> bool:
    return set(names.split()) <= OUTCOME_COLUMNS.keys()


_RULES: Final = TableRules("measurement table", SCHEMA, _row_rules, _fill_load)

validate_measurements: Final = _RULES.validate
"""Validate a measurement table, see `TableRules.validate`; a blank `load` follows from concurrency and request rate.

A row has an outcome or a status other than ok, and a row of a percentile none without percentiles."""
