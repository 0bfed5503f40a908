"""Columns of the table of server starts: settings of a server, and the memory that it reported while it started."""

from typing import Final

import pandas as pd

from roofcast.data.measurements.column_types import of_role, read_columns
from roofcast.data.measurements.schema import SCHEMA
from roofcast.data.measurements.table_rules import RowRules, TableRules

START_SCHEMA: Final = read_columns("server_start_columns.csv", SCHEMA)
"""`checkpoint` is the published name of the weights; the settings are those of a measurement. `judged` has some of
`START_JUDGED`, separated by spaces."""

START_OUTCOME_COLUMNS: Final = of_role(START_SCHEMA, "outcome")
"""As reported: loaded weights, cache for keys, values and states (negative where none was left), tokens of the cache
of the whole server (of one rank with data parallelism), requests of `max_context_token` tokens that it holds, and
graphs."""

START_JUDGED: Final = ("weights", "cache", "requests", "starts")
"""What a row may be judged on: settings and figures are complete and stand on one page."""

START_KEY_COLUMNS: Final = ("model", "accelerator", "n_accelerator", "engine", "engine_version", "checkpoint", "note")
"""Order of the rows of a campaign."""


def _row_rules(table: pd.DataFrame) -> RowRules:
    known = table["judged"].map(lambda cell: set(str(cell).split()) <= set(START_JUDGED)).astype(bool)
    return {"judged": (known, f"must be some of {' '.join(START_JUDGED)}")}


validate_starts: Final = TableRules("table of server starts", START_SCHEMA, _row_rules).validate
"""Validate a table of server starts, see `TableRules.validate`."""
