"""Rows of training jobs: parsed cells, resolved names, and the first problem of each row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError, join_errors
from roofcast.data.measurements.column_names import column_cure
from roofcast.data.measurements.columns import Column
from roofcast.data.measurements.training_schema import (
    ADAPTER_TARGETS,
    TRAINING_COLUMNS,
    TRAINING_CONFIG_COLUMNS,
    TRAINING_OUTCOME_COLUMNS,
    TRAINING_WHOLE_COLUMNS,
)
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.serving.problem import Problem
from roofcast.serving.training_jobs.conventions import default_framework

MAX_ACCELERATOR: Final = 65_536
MAX_TOKEN: Final = 10_000_000
"""Tokens of a sequence, at most."""

JOB_COLUMNS: Final = {
    **TRAINING_CONFIG_COLUMNS,
    "n_accelerator": Column("float", low=1.0, high=MAX_ACCELERATOR),
    "n_token_per_sequence": Column("float", is_nullable=True, low=1.0, high=MAX_TOKEN),
}
"""Input columns: those of a training measurement without outcomes."""

JOB_DEFAULTS: Final[Mapping[str, Any]] = {"n_accelerator": 1.0, "method": "pretrain"}
NOT_MULTIPLIED: Final = ("fp32", "int8", "int4")
"""Precisions of checkpoints and states in which training does not multiply."""

SERVER_PROCESSOR: Final = "CPU socket"
"""Form factor of server processors in the catalogue."""

REQUIRED_COLUMNS: Final = ("model", "accelerator")


def parse_jobs(
    rows: Sequence[Mapping[str, Any]], catalog: Catalog, columns: Mapping[str, Column] = JOB_COLUMNS
) -> tuple[list[dict[str, Any]], list[Problem | None]]:
    """Return rows with catalogue ids, numbers as floats and blanks left out, and the first problem of each row.

    Columns of outcomes and of the context of a measurement are not read.

    Raises
    ------
    SchemaError
        If a column is unknown.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    if unknown := [_unknown_column(name) for name in names if name not in columns]:
        raise join_errors(unknown)
    jobs: list[dict[str, Any]] = []
    problems: list[Problem | None] = []
    for row in rows:
        job: dict[str, Any] = {}
        try:
            job = _parse_row(row, columns)
            _resolve(job, catalog)
            _check_split(job, catalog.models[job["model"]])
        except InputError as error:
            problems.append(Problem.from_error(error))
        else:
            problems.append(None)
        jobs.append(job)
    return jobs, problems


def job_table(jobs: Iterable[Mapping[str, Any]], columns: Mapping[str, Column] = JOB_COLUMNS) -> pd.DataFrame:
    """Return parsed jobs as a table: every column, NaN and empty texts where blank."""
    table = pd.DataFrame(list(jobs), columns=list(columns), dtype=object)
    for name, column in columns.items():
        if column.kind == "float":
            table[name] = pd.to_numeric(table[name]).astype(float)
        else:
            table[name] = table[name].where(table[name].notna(), "")
    return table


def _unknown_column(name: str) -> SchemaError:
    if name in TRAINING_OUTCOME_COLUMNS:
        return SchemaError(name, "is a result, not an input column; leave it out")
    if name in TRAINING_COLUMNS:
        return SchemaError(name, "describes a measurement, not a job; leave it out")
    return SchemaError(name, f"is not an input column; {column_cure(name, JOB_COLUMNS)}")


def _parse_row(row: Mapping[str, Any], columns: Mapping[str, Column]) -> dict[str, Any]:
    job = dict(JOB_DEFAULTS)
    for name, cell in row.items():
        text = "" if pd.isna(cell) else str(cell).strip()
        if text:
            column = columns[name]
            job[name] = _number(name, text, column) if column.kind == "float" else _text(name, text, column)
    for name in REQUIRED_COLUMNS:
        if name not in job:
            raise InputError(name, "must be given")
    return job


def _number(name: str, text: str, column: Column) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    kind = "a whole number" if name in TRAINING_WHOLE_COLUMNS else "a number"
    is_valid = column.low <= value <= column.high and (name not in TRAINING_WHOLE_COLUMNS or value.is_integer())
    if not is_valid:
        raise InputError(name, f"must be {kind} from {column.low:g} to {column.high:g}, got {text[:40]!r}")
    return value


def _text(name: str, text: str, column: Column) -> str:
    choices = tuple(filter(None, column.choices))
    if choices and text not in choices:
        raise InputError(name, f"must be one of {', '.join(choices)}, got {text[:40]!r}")
    if name == "adapter_targets" and not set(text.split()) <= set(ADAPTER_TARGETS):
        raise InputError(name, f"must be some of {' '.join(ADAPTER_TARGETS)}, got {text[:40]!r}")
    if len(text) > 200:
        raise InputError(name, "must be at most 200 characters long")
    return text


def _resolve(job: dict[str, Any], catalog: Catalog) -> None:
    """Replace names by catalogue ids, and choose the framework that the settings imply."""
    job["model"] = catalog.model(job["model"]).id
    accelerator = catalog.accelerator(job["accelerator"])
    if accelerator.form_factor == SERVER_PROCESSOR:
        raise InputError("accelerator", f"{accelerator.id} is a server processor; training on these is not predicted")
    job["accelerator"] = accelerator.id
    precision = job.get("compute_precision", "")
    if precision and not multiplies_in(accelerator, precision):
        usual = ", ".join(name for name in accelerator.peak_flop_per_s if multiplies_in(accelerator, name))
        raise InputError("compute_precision", f"{accelerator.id} trains in {usual or 'none'}, got {precision!r}")
    if "framework" not in job:
        job["framework"] = default_framework(job, accelerator)


def multiplies_in(accelerator: AcceleratorSpec, precision: str) -> bool:
    """Return whether an accelerator trains with products in a precision."""
    return precision in accelerator.peak_flop_per_s and precision not in NOT_MULTIPLIED


def _check_split(job: Mapping[str, Any], model: ModelSpec) -> None:
    """Raise if parallel sizes contradict the accelerators or the model."""
    n, n_node = job["n_accelerator"], job.get("n_node", 1.0)
    if n_node > n:
        raise InputError("n_node", f"must not exceed n_accelerator, which is {n:g}; got {n_node:g}")
    split = [job.get(name, 1.0) for name in ("tp", "pp", "cp")]
    product = math.prod(split)
    if n % product:
        raise InputError("tp", f"tp x pp x cp must divide n_accelerator, which is {n:g}; got {product:g}")
    if "dp" in job and (job["dp"] > n / product or n % job["dp"]):
        raise InputError(
            "dp", f"must divide the {n / product:g} accelerators that tp, pp and cp leave, got {job['dp']:g}"
        )
    if model.n_head % split[0]:
        raise InputError("tp", f"must divide the model's {model.n_head} attention heads, got {split[0]:g}")
    if split[1] > model.n_layer:
        raise InputError("pp", f"must not exceed the model's {model.n_layer} layers, got {split[1]:g}")
    ep = job.get("ep", 1.0)
    if ep > 1 and (not model.n_expert or model.n_expert % ep):
        of = f"divide the model's {model.n_expert} experts" if model.n_expert else "be 1: the model has no experts"
        raise InputError("ep", f"must {of}, got {ep:g}")
