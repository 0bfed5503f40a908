"""Rows of questions: from JSON to columns and back, parsed cells, and the problems of each row on its own."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pandas as pd

from roofcast.data.errors import MAX_PROBLEM, InputError, SchemaError, UnknownNameError, join_errors, join_problems
from roofcast.data.measurements.cells import (
    CellParser,
    ColumnArray,
    Finding,
    Table,
    object_column,
    strip_cells,
    with_short_names,
)
from roofcast.data.measurements.column_names import LONG_NAMES, column_cure, similar_columns
from roofcast.data.measurements.schema import (
    ACCEPTANCES,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    QUESTION_COLUMNS,
    RESULT_COLUMNS,
)
from roofcast.data.measurements.speculation import speculates
from roofcast.data.precision_names import parse_weights
from roofcast.features.descriptors.assumptions import ASSUMED_LOAD


class Problem(NamedTuple):
    """Why a row of prediction input has no answer.

    - `status`: `invalid`, `unknown_name`, `does_not_fit` or `out_of_range`.
    - `field`: Column or request field at fault; empty for the row as a whole.
    - `message`: What is wrong, what was expected and how to fix it, without the field.
    - `further`: Other problems of the same row.

    Examples
    --------
    >>> problem = Problem("invalid", "tp", "must divide the model's 32 attention heads, got 3")
    >>> str(problem)
    "tp: must divide the model's 32 attention heads, got 3"
    >>> problem.error("run.csv", 7)
    SchemaError('tp', "must divide the model's 32 attention heads, got 3", 'run.csv', 7)
    """

    status: str
    field: str
    message: str
    further: tuple[Problem, ...] = ()

    @classmethod
    def from_error(cls, error: InputError) -> Self:
        """Return the problem that an input error states."""
        status = "unknown_name" if isinstance(error, UnknownNameError) else "invalid"
        return cls(status, error.field, error.problem)

    def __str__(self) -> str:
        return join_problems([one.text for one in (self, *self.further)])

    @property
    def text(self) -> str:
        """Field and message of this problem alone."""
        return f"{self.field}: {self.message}" if self.field else self.message

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields at fault."""
        return (self.field, *(one.field for one in self.further))

    def error(self, source: str = "", line: int = 0) -> SchemaError:
        """Return the problem as an error; `source` and `line` say where the row stands."""
        first, *others = (SchemaError(one.field, one.message, source, line) for one in (self, *self.further))
        first.further = tuple(InputError(error.field, error.problem) for error in others)
        return first


def add_problem(problems: list[Problem | None], i: int, problem: Problem | None, uses: Collection[str] = ()) -> None:
    """Add a problem to those of row i, unless its field or one that its check uses has one already."""
    first = problems[i]
    if problem is None or first is None:
        problems[i] = first or problem
    elif not {problem.field, *uses} & {*first.fields}:
        problems[i] = first._replace(further=(*first.further, problem))


def add_findings(problems: list[Problem | None], findings: Iterable[Finding]) -> None:
    """Add the problems that findings state to those of their rows, as `add_problem`."""
    for mask, field, problem, uses, status in findings:
        for i in mask.nonzero()[0].tolist():
            text = problem if isinstance(problem, str) else problem(i)
            add_problem(problems, i, Problem(status, field, text), uses)


REQUIRED_COLUMNS: Final = ("model", "accelerator")

ROW_NAMES: Final = dict.fromkeys((*INPUT_COLUMNS, *LONG_NAMES))
"""Names of the columns of questions, in both spellings."""

_LEAST_ONE: Final = ("n_input_token", "n_request")

MAX_COLUMN: Final = 300
"""Columns that are built: more than any table has, so those of more names include unknown ones, which are refused."""

QUESTION_PARSER: Final = CellParser(
    {name: replace(column, low=1.0) if name in _LEAST_ONE else column for name, column in INPUT_COLUMNS.items()},
    {"n_accelerator": 1.0, "statistic": "mean", "load": ""},
    tuple(QUESTION_COLUMNS),
)

_SPLIT_COLUMNS: Final = (
    "n_accelerator", "n_prefill_accelerator", "n_decode_accelerator", "tp", "pp", "dp", "cp",
)  # fmt: skip


def columns_from_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, ColumnArray]:
    """Return the rows as columns of objects; a field that a row lacks is None.

    Examples
    --------
    >>> columns_from_rows([{"model": "a"}, {"model": "b", "tp": 2}])["tp"].tolist()
    [None, 2]
    """
    names = islice(dict.fromkeys(chain.from_iterable(rows)), MAX_COLUMN)
    return {name: object_column(len(rows), [row.get(name) for row in rows]) for name in names}


def table_from_rows(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows as a table of objects."""
    return pd.DataFrame(columns_from_rows(rows), dtype=object)


def rows_from_columns(columns: Mapping[str, ColumnArray]) -> list[dict[str, Any]]:
    """Return columns as rows of JSON values; NaN becomes None."""
    plain = [
        [None if void else cell for cell, void in zip(cells.tolist(), pd.isna(cells).tolist(), strict=True)]
        for cells in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]


def rows_from_table(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as rows of JSON values; NaN becomes None."""
    return rows_from_columns({str(name): table[name].to_numpy() for name in table})


def unknown_column_error(name: str) -> SchemaError:
    """Return the error for a column that questions do not have."""
    if name in OUTCOME_COLUMNS or name in RESULT_COLUMNS:
        problem = "is a result, not an input column; leave it out, or send the row as a reference measurement"
        return SchemaError(name, problem)
    error = SchemaError(name, f"is not an input column; {column_cure(name, INPUT_COLUMNS)}")
    error.near = similar_columns(name, INPUT_COLUMNS)
    return error


def parse_rows(columns: Mapping[str, ColumnArray]) -> tuple[Table, list[Problem | None]]:
    """Return typed columns with `ASSUMED_LOAD`, and the problems of each row.

    The columns are those of `QUESTION_COLUMNS` and the others that are given, in the short spelling of `LONG_NAMES`.
    Blanks become NaN or an empty text, except `n_accelerator` (1), `statistic` (mean) and the load (one request in
    flight).

    Raises `SchemaError` if a column is unknown, or `model` or `accelerator` is missing.
    """
    unknown = (name for name in columns if name not in ROW_NAMES)
    errors = [unknown_column_error(name) for name in islice(unknown, MAX_PROBLEM + 1)]
    missing = [name for name in REQUIRED_COLUMNS if name not in columns]
    errors += [SchemaError(name, "is missing; it must be a column of the input") for name in missing]
    if errors:
        raise join_errors(errors)
    table, findings = QUESTION_PARSER.parse(columns)
    _fill_weight_bits(table, with_short_names(columns)[0])
    findings += [*_check_load(table), *_check_split(table), *_check_features(table)]
    problems: list[Problem | None] = [None] * len(table["model"])
    add_findings(problems, findings)
    return table, problems


def _fill_weight_bits(table: Table, columns: Mapping[str, ColumnArray]) -> None:
    if "weight_precision" not in columns:
        return
    names = strip_cells(columns["weight_precision"]).tolist()
    bits = {name: parse_weights(name).bit for name in dict.fromkeys(names)}
    if not np.isnan([*bits.values()]).all():
        stated = table.get("weight_bit", np.nan)
        table["weight_bit"] = np.where(np.isnan(stated), [*map(bits.__getitem__, names)], stated)


def _check_load(table: Table) -> Iterator[Finding]:
    has_concurrency, has_rate = (~np.isnan(table[name]) for name in ("concurrency", "request_rate"))
    message = "give either concurrency or request_rate"
    yield Finding(has_concurrency & has_rate, "concurrency", message, ("request_rate",))
    table[ASSUMED_LOAD] = ~(has_concurrency | has_rate)
    if "load" in table:
        load = table["load"]
        is_open, is_offline = load == "open_loop", load == "offline"
        message = "must be given for the load open_loop"
        yield Finding(is_open & ~has_rate, "request_rate", message, ("load",))
        message = "belongs to the load open_loop; leave it blank, or give that load"
        yield Finding((load != "") & ~is_open & has_rate, "request_rate", message, ("load",))
        table[ASSUMED_LOAD] &= ~(is_open | is_offline)
    table["concurrency"] = np.where(table[ASSUMED_LOAD], 1.0, table["concurrency"])


def _check_split(table: Table) -> Iterator[Finding]:
    n_accelerator, is_apart = table["n_accelerator"], None
    if "n_prefill_accelerator" in table or "n_decode_accelerator" in table:
        is_apart = yield from _fill_parts(table)
        n_accelerator = np.where(is_apart, table["n_decode_accelerator"], table["n_accelerator"])
    tp, pp, dp = (table[name] for name in ("tp", "pp", "dp"))
    ranks = np.where(np.isnan(pp), 1, pp) * np.where(np.isnan(dp), 1, dp)
    names = "pp x dp"
    if "cp" in table:
        ranks = ranks * np.where(np.isnan(table["cp"]), 1, table["cp"])
        names = "pp x dp x cp"
    split = np.where(np.isnan(tp), n_accelerator / ranks, tp)
    yield Finding(split < 1, "tp", f"{names} must not exceed n_accelerator", _SPLIT_COLUMNS)
    excess = split * ranks - n_accelerator
    if is_apart is not None:
        excess = np.where(is_apart, n_accelerator % (split * ranks), excess)

    def excess_message(i: int) -> str:
        verb = "equal" if is_apart is None or not is_apart[i] else "divide"
        return f"tp x {names} must {verb} n_accelerator, got {split[i]:g} x {ranks[i]:g} and {n_accelerator[i]:g}"

    is_wrong = (np.abs(excess) > 1e-9) | (split % 1 != 0)
    yield Finding(is_wrong, "tp", excess_message, _SPLIT_COLUMNS)


def _fill_parts(table: Table) -> Generator[Finding, None, ColumnArray]:
    blank = np.full(len(table["model"]), np.nan)
    n_total, is_given = table["n_accelerator"], table["n_accelerator"] > 1
    n_prefill, n_decode = (table.get(f"n_{part}_accelerator", blank) for part in ("prefill", "decode"))
    n_total = np.where(is_given | np.isnan(n_prefill + n_decode), n_total, n_prefill + n_decode)
    n_prefill = np.where(np.isnan(n_prefill), n_total - n_decode, n_prefill)
    n_decode = np.where(np.isnan(n_decode), n_total - n_prefill, n_decode)
    is_apart = ~np.isnan(n_prefill)
    is_wrong = is_apart & ((n_prefill + n_decode != n_total) | (n_decode < 1) | (n_prefill < 0))
    message = "must add up to n_accelerator with n_decode_accelerator, at least one each"
    yield Finding(is_wrong, "n_prefill_accelerator", message, _SPLIT_COLUMNS)
    is_apart &= ~is_wrong & (n_prefill > 0)
    table["n_accelerator"] = n_total
    table["n_prefill_accelerator"] = np.where(is_apart, n_prefill, np.nan)
    table["n_decode_accelerator"] = np.where(is_apart, n_decode, np.nan)
    return is_apart


def _check_features(table: Table) -> Iterator[Finding]:
    for name in ("n_speculative_token", *ACCEPTANCES):
        if name in table:
            message = "needs speculation; give its kind, such as mtp or eagle, or n_speculative_token too"
            least = 1 if name == "acceptance_length" else 0
            yield Finding(~speculates(table) & (table[name] > least), name, message, ("speculation",))
    if "prefix_caching" in table and "prefix_cache_ratio" in table:
        is_wrong = (table["prefix_caching"] == "off") & (table["prefix_cache_ratio"] > 0)
        message = "must be 0 or blank with prefix_caching off"
        yield Finding(is_wrong, "prefix_cache_ratio", message, ("prefix_caching",))
