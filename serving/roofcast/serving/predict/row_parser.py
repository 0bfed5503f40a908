"""Rows of questions as typed columns, and what is wrong with each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.errors import SchemaError
from roofcast.data.measurements.schema import ASKED_COLUMNS
from roofcast.data.specs import PRECISIONS, STATISTICS
from roofcast.features.descriptors.prediction_input import Cells

Problem = tuple[str, str]
"""The status of a row that cannot be answered, and why."""

Table = dict[str, Cells]

ASSUMED_LOAD: Final = "load_is_assumed"
"""Column of `checked` that says where neither concurrency nor request rate was given."""

_BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "n_accelerator": (1, 100_000), "tp": (1, 100_000), "pp": (1, 100_000), "dp": (1, 100_000), "ep": (1, 100_000),
    "n_input_token": (1, 1e7), "n_output_token": (1, 1e7), "concurrency": (1, 1e6), "request_rate": (1e-9, 1e6),
    "n_request": (1, 1e9),
}  # fmt: skip
_WHOLE: Final = ("n_accelerator", "tp", "pp", "dp", "ep")
_DEFAULTS: Final[dict[str, float]] = {"n_accelerator": 1.0}
_REQUIRED: Final = ("n_input_token", "n_output_token")
_NAMES: Final = ("model", "accelerator")
_CHOICES: Final = {
    "statistic": STATISTICS,
    "weight_precision": PRECISIONS,
    "kv_precision": PRECISIONS,
}


def check_columns(names: list[Any]) -> None:
    """Raise if these cannot be the columns of questions.

    Raises
    ------
    SchemaError
        If one is unknown or there twice, or `model` or `accelerator` is missing.
    """
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(str(name), "is given twice as a column of the questions")
        if name not in ASKED_COLUMNS:
            raise SchemaError(str(name), f"is not a column of questions; they are {', '.join(ASKED_COLUMNS)}")
    for name in ("model", "accelerator"):
        if name not in names:
            raise SchemaError(name, "must be a column of the questions")


def parsed(questions: Mapping[str, Cells]) -> tuple[Table, list[Problem | None]]:
    """Return typed columns with `ASSUMED_LOAD` and, per row, the first problem found.

    Raises
    ------
    SchemaError
        If a column is unknown or `model` or `accelerator` is missing.
    """
    check_columns([*questions])
    n_row = len(questions["model"])
    problems: list[Problem | None] = [None] * n_row
    blank = np.full(n_row, np.nan)
    table: Table = {}
    for name in ASKED_COLUMNS:
        read = _numbers if name in _BOUNDS else _texts
        table[name] = read(name, questions.get(name, blank), problems)
    is_told = {name: ~np.isnan(table[name]) for name in ("concurrency", "request_rate")}
    has_both, has_any = (
        is_told["concurrency"] & is_told["request_rate"],
        is_told["concurrency"] | is_told["request_rate"],
    )
    note(problems, has_both, lambda _: "concurrency: give either concurrency or request_rate")
    table["concurrency"] = np.where(has_any, table["concurrency"], 1.0)
    table[ASSUMED_LOAD] = ~has_any
    _check_split(table, problems)
    return table, problems


def _check_split(table: Table, problems: list[Problem | None]) -> None:
    for name in _WHOLE:
        is_part = np.nan_to_num(table[name] % 1) != 0
        note(problems, is_part, lambda i, name=name: f"{name}: must be a whole number, got {table[name][i]:g}")  # type: ignore[misc]
    ranks = np.where(np.isnan(table["pp"]), 1, table["pp"]) * np.where(np.isnan(table["dp"]), 1, table["dp"])
    split = np.where(np.isnan(table["tp"]), table["n_accelerator"] / ranks, table["tp"])
    note(problems, split < 1, lambda _: "tp: pp x dp must not exceed n_accelerator")
    note(
        problems,
        (np.abs(split * ranks - table["n_accelerator"]) > 1e-9) | (split % 1 != 0),
        lambda i: (
            f"tp: tp x pp x dp must equal n_accelerator, got {split[i]:g} x {ranks[i]:g} "
            f"and {table['n_accelerator'][i]:g}"
        ),
    )


def _numbers(name: str, cells: Cells, problems: list[Problem | None]) -> Cells:
    low, high = _BOUNDS[name]
    if cells.dtype.kind in "iuf":
        values, text = cells.astype(float), cells
        is_blank = np.isnan(values)
    else:
        text = _stripped(cells)
        is_blank = text == ""
        values = np.array(pd.to_numeric(np.where(is_blank, np.nan, text), errors="coerce"), dtype=float)
    values[is_blank] = _DEFAULTS.get(name, np.nan)
    is_wrong = ~is_blank & ~((values >= low) & (values <= high))
    values[is_wrong] = np.nan
    problem = f"{name}: must be a number from {low:g} to {high:g}"
    note(problems, is_wrong, lambda i: f"{problem}, got {str(text[i])[:40]!r}")
    if name in _REQUIRED:
        note(problems, is_blank, lambda _: f"{name}: must be given")
    return values


def _texts(name: str, cells: Cells, problems: list[Problem | None]) -> Cells:
    text = _stripped(cells)
    if name == "statistic":
        text[text == ""] = "mean"
    if name in _NAMES:
        note(problems, text == "", lambda _: f"{name}: must be given")
    choices = _CHOICES.get(name)
    if choices:
        is_wrong = np.array([word not in choices and word != "" for word in text], dtype=bool)
        note(problems, is_wrong, lambda i: f"{name}: must be one of {', '.join(choices)}, got {text[i][:40]!r}")
    return text


def _stripped(cells: Cells) -> Cells:
    """Return what the cells say, without blanks around it; nothing for what is missing."""
    return filled(
        len(cells),
        [("" if void else str(cell).strip()) for cell, void in zip(cells.tolist(), pd.isna(cells), strict=True)],
    )


def filled(n_row: int, value: object) -> Cells:
    """Return a column of objects: one for all, or one a row."""
    filled: Cells = np.empty(n_row, dtype=object)
    filled[:] = value
    return filled


def note(problems: list[Problem | None], mask: Cells, message: Callable[[int], str], status: str = "invalid") -> None:
    """Note a problem of the rows marked, unless they have one."""
    for i in np.flatnonzero(mask).tolist():
        if problems[i] is None:
            problems[i] = (status, message(i))
