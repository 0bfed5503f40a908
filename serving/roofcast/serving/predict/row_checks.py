"""Checks of parsed rows against the catalogue: names, splits, precisions, context lengths."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.measurements.cells import ColumnArray, Finding, Table, object_column, strip_cells, with_short_names
from roofcast.data.precision_names import format_engine, format_name, parse_weights, split_copy_name
from roofcast.data.specs import ModelSpec
from roofcast.data.units import BYTE_PER_GB
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.assumptions import ASSUMED_ENGINE, ASSUMED_PRECISION
from roofcast.features.descriptors.precisions import served_precision
from roofcast.features.descriptors.prediction_input import factorize
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import QueryTable
from roofcast.features.validity.engine_choice import (
    default_engine,
    default_precision,
    is_engine,
    unknown_engine_error,
)
from roofcast.features.validity.engine_support import WIDE, Stack, support_error, support_remark
from roofcast.features.validity.model_limits import (
    assumed_split_error,
    block_error,
    context_error,
    context_limit,
    reading_remark,
    split_error,
)
from roofcast.serving.predict.question_rows import Problem, add_findings, add_problem, parse_rows

MAX_SUGGESTION: Final = 20
"""Most unknown names of a table that get suggestions: each look-up takes milliseconds."""

SUPPORT_COLUMNS: Final = ("engine", "model", "accelerator", "weight_precision", "kv_precision", "engine_version")
"""Columns that decide whether a row runs."""

WHOLE: Final = frozenset({*WIDE, "tf32"})
"""Precisions of weights that are not quantised."""

_Key = tuple[str, ...]

OWN_ENGINE: Final = "For an engine of your own, leave it blank or give 'other'"

NO_MORE_SUGGESTIONS: Final = f"similar names are suggested for the first {MAX_SUGGESTION} unknown names"


def check_table(
    table: pd.DataFrame, catalog: Catalog, engines: Collection[str] | None = None
) -> tuple[pd.DataFrame, list[Problem | None]]:
    """Return `check_rows` of a table, as a table.

    Raises `SchemaError` if a column is unknown or given twice, or `model` or `accelerator` is missing.
    """
    columns, problems = check_rows(table_columns(table), catalog, engines)
    return pd.DataFrame(columns), problems


def table_columns(table: pd.DataFrame) -> dict[str, ColumnArray]:
    """Return the columns of a table as arrays. Raises `SchemaError` if a column is given twice."""
    for name in table.columns[table.columns.duplicated()]:
        raise SchemaError(str(name), "is given twice as a column; keep one")
    return {str(name): table[name].to_numpy() for name in table}


def check_rows(
    columns: Mapping[str, ColumnArray], catalog: Catalog, engines: Collection[str] | None = None
) -> tuple[Table, list[Problem | None]]:
    """Return typed columns with catalogue ids, `ASSUMED_LOAD` and `ASSUMED`, and the problems of each row.

    `engines`: engines of the training data, known besides those of the support table; None admits any name, and
    stacks that the table refuses: rows that were measured. Raises `SchemaError` if a column is unknown, or `model` or
    `accelerator` is missing.
    """
    table, problems = parse_rows(columns)
    _resolve_names(table, problems, catalog)
    names = _weight_names(table, with_short_names(columns)[0], catalog)
    _fill_engines(table, names, catalog if engines is not None else None)
    _check_splits(table, problems, catalog, columns["model"] if engines is not None else None)
    _check_engines(table, problems, catalog, engines)
    _check_formats(table, names, problems, catalog if engines is not None else None)
    _check_weight_bits(table, problems, catalog)
    _check_contexts(table, problems, catalog)
    return table, problems


def _resolve_names(table: Table, problems: list[Problem | None], catalog: Catalog) -> None:
    finders = (
        ("model", catalog.model, catalog.knows_model),
        ("accelerator", catalog.accelerator, catalog.knows_accelerator),
    )
    for column, find, knows in finders:
        names = table[column]
        specs: dict[str, Any] = {}
        errors: dict[str, Problem] = {}
        for name in dict.fromkeys(names.tolist()):
            if len(errors) >= MAX_SUGGESTION and isinstance(name, str) and not knows(name):
                errors[name] = Problem("unknown_name", column, f"no {name!r} is known; {NO_MORE_SUGGESTIONS}")
                continue
            try:
                specs[name] = find(name)
            except InputError as error:
                errors[name] = Problem.from_error(error)
        for i, name in enumerate(names if errors else ()):
            add_problem(problems, i, errors.get(name))
        if column == "model":
            table |= fill_copy_format(table, names, specs, catalog)
        ids = {name: spec.id for name, spec in specs.items()}
        table[column] = object_column(len(names), [ids.get(name) for name in names])


def fill_copy_format(
    table: Mapping[str, ColumnArray], names: ColumnArray, specs: Mapping[str, ModelSpec], catalog: Catalog
) -> dict[str, ColumnArray]:
    """Return weight precisions and bits; blank ones take those of the quantised copy that the model's name means.

    `names`: model name of each row, as given. `specs`: specs by name; that of a quantised copy differs from the
    catalogue's in its precision.
    """
    precision = table["weight_precision"]
    copies = {
        name: (spec.weight_precision, parse_weights(split_copy_name(name).quantisation).bit)
        for name, spec in specs.items()
        if spec.weight_precision != catalog.models[spec.id].weight_precision
    }
    if not copies:
        return {}
    own, bit = zip(*(copies.get(name, ("", math.nan)) for name in names.tolist()), strict=True)
    is_blank = precision == ""
    filled = {"weight_precision": np.where(is_blank, object_column(len(names), [*own]), precision)}
    stated = table.get("weight_bit", np.nan)
    bits = np.where(is_blank & np.isnan(stated), bit, stated)
    return filled if np.isnan(bits).all() else {**filled, "weight_bit": bits}


def _weight_names(table: Table, columns: Mapping[str, ColumnArray], catalog: Catalog) -> list[str]:
    names = strip_cells(columns["model"])
    precisions = strip_cells(columns.get("weight_precision", object_column(len(names), "")))
    keys = [*zip(names, precisions, table["model"], strict=True)]
    formats = {
        (name, precision, id_): precision
        or split_copy_name(name).quantisation
        or (catalog.models[id_].weight_format if id_ else "")
        for name, precision, id_ in dict.fromkeys(keys)
    }
    return [*map(formats.__getitem__, keys)]


def _fill_engines(table: Table, names: list[str], catalog: Catalog | None) -> None:
    """Fill blank engines by `default_engine`; none without a catalogue."""
    is_blank = table["engine"] == ""
    keys = zip(names, table["accelerator"], table["model"], strict=True)
    found: dict[_Key, str] = {}
    engines = table["engine"].copy()
    for i, key in enumerate(keys if catalog and is_blank.any() else ()):
        if not is_blank[i] or None in key:
            continue
        if catalog and key not in found:
            name, accelerator, model = key
            found[key] = format_engine(name) or default_engine(
                catalog.models[model], catalog.accelerators[accelerator]
            )
        engines[i] = found[key]
    table[ASSUMED_ENGINE] = np.asarray(engines != table["engine"], dtype=bool)
    table["engine"] = engines


def _check_splits(table: Table, problems: list[Problem | None], catalog: Catalog, names: ColumnArray | None) -> None:
    """Check degrees of parallelism; those of FP8 repositories by the `names` of models as given."""
    tp, ep = (np.where(np.isnan(table[name]), 1, table[name]) for name in ("tp", "ep"))
    for i in np.flatnonzero((tp > 1) | (ep > 1)).tolist():
        if problems[i] is None:
            split = catalog.models[table["model"][i]], tp[i], ep[i], table["engine"][i]
            error = split_error(*split)
            if not error and names is not None and table["weight_precision"][i] in ("", "fp8"):
                error = block_error(*split) if catalog.model(names[i]).weight_precision == "fp8" else None
            problems[i] = Problem.from_error(error) if error else None


def _check_engines(
    table: Table, problems: list[Problem | None], catalog: Catalog, engines: Collection[str] | None
) -> None:
    unknown: dict[str, Problem] = {}
    errors: dict[_Key, Problem | None] = {}
    filled: dict[_Key, str] = {}
    precisions = table["weight_precision"].copy()
    for i, key in enumerate(_stack_keys(table)):
        engine = key[0]
        if not engine or engines is None:
            continue
        if not is_engine(engine, engines):
            unknown[engine] = unknown.get(engine) or _unknown_engine(engine, engines, len(unknown))
            add_problem(problems, i, unknown[engine])
            continue
        if None in key:
            continue
        if key not in errors:
            stack = _stack(key, catalog)
            error = support_error(stack, catalog.accelerators.values())
            errors[key] = Problem("does_not_run", error.field, error.problem) if error else None
            filled[key] = default_precision(stack) if not stack.precision and not error else stack.precision
        add_problem(problems, i, errors[key], SUPPORT_COLUMNS)
        own = served_precision(catalog.models[key[1]].weight_precision)
        precisions[i] = "" if filled[key] == own and not key[3] else filled[key]
    table[ASSUMED_PRECISION] = np.asarray(precisions != table["weight_precision"], dtype=bool)
    table["weight_precision"] = precisions


def _check_formats(table: Table, names: list[str], problems: list[Problem | None], catalog: Catalog | None) -> None:
    formats = {name: format_name(name) for name in dict.fromkeys(names)}
    errors: dict[_Key, Problem | None] = {}
    for i, key in enumerate(_stack_keys(table) if catalog and any(formats.values()) else ()):
        if not (kind := formats[names[i]]) or not key[0] or None in key or not catalog:
            continue
        stated = (*key[:3], kind, *key[4:])
        if stated not in errors:
            error = support_error(_stack(stated, catalog), catalog.accelerators.values())
            errors[stated] = Problem("does_not_run", error.field, error.problem) if error else None
        add_problem(problems, i, errors[stated], SUPPORT_COLUMNS)


def _check_weight_bits(table: Table, problems: list[Problem | None], catalog: Catalog) -> None:
    stated = table.get("weight_bit", np.full(len(problems), np.nan))
    for i in np.flatnonzero(~np.isnan(stated)).tolist():
        model = table["model"][i]
        precision = table["weight_precision"][i] or (
            model and served_precision(catalog.models[model].weight_precision)
        )
        if precision in WHOLE:
            text = (
                f"belongs to weights of eight bits or fewer, and these are {precision}; give their weight_precision"
            )
            add_problem(problems, i, Problem("invalid", "weight_bit", text), ("weight_precision", "model"))


def support_remarks(table: Mapping[str, ColumnArray], catalog: Catalog) -> list[str]:
    """Return, for each parsed row, what is unknown: whether its engine runs it, and fields of its config."""
    remarks: dict[_Key, str] = {}
    keys = [*_stack_keys(table)]
    for key in keys:
        if key not in remarks:
            known = (support_remark(_stack(key, catalog)) if key[0] else "", reading_remark(catalog.models[key[1]]))
            remarks[key] = "; ".join(filter(None, known))
    return [remarks[key] for key in keys]


def _stack_keys(table: Mapping[str, ColumnArray]) -> Iterator[_Key]:
    blank = object_column(len(table["model"]), "")
    return zip(*(table.get(name, blank) for name in SUPPORT_COLUMNS), strict=True)


def _stack(key: _Key, catalog: Catalog) -> Stack:
    engine, model, accelerator, precision, kv_precision, version = key
    part, measured = catalog.accelerators[accelerator], catalog.measured
    return Stack(engine, part, precision, catalog.models[model], version, kv_precision, measured)


def _unknown_engine(engine: str, engines: Collection[str], n_before: int) -> Problem:
    problem = Problem("unknown_name", "engine", f"no {engine[:40]!r} is known; {NO_MORE_SUGGESTIONS}")
    if n_before < MAX_SUGGESTION:
        problem = Problem.from_error(unknown_engine_error(engine, engines))
    end = "" if problem.message.endswith("?") else "."
    return problem._replace(message=f"{problem.message}{end} {OWN_ENGINE}")


def _check_contexts(table: Table, problems: list[Problem | None], catalog: Catalog) -> None:
    n_input, n_output = table["n_input_token"], table["n_output_token"]
    index, ids = factorize(table["model"])
    limit = np.array([context_limit(catalog.models[str(name)]) if name else math.inf for name in ids])[index]
    is_configured = np.zeros(len(problems), dtype=bool)
    if "max_context_token" in table:
        configured = table["max_context_token"]
        is_configured = ~np.isnan(configured)
        message = lambda i: f"is less than the {n_input[i] + n_output[i]:g} tokens of a request"  # noqa: E731
        is_long = n_input + n_output > configured
        add_findings(problems, [Finding(is_long, "max_context_token", message, status="out_of_range")])
    for i in np.flatnonzero((n_input + n_output > limit) & ~is_configured).tolist():
        error = context_error(catalog.models[table["model"][i]], n_input[i], n_output[i])
        if error:
            add_problem(problems, i, Problem("out_of_range", error.field, error.problem))


def assumed_split_problems(
    queries: QueryTable, table: Mapping[str, ColumnArray] | pd.DataFrame, catalog: Catalog
) -> list[Problem | None]:
    """Return, for each row with a blank `tp`, the problem if the model does not admit the split assumed for it."""
    tp = np.asarray(queries["config.tp"])
    problems: list[Problem | None] = [None] * len(tp)
    is_blank = np.isnan(np.asarray(table["tp"], dtype=float))
    for i in np.flatnonzero(is_blank & (tp > 1)).tolist():
        model, engine, n = catalog.models[table["model"][i]], table["engine"][i], table["n_accelerator"][i]
        error = assumed_split_error(model, tp[i], n, engine)
        problems[i] = Problem.from_error(error) if error else None
    return problems


OFFLOAD: Final = {
    "llama.cpp": "a lower n_gpu_layer", "vllm": "cpu_offload_gib", "sglang": "cpu_offload_gib",
}  # fmt: skip
"""Settings of engines that keep weights in the memory of the host."""


def capacity_problems(queries: QueryTable, estimate: Estimate) -> list[Problem | None]:
    """Return, for each row, the problem if it does not fit into memory."""
    memory, engine = estimate.memory, np.asarray(queries["config.engine"], dtype=int)
    n_expert = np.asarray(queries["model.n_expert"], dtype=int)
    is_weight = memory.needed_byte - memory.weight_byte <= memory.usable_byte
    problems: list[Problem | None] = [None] * len(memory.fits)
    for i in np.flatnonzero(~memory.fits).tolist():
        needed, usable = memory.needed_byte[i] / BYTE_PER_GB, memory.usable_byte[i] / BYTE_PER_GB
        message = f"weights and one request need {needed:.1f} GB; {usable:.1f} GB are usable; use more accelerators"
        if is_weight[i] and (setting := OFFLOAD.get(ENGINES[engine[i]])):
            message += f", or keep weights in the memory of the host, which takes longer: {setting}"
            message += ", or n_cpu_moe" if setting == OFFLOAD["llama.cpp"] and n_expert[i] else ""
        problems[i] = Problem("does_not_fit", "n_accelerator", message)
    return problems
