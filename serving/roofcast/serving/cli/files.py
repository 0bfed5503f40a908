"""Files that the command line is given."""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.data.model_config.hub import is_hub_id
from roofcast.data.model_config.huggingface import own_name, read_config
from roofcast.serving.cli.console import note
from roofcast.serving.predict.references import read_references
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

EXAMPLE_QUESTIONS: Final = """\
model,accelerator,n_accelerator,engine,n_input_token,n_output_token,concurrency,request_rate,statistic
meta-llama/Llama-3.1-8B,nvidia-a100-pcie-80gb,1,vllm,1024,256,16,,p50
meta-llama/Llama-3.1-8B,nvidia-l40s-48gb,1,vllm,1024,256,,0.5,p95
Qwen/Qwen3-32B,nvidia-h100-sxm-80gb,2,,512,128,32,,mean
"""
"""Questions that can be answered, to start from: a closed loop, an open loop, and one that leaves the engine open."""

_STOCK: Final = re.compile(r"(\d{1,9}),(\d{1,9}),(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)


def read_questions(path: Path) -> pd.DataFrame:
    """Return a CSV of questions, cells as written; the index is the line of each.

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
    lines = pd.Index([line for line, _ in body], dtype="int64")
    return pd.DataFrame([row for _, row in body], lines, [name.strip() for name in header], dtype=object)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV by the names of their columns, as a request has them.

    Raises
    ------
    SchemaError
        As `read_questions`.
    """
    found = read_questions(path)
    return [dict(zip(map(str, found.columns), row, strict=True)) for row in found.to_numpy().tolist()]


def read_reference_file(path: Path, catalog: Catalog, predictor: RoofcastPredictor) -> CalibrationPoints:
    """Return the references of a CSV.

    Raises
    ------
    SchemaError
        If it is no CSV, or a row is no measurement that can be learnt from; names file and line.
    """
    rows = read_questions(path)
    return read_references(rows, catalog, predictor, path.name, rows.index.tolist())


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


def make_folder(folder: Path) -> None:
    """Make a folder to write to, and those above it.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("out", f"{folder} cannot be made: {error.strerror}") from error


def named_configs(texts: list[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return names and configurations of texts such as ``my-14b=path/config.json``.

    Raises
    ------
    InputError
        If a text has another form, or its file cannot be read.
    """
    pairs = (_pair("model-config", "NAME=PATH such as my-14b=my-14b/config.json", text) for text in texts)
    return [(name, read_config(path)[1]) for name, path in pairs]


def named_values(texts: list[str]) -> dict[str, str]:
    """Return columns and values of texts such as ``accelerator=nvidia-h100-sxm-80gb``.

    Raises
    ------
    InputError
        If a text has another form, or names a column a second time.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, value = _pair("set", "COLUMN=VALUE such as accelerator=nvidia-h100-sxm-80gb", text)
        if name in values:
            raise InputError("set", f"must name each column once, got {name} twice")
        values[name] = value
    return values


def named_rates(texts: list[str]) -> dict[str, Decimal]:
    """Return US dollars by currency of texts such as ``EUR=1.08``.

    Raises
    ------
    InputError
        If a text has another form, or names a currency a second time.
    """
    rates: dict[str, Decimal] = {}
    for text in texts:
        currency, amount = _pair("rate", "CURRENCY=USD such as EUR=1.08", text)
        key = currency.strip().upper()
        if not re.fullmatch(r"[A-Z]{3}=\d{1,9}(\.\d{1,9})?", f"{key}={amount}") or not Decimal(amount):
            raise InputError("rate", f"must be CURRENCY=USD such as EUR=1.08, got {text!r}")
        if key in rates:
            raise InputError("rate", f"must name each currency once, got {key} twice")
        rates[key] = Decimal(amount)
    return rates


def named_stocks(texts: list[str]) -> list[dict[str, str | float]]:
    """Return the inventory of texts such as ``h100-sxm-80gb=16,8,1.2``, as `constraints` of a request has it.

    Raises
    ------
    InputError
        If a text has another form; whether the numbers make sense is told where the request is read.

    Examples
    --------
    >>> named_stocks(["h100-sxm-80gb=16,8,1.2"])
    [{'accelerator': 'h100-sxm-80gb', 'count': 16, 'n_per_node': 8, 'usd_per_h': 1.2}]
    """
    stocks: list[dict[str, str | float]] = []
    form = "ACCELERATOR=COUNT,PER_NODE,USD_PER_H such as h100-sxm-80gb=16,8,1.2"
    for text in texts:
        accelerator, told = _pair("inventory", form, text)
        found = _STOCK.fullmatch(told)
        if found is None:
            raise InputError("inventory", f"must be {form}, got {text!r}")
        count, n_per_node, usd_per_h = found.groups()
        numbers = {"count": int(count), "n_per_node": int(n_per_node), "usd_per_h": float(usd_per_h)}
        stocks.append({"accelerator": accelerator, **numbers})
    return stocks


def named_or_read(model: str, catalog: Catalog) -> str | dict[str, Any]:
    """Return a catalogue name as it is, and the name and fields of the config of a path or a repository of the hub.

    A name of the catalogue wins over a file or folder of that name, unless it is written as a path: with a separator,
    or ending in ``.json``. The hub is asked only for what looks like its names and is no other, and only if its
    library is installed.

    Raises
    ------
    InputError
        If a file is not there, cannot be read or is no JSON object, or the hub has none such.
    """
    is_there = bool(model) and os.path.exists(model)  # noqa: PTH110  (a name too long for a path is none)
    if not is_there and (model.startswith((".", "~", os.sep)) or model.endswith(".json")):
        raise InputError("model", f"no such file or folder: {model[:200]!r}")
    if is_there and (model.endswith(".json") or "/" in model or os.sep in model):
        return _read(model)
    try:
        catalog.model(model)
    except UnknownNameError as unknown:
        if is_there:
            return _read(model)
        if not is_hub_id(model) or importlib.util.find_spec("huggingface_hub") is None:
            return model
        try:
            return _read(model)
        except InputError as error:
            raise InputError("model", f"{unknown.problem}; {error.problem}") from error
    return model


def _read(path: str) -> dict[str, Any]:
    name, config = read_config(path)
    if Path(path).exists() and not own_name(config):
        place = "folder" if Path(path).is_dir() or Path(path).name == "config.json" else "file"
        note(f"the config has no _name_or_path: the model is called {name!r}, after its {place}")
    return {"name": name, "config": dict(config)}


def _pair(option: str, form: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InputError(option, f"must be {form}, got {text!r}")
    return name, value
