"""Values that the user sets for benchmark files (``--set COLUMN=VALUE``): they fill blanks and contradict nothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.data.measurements.schema import CONTEXT_COLUMNS, NUMBER_COLUMNS, QUESTION_COLUMNS
from roofcast.data.measurements.table_rules import Lines, line_of

Overrides = Mapping[str, object]
"""Values by column of the measurement table, or by ``column:name in the file``."""

_NEVER: Final = {
    "statistic", "campaign", "status", "derived", "n_input_token_at_statistic", "n_output_token_at_statistic",
}  # fmt: skip
OVERRIDABLE_COLUMNS: Final = tuple(name for name in (*QUESTION_COLUMNS, *CONTEXT_COLUMNS) if name not in _NEVER)
"""Columns that the user may set: those of the question and its context, never an outcome."""

EXAMPLES: Final = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "accelerator": "nvidia-h100-sxm-80gb",
    "n_accelerator": "8",
    "n_input_token": "1024",
    "n_output_token": "128",
    "concurrency": "16",
}
"""Columns that every row must fill, with an example value for messages."""

_EXAMPLES: Final = EXAMPLES | {"engine": "vllm"}


class MissingColumnsError(SchemaError):
    """A benchmark file leaves required columns blank; the message has the options that set them and the engine.

    Examples
    --------
    >>> print(MissingColumnsError(["n_accelerator", "concurrency"]))
    n_accelerator: is not in the file; set what is missing, such as --set n_accelerator=8 --set concurrency=16
    """

    def __init__(self, columns: Sequence[str], source: str = "", line: int = 0) -> None:
        self.columns = tuple(columns)
        problem = f"is not in the file; set what is missing, such as {' '.join(self.examples)}"
        super().__init__(columns[0], problem, source, line)
        self.args = (self.columns, source, line)

    @property
    def examples(self) -> list[str]:
        """Options of the command line that set the missing columns."""
        return [part for column in self.columns for part in ("--set", f"{column}={_EXAMPLES[column]}")]


def parse_overrides(texts: Iterable[str]) -> dict[str, str]:
    """Return columns and values from texts such as ``accelerator=nvidia-h100-sxm-80gb``.

    Raises `InputError` if a text has another form, or a column is given twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not (mark and name and value):
            raise InputError("set", f"must be COLUMN=VALUE such as accelerator=nvidia-h100-sxm-80gb, got {text!r}")
        if name in values:
            raise InputError("set", f"must name each column once, got {name} twice")
        values[name] = value
    return values


def check_overrides(overrides: Overrides) -> dict[str, object]:
    """Return the overrides with numbers parsed and texts stripped.

    `overrides`: column to value, or ``column:name in the file`` to the name that replaces it. Raises
    `UnknownNameError` if a column does not exist or may not be set; `InputError` if a value is blank or of the wrong
    type.

    Examples
    --------
    >>> check_overrides({"tp": "8", "model:llama": "meta-llama/Llama-2-7b-hf"})
    {'tp': 8.0, 'model:llama': 'meta-llama/Llama-2-7b-hf'}
    """
    checked: dict[str, object] = {}
    for key, value in overrides.items():
        column = key.partition(":")[0]
        if column not in OVERRIDABLE_COLUMNS:
            error = UnknownNameError("column", column, OVERRIDABLE_COLUMNS)
            error.problem += "" if error.near else "; set a column of the measurement table, such as accelerator"
            raise error
        if is_blank(value):
            raise InputError(key, "must not be blank; leave it out")
        checked[key] = parse_cell(column, value)
    return checked


def parse_cell(column: str, value: object) -> object:
    """Return a value in the type of its column.

    Raises `InputError` if the column holds numbers and the value is not one.
    """
    if column not in NUMBER_COLUMNS:
        return value if column == "flash_attention" and isinstance(value, bool) else str(value).strip()
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(column, f"must be a number, got {str(value)[:60]!r}")
    return number


def fill_blanks(cells: Mapping[str, Any], overrides: Overrides, place: str, line: int = 0) -> dict[str, Any]:
    """Return the cells of a row with blanks filled and names replaced by the overrides.

    Raises `SchemaError` if a cell contradicts its override.

    Examples
    --------
    >>> fill_blanks({"model": "llama", "tp": ""}, {"tp": 8.0, "model:llama": "meta-llama/Llama-2-7b-hf"}, "run.json")
    {'model': 'meta-llama/Llama-2-7b-hf', 'tp': 8.0}
    """
    filled = dict(cells)
    for key, value in overrides.items():
        column, _, old_name = key.partition(":")
        current = filled.get(column)
        if old_name:
            if str(current) == old_name:
                filled[column] = value
        elif is_blank(current):
            filled[column] = value
        elif not _same(current, value):
            in_file, override = (str(cell) if str(cell).isprintable() else ascii(cell) for cell in (current, value))
            problem = (
                f"is {in_file[:60]!r} in the file, but is set to {override[:60]!r}; leave it out, or set "
                f"{column}:{in_file[:60]}={override[:60]} to rename it"
            )
            raise SchemaError(column, problem, place, line)
    return filled


def fill_table(table: pd.DataFrame, overrides: Overrides, place: str, lines: Lines = 0) -> pd.DataFrame:
    """Return a table with blanks filled and names replaced by the overrides; see `fill_blanks`.

    Raises `SchemaError` if a cell contradicts its override.
    """
    if not overrides:
        return table
    rows: list[dict[Any, Any]] = table.to_dict("records")
    return pd.DataFrame([fill_blanks(row, overrides, place, line_of(lines, i)) for i, row in enumerate(rows)])


def check_required(cells: Mapping[str, Any], place: str, line: int = 0) -> None:
    """Refuse a row that leaves a required column blank.

    Raises `MissingColumnsError` if model, accelerator, their count, a request length or the load is blank.
    """
    has_other_load = not is_blank(cells.get("request_rate")) or cells.get("load") == "offline"
    missing = [
        name for name in EXAMPLES if is_blank(cells.get(name)) and not (name == "concurrency" and has_other_load)
    ]
    if missing:
        blank_engine = ["engine"] if is_blank(cells.get("engine")) else []
        raise MissingColumnsError([*missing, *blank_engine], place, line)


def is_blank(value: object) -> bool:
    """Return whether a cell holds nothing: None, NaN or white space."""
    return value is None or value != value or str(value).strip() == ""  # noqa: PLR0124


def _same(current: object, value: object) -> bool:
    try:
        return math.isclose(float(str(current)), float(str(value)), rel_tol=1e-9)
    except ValueError:
        return str(current).strip().lower() == str(value).strip().lower()
