"""Schema of the measurement table: one row per run and statistic.

A run is one (model, accelerator, configuration, workload). Its row of statistic ``p95`` holds the 95th percentile
of every latency; throughputs are means over the run and stand in the row of statistic ``mean`` alone.
"""

from __future__ import annotations

import hashlib
from typing import Final

import pandas as pd
import pandera.pandas as pa

from roofcast.data.errors import SchemaError
from roofcast.data.specs import PRECISIONS, STATISTICS

LOADS: Final = ("closed_loop", "open_loop", "static_batch", "offline")
STATUSES: Final = ("ok", "out_of_memory", "failed")

_MAX_S: Final = 86_400.0


def _text(choices: tuple[str, ...] = (), *, required: bool = False) -> pa.Column:
    check = pa.Check.isin(("", *choices) if not required else choices) if choices else None
    checks = [c for c in (check, pa.Check.str_length(1 if required else 0, 400)) if c is not None]
    return pa.Column(str, checks, nullable=False, coerce=True)


def _number(low: float, high: float) -> pa.Column:
    return pa.Column(float, pa.Check.in_range(low, high), nullable=True, coerce=True)


def _required(low: float, high: float) -> pa.Column:
    return pa.Column(float, pa.Check.in_range(low, high), nullable=False, coerce=True)


QUESTION_COLUMNS: Final = {
    "model": _text(required=True),
    "accelerator": _text(required=True),
    "n_accelerator": _required(1, 100_000),
    "engine": _text(),
    "engine_version": _text(),
    "weight_precision": _text(PRECISIONS),
    "kv_precision": _text(PRECISIONS),
    "tp": _number(1, 100_000),
    "pp": _number(1, 100_000),
    "dp": _number(1, 100_000),
    "ep": _number(1, 100_000),
    "n_input_token": _required(1e-9, 1e7),
    "n_output_token": _required(1, 1e7),
    "concurrency": _number(1, 1e6),
    "request_rate": _number(1e-9, 1e6),
    "statistic": _text(STATISTICS, required=True),
}
"""What identifies a question; `roofcast predict` reads the same columns. Rates are in requests per second."""

OUTCOME_COLUMNS: Final = {
    "ttft_s": _number(1e-7, _MAX_S),
    "nttft_s_per_token": _number(1e-9, _MAX_S),
    "itl_s": _number(0, _MAX_S),
    "tpot_s": _number(0, _MAX_S),
    "e2e_s": _number(1e-7, _MAX_S),
    "output_throughput_token_per_s": _number(1e-9, 1e9),
    "request_throughput_per_s": _number(1e-9, 1e8),
}
"""What was observed. nTTFT is TTFT over the request's own input tokens; ITL pools single gaps; TPOT is the mean
gap of one request."""

CONTEXT_COLUMNS: Final = {
    "flash_attention": pa.Column(bool, nullable=False, coerce=True),
    "load": _text(LOADS, required=True),
    "status": _text(STATUSES, required=True),
    "duration_s": _number(0, 1e8),
    "n_request": _number(0, 1e9),
    "n_failed": _number(0, 1e9),
    "n_input_token_at_statistic": _number(0, 1e7),
    "n_output_token_at_statistic": _number(0, 1e7),
    "date": _text(),
    "campaign": _text(required=True),
    "note": _text(),
}
"""How it was observed. `..._at_statistic` is the row's statistic of the request lengths themselves."""

MEASUREMENT_COLUMNS: Final = (*QUESTION_COLUMNS, *OUTCOME_COLUMNS, *CONTEXT_COLUMNS)
KEY_COLUMNS: Final = (*QUESTION_COLUMNS, "flash_attention", "load", "date", "campaign")

_SCHEMA: Final = pa.DataFrameSchema(
    {**QUESTION_COLUMNS, **OUTCOME_COLUMNS, **CONTEXT_COLUMNS}, strict=True, ordered=False
)

NUMBER_COLUMNS: Final = tuple(
    name for name, column in _SCHEMA.columns.items() if str(column.dtype) == "float64"
)

_DEFAULTS: Final[dict[str, object]] = {
    **dict.fromkeys((c for c, s in _SCHEMA.columns.items() if not s.nullable), ""),
    "statistic": "mean", "load": "", "status": "ok", "flash_attention": True,
}  # fmt: skip


def validate_measurements(table: pd.DataFrame, source: str = "", first_line: int = 0) -> pd.DataFrame:
    """Return the table with every column of the schema, in its order and types.

    Absent optional columns are filled with their blanks; `load` follows from concurrency and rate where blank.

    Parameters
    ----------
    table
        Rows with the columns `MEASUREMENT_COLUMNS`, or those of them that are known.
    source, first_line
        File name and the line of the first row, for messages; 0 to leave lines out.

    Raises
    ------
    SchemaError
        If a column is unknown, a value is out of bounds, or no outcome is given; names line and field.
    """
    unknown = [c for c in table.columns if c not in _SCHEMA.columns]
    if unknown:
        raise SchemaError(str(unknown[0]), "is not a column of the measurement table", source)
    complete = _with_defaults(table.reset_index(drop=True))
    for name in NUMBER_COLUMNS:
        complete[name] = _numbers(complete[name], source, first_line)
    try:
        checked = _SCHEMA.validate(complete, lazy=False)
    except pa.errors.SchemaError as error:
        raise _schema_error(error, source, first_line) from error
    _check_row_rules(checked, source, first_line)
    return checked[list(MEASUREMENT_COLUMNS)]


def _with_defaults(table: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, pd.Series] = {}
    for name, column in _SCHEMA.columns.items():
        default = _DEFAULTS.get(name, float("nan"))
        values = table[name] if name in table.columns else pd.Series(default, index=table.index)
        if not column.nullable:
            values = values.where(values.notna(), default)
        columns[name] = values
    complete = pd.DataFrame(columns, index=table.index)
    is_blank = complete["load"].astype(str) == ""
    is_closed = pd.to_numeric(complete["concurrency"], errors="coerce").notna()
    implied = is_closed.map({True: "closed_loop", False: "open_loop"})
    complete["load"] = complete["load"].astype(object).where(~is_blank, implied)
    return complete


def _numbers(column: pd.Series, source: str, first_line: int) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    is_blank = column.isna() | (column.astype(str).str.strip() == "")
    is_wrong = (numbers.isna() & ~is_blank).to_numpy()
    if is_wrong.any():
        position = int(is_wrong.argmax())
        got = f"must be a number, got {column.iloc[position]!r}"
        raise SchemaError(str(column.name), got, source, _line(first_line, position))
    return numbers.astype(float)


def _line(first_line: int, position: int) -> int:
    return first_line + position if first_line else 0


def _schema_error(error: pa.errors.SchemaError, source: str, first_line: int) -> SchemaError:
    field = str(getattr(error.schema, "name", None) or error.column_name)
    cases = error.failure_cases
    position, got = 0, "a blank"
    if isinstance(cases, pd.DataFrame) and len(cases):
        case = cases.iloc[0]
        position = 0 if pd.isna(case["index"]) else int(case["index"])
        value = case["failure_case"]
        got = "a blank" if pd.isna(value) or value == "" else repr(getattr(value, "item", lambda: value)())
    return SchemaError(field, f"{_wanted(error)}, got {got}", source, _line(first_line, position))


def _wanted(error: pa.errors.SchemaError) -> str:
    statistics = getattr(error.check, "statistics", None) or {}
    if "allowed_values" in statistics:
        return "must be one of " + ", ".join(str(v) or "(blank)" for v in statistics["allowed_values"])
    if "min_value" in statistics and "max_value" in statistics:
        lowest, highest = statistics["min_value"], statistics["max_value"]
        if isinstance(lowest, float | int) and isinstance(highest, float | int):
            return f"must be between {lowest:g} and {highest:g}"
    return "must be given" if "nullable" in str(error.check) else "must be a text of up to 400 characters"


def _check_row_rules(table: pd.DataFrame, source: str, first_line: int) -> None:
    has_outcome = table[list(OUTCOME_COLUMNS)].notna().any(axis=1) | (table["status"] != "ok")
    has_load = table[["concurrency", "request_rate"]].notna().any(axis=1) | (table["load"] == "offline")
    rules = {
        "ttft_s": (has_outcome, "give at least one outcome, or a status other than ok"),
        "concurrency": (has_load, "give concurrency or request_rate"),
    }
    for field, (holds, problem) in rules.items():
        if not holds.all():
            position = int((~holds).to_numpy().argmax())
            raise SchemaError(field, problem, source, _line(first_line, position))


def row_ids(table: pd.DataFrame) -> list[str]:
    """Return a content hash for each row: the same row has the same id wherever it was imported.

    Returns
    -------
    shape (n_row,), 32 hexadecimal digits each
    """
    text = table[list(MEASUREMENT_COLUMNS)].map(_canonical).agg("\x1f".join, axis=1)
    return [hashlib.blake2b(t.encode(), digest_size=16).hexdigest() for t in text]


def _canonical(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else repr(value)  # noqa: PLR0124
    return str(value)
