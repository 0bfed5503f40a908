"""Files that the command line is given."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from roofcast.data.errors import InputError, SchemaError
from roofcast.data.huggingface import parse_config


def read_questions(path: Path) -> pd.DataFrame:
    """Return a CSV of questions, cells as written.

    Raises
    ------
    SchemaError
        If the file cannot be read, is no CSV in UTF-8, or a line is longer or shorter than the header.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SchemaError("", f"cannot be read: {reason}", path.name) from error
    rows = _rows(text, path.name)
    if not rows:
        raise SchemaError("", "is empty; the first line must name the columns", path.name, 1)
    (_, header), *body = rows
    for line, row in body:
        if len(row) != len(header):
            problem = f"must have {len(header)} cells as the header has, got {len(row)}; is the file truncated?"
            raise SchemaError("", problem, path.name, line)
    return pd.DataFrame([row for _, row in body], columns=[name.strip() for name in header], dtype=object)


def _rows(text: str, name: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise SchemaError("", f"is not valid CSV: {error}", name, reader.line_num) from error


def write_answers(answers: pd.DataFrame, path: Path) -> None:
    """Write answers as CSV, blank where there is none.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        answers.to_csv(path, index=False, encoding="utf-8")
    except OSError as error:
        raise InputError("out", f"{path} cannot be written: {error.strerror or error}") from error


def read_config_file(path: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the fields of a ``config.json``; it is called like its folder, or like itself.

    Raises
    ------
    InputError
        If the file cannot be read or is no JSON object.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        body = file.read_bytes()
    except OSError as error:
        raise InputError("model", f"{file} cannot be read: {error.strerror}") from error
    name = file.absolute().parent.name if file.name == "config.json" else file.stem
    return name or "model", parse_config(body, file.name, allow_infinity=True)


def named_configs(texts: list[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return names and configurations of texts such as ``my-14b=path/config.json``.

    Raises
    ------
    InputError
        If a text has another form, or its file cannot be read.
    """
    pairs = (_pair("model-config", "NAME=PATH", text) for text in texts)
    return [(name, read_config_file(Path(path))[1]) for name, path in pairs]


def named_values(texts: list[str]) -> dict[str, str]:
    """Return columns and values of texts such as ``accelerator=nvidia-h100-sxm-80gb``.

    Raises
    ------
    InputError
        If a text has another form, or names a column a second time.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, value = _pair("set", "COLUMN=VALUE", text)
        if name in values:
            raise InputError("set", f"must name each column once, got {name} twice")
        values[name] = value
    return values


def _pair(option: str, form: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InputError(option, f"must be {form}, got {text!r}")
    return name, value
