"""Files and texts of options: CSV rows in and out, models, configurations, rates, inventories."""

from __future__ import annotations

import csv
import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roofcast.data.errors import InputError, SchemaError, UnknownNameError, join_errors
from roofcast.serving.cli.arguments.options import read_amount
from roofcast.serving.cli.console import note
from roofcast.serving.csv_table import CsvTable, parse_table

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog

EXAMPLE_QUESTIONS: Final = """\
model,accelerator,n_accelerator,engine,n_input_token,n_output_token,concurrency,request_rate,statistic
meta-llama/Llama-3.1-8B,nvidia-a100-pcie-80gb,1,vllm,1024,256,16,,p50
meta-llama/Llama-3.1-8B,nvidia-l40s-48gb,1,vllm,1024,256,,0.5,p95
Qwen/Qwen3-32B,nvidia-h100-sxm-80gb,2,,512,128,32,,mean
"""
"""Questions that have answers: a closed loop, an open loop, and one without an engine."""

EXAMPLE_JOBS: Final = """\
model,accelerator,n_accelerator,method,n_token_per_sequence,n_global_batch_sequence
meta-llama/Llama-3.1-8B,nvidia-h100-sxm-80gb,8,full,4096,128
meta-llama/Llama-3.1-8B,nvidia-rtx-4090-24gb,1,qlora,2048,64
meta-llama/Llama-3.1-70B,nvidia-h100-sxm-80gb,64,pretrain,8192,512
"""
"""Training jobs that have answers."""

_INVENTORY: Final = re.compile(r"(\d{1,9}),(\d{1,9}),(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)


def read_references_table(path: Path) -> CsvTable:
    """Return the columns of references in a CSV file, of a measurement table too; raises as `read_table`."""
    from roofcast.data.measurements.schema import REFERENCE_METRICS

    table = read_table(path)
    return table.inputs(REFERENCE_METRICS) if "campaign" in table.header else table


def read_questions(path: Path) -> CsvTable:
    """Return the questions of a CSV file, suffixes of their numbers written out (``1k``); raises as `read_table`."""
    from roofcast.data.measurements.schema import INPUT_COLUMNS

    table = read_table(path)
    floats = {name for name, column in INPUT_COLUMNS.items() if column.kind == "float"}
    is_number = [name in floats for name in table.header]
    rows = [
        [str(read_amount(cell)) if number and cell.strip()[-1:].isalpha() else cell for cell, number in pairs]
        for pairs in (zip(row, is_number, strict=True) for row in table.rows)
    ]
    return CsvTable(table.header, rows, table.lines)


def read_table(path: Path) -> CsvTable:
    """Return the content of a CSV file. Raises `SchemaError` if the file cannot be read, or as of `parse_table`."""
    return parse_table(read_bytes(path), path.name)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file. Raises `SchemaError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SchemaError("", f"cannot be read: {error.strerror}", path.name) from error


@contextmanager
def writing(path: Path, option: str) -> Iterator[None]:
    """Name the option of a file or folder in the error if the block cannot write it.

    Raises `InputError` in place of `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise InputError(option, f"{path} cannot be written: {error.strerror or error}") from error


def write_table(header: Sequence[str], rows: Iterable[Sequence[object]], path: Path) -> None:
    """Write a CSV file; None becomes a blank cell. Raises `InputError` if the file cannot be written."""
    with writing(path, "out"), path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def parse_configs(texts: Iterable[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return names and configurations from texts such as ``my-14b=path/config.json``.

    Raises `InputError` if a text has another form, or its file cannot be read.
    """
    from roofcast.data.model_config.huggingface import read_config

    pairs = (_pair("model-config", "NAME=PATH such as my-14b=my-14b/config.json", text) for text in texts)
    return [(name, read_config(path)[1]) for name, path in pairs]


def parse_rates(texts: Iterable[str]) -> dict[str, Decimal]:
    """Return US dollars by currency from texts such as ``EUR=1.08``.

    Raises `InputError` if a text has another form, or a currency is given twice.
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


def parse_inventory(texts: Iterable[str]) -> list[dict[str, str | float]]:
    """Return the items of ``constraints.inventory`` from texts such as ``h100-sxm-80gb=16,8,1.2``.

    Raises `InputError` with every text of another form. The request model checks the numbers.

    Examples
    --------
    >>> parse_inventory(["h100-sxm-80gb=16,8,1.2"])
    [{'accelerator': 'h100-sxm-80gb', 'count': 16, 'n_per_node': 8, 'usd_per_h': 1.2}]
    """
    items: list[dict[str, str | float]] = []
    errors = []
    for text in texts:
        accelerator, _, value = text.partition("=")
        match = _INVENTORY.fullmatch(value)
        if not accelerator or match is None:
            form = "ACCELERATOR=COUNT,PER_NODE,USD_PER_H such as h100-sxm-80gb=16,8,1.2"
            errors.append(InputError("inventory", f"must be {form}, got {text!r}"))
            continue
        count, n_per_node, usd_per_h = match.groups()
        numbers = {"count": int(count), "n_per_node": int(n_per_node), "usd_per_h": float(usd_per_h)}
        items.append({"accelerator": accelerator, **numbers})
    if errors:
        raise join_errors(errors)
    return items


def _pair(option: str, form: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InputError(option, f"must be {form}, got {text!r}")
    return name, value


def read_model(model: str, catalog: Catalog) -> str | dict[str, Any]:
    """Return a model as requests take it: a name, or the name and the fields of a ``config.json``.

    A name of the catalogue has precedence over a file or folder of that name, unless it is written as a path: with a
    separator, or ending in ``.json``. Another name is looked up on the Hugging Face hub if it has the form
    ``owner/name`` and the hub's library is installed.

    Raises `InputError` if a file does not exist, cannot be read or is not a JSON object, or the hub has no such
    repository.
    """
    from roofcast.data.model_config.hub import is_hub_id

    choice = read_local_model(model, catalog.knows_model)
    if choice != model or not is_hub_id(model) or importlib.util.find_spec("huggingface_hub") is None:
        return choice
    try:
        catalog.model(model)
    except UnknownNameError as unknown:
        try:
            return _read_config(model)
        except InputError as error:
            raise InputError("model", f"{unknown.problem}; {error.problem}") from error
    return model


def read_local_model(model: str, is_known: Callable[[str], bool]) -> str | dict[str, Any]:
    """Return a name, or the name and the fields of a configuration at this path, as `read_model` chooses.

    `is_known`: whether a name is one of the catalogue that answers, called for the name of a file or folder only.
    Raises `InputError` as of `read_model_path`, or if an unknown name is that of a folder without a ``config.json``.
    """
    if config := read_model_path(model):
        return config
    if not _exists(model):
        return model
    has_config = not Path(model).is_dir() or Path(model, "config.json").exists()
    if is_known(model):
        if has_config:
            note(f"{model!r} is the model of the catalogue; write ./{model} for the file or folder of this name")
        return model
    if not has_config:
        raise InputError("model", f"no {model!r} is known, and the folder of this name has no config.json")
    return _read_config(model)


def read_model_path(model: str) -> dict[str, Any] | None:
    """Return the name and the fields of a configuration if a model is written as the path of one.

    Raises `InputError` if a file does not exist, cannot be read or is not a JSON object.
    """
    exists = _exists(model)
    if not exists and (model.startswith((".", "~", os.sep)) or model.endswith(".json")):
        raise InputError("model", f"no such file or folder: {model[:200]!r}")
    is_path = model.endswith(".json") or "/" in model or os.sep in model
    return _read_config(model) if exists and is_path else None


def read_row_models(table: CsvTable, source: str) -> tuple[CsvTable, list[dict[str, Any]]]:
    """Return a table with names in place of the paths of configurations in its column `model`, and these models.

    Raises `SchemaError` if a path has no configuration, or two configurations have one name; names the line.
    """
    if "model" not in table.header:
        return table, []
    column = table.header.index("model")
    names: dict[str, str] = {}
    models: dict[str, dict[str, Any]] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        cell = row[column].strip()
        if cell in names:
            continue
        try:
            model = read_model_path(cell)
        except InputError as error:
            raise SchemaError("model", error.problem, source, line) from error
        names[cell] = model["name"] if model else cell
        if model and models.setdefault(model["name"], model) != model:
            problem = (
                f"another configuration of the file has the name {model['name']!r}; give it another _name_or_path"
            )
            raise SchemaError("model", problem, source, line)
    rows = [[*row[:column], names[row[column].strip()], *row[column + 1 :]] for row in table.rows]
    return CsvTable(table.header, rows, table.lines), list(models.values())


def _exists(model: str) -> bool:
    return bool(model) and os.path.exists(model)  # noqa: PTH110  (a name that is too long for a path is none)


def _read_config(path: str) -> dict[str, Any]:
    from roofcast.data.model_config.huggingface import own_name, read_config

    name, config = read_config(path)
    if Path(path).exists() and not own_name(config):
        place = "folder" if Path(path).is_dir() or Path(path).name == "config.json" else "file"
        note(f"the config has no _name_or_path: the model is called {name!r}, after its {place}")
    return {"name": name, "config": dict(config)}
