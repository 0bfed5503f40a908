"""Columns of the table of server starts: settings of a server, and the memory that it reported while it started."""

from __future__ import annotations

from typing import Final

import pandas as pd

from roofcast.data.measurements.column_types import number, required_number, required_text, text
from roofcast.data.measurements.schema import CONTEXT_COLUMNS, QUESTION_COLUMNS, WHOLE_COLUMNS
from roofcast.data.measurements.table_rules import RowRules, TableRules

_SETTINGS: Final = (
    "engine", "engine_version", "weight_precision", "kv_precision", "tp", "pp", "dp", "ep", "cp", "chunk_size_token",
    "max_num_seqs", "max_context_token", "gpu_memory_utilization", "graphs", "prefix_caching", "speculation",
    "n_speculative_token", "status", "date", "campaign", "stack", "note",
)  # fmt: skip

START_OUTCOME_COLUMNS: Final = {
    "weight_byte_per_accelerator": number(1e6, 1e13),
    "cache_byte_per_accelerator": number(-1e12, 1e13),
    "n_cache_token": number(1, 1e12),
    "n_full_request": number(1e-3, 1e9),
    "graph_byte_per_accelerator": number(-1e12, 1e13),
}
"""As reported: loaded weights, cache for keys, values and states (negative where none was left), tokens of the cache
of the whole server (of one rank with data parallelism), requests of `max_context_token` tokens that it holds, and
graphs."""

START_JUDGED: Final = ("weights", "cache", "requests", "starts")
"""What a row may be judged on: settings and figures are complete and stand on one page."""

START_SCHEMA: Final = {
    "model": required_text(),
    "checkpoint": required_text(),
    "accelerator": required_text(),
    "n_accelerator": required_number(1, 100_000),
    **{name: (QUESTION_COLUMNS | CONTEXT_COLUMNS)[name] for name in _SETTINGS},
    **START_OUTCOME_COLUMNS,
    "judged": text(),
}
"""`checkpoint` is the published name of the weights; the settings are those of a measurement. `judged` has some of
`START_JUDGED`, separated by spaces."""

START_KEY_COLUMNS: Final = ("model", "accelerator", "n_accelerator", "engine", "engine_version", "checkpoint", "note")
"""Order of the rows of a campaign."""


def _row_rules(table: pd.DataFrame) -> RowRules:
    known = table["judged"].map(lambda cell: set(str(cell).split()) <= set(START_JUDGED)).astype(bool)
    return {"judged": (known, f"must be some of {' '.join(START_JUDGED)}")}


_DEFAULTS: Final[dict[str, object]] = {
    **dict.fromkeys((name for name, column in START_SCHEMA.items() if not column.is_nullable), ""),
    "status": "ok",
}

validate_starts: Final = TableRules(
    "table of server starts", START_SCHEMA, _DEFAULTS,
    tuple(name for name in WHOLE_COLUMNS if name in START_SCHEMA), _row_rules,
).validate  # fmt: skip
"""Validate a table of server starts, see `TableRules.validate`."""
