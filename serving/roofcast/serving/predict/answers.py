"""Bulk prediction: rows of questions in, rows of answers out, each with a status of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, RoofcastError
from roofcast.data.specs import ModelSpec
from roofcast.data.units import BYTE_PER_GB
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.descriptors.prediction_input import Cells, distinct
from roofcast.features.engine.estimate import Estimate
from roofcast.features.validity.checks import FLAGS, find_flags
from roofcast.features.validity.context import context_error, context_limit
from roofcast.features.validity.engine_support import precision_error
from roofcast.features.validity.splits import assumed_split_error, split_error
from roofcast.serving.predict.extrapolation import outside_columns
from roofcast.serving.predict.row_parser import ASSUMED_LOAD, Problem, Table, check_columns, filled, note, parsed
from roofcast.training.learner.conditioning import narrowed
from roofcast.training.learner.predictor import Prediction, References
from roofcast.training.lifecycle.bundle import ModelBundle

ANSWER_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")
ANSWER_COLUMNS: Final = (
    *(name for metric in ANSWER_METRICS for name in (metric, f"{metric}_lo", f"{metric}_hi")),
    "status",
    "reason",
    "outside",
)
UNCALIBRATED: Final = "_uncalibrated"
UNCALIBRATED_COLUMNS: Final = tuple(
    f"{metric}{UNCALIBRATED}{end}" for metric in ANSWER_METRICS for end in ("", "_lo", "_hi")
)
"""What the answers are without the reference measurements; they follow `ANSWER_COLUMNS` where there are some."""

STATUSES: Final = ("ok", "invalid", "unknown_name", "does_not_fit", "out_of_range")

LOAD_REMARK: Final = "concurrency and request_rate are blank: one request in flight is assumed"


def answer(
    questions: pd.DataFrame,
    bundle: ModelBundle,
    catalog: Catalog,
    level: float = 0.8,
    references: References | None = None,
) -> pd.DataFrame:
    """Return the questions with their answers: same columns, same rows, same order, then `ANSWER_COLUMNS`.

    A bad row gets a status and a reason; the others get their answers. With reference measurements,
    `UNCALIBRATED_COLUMNS` follow.

    Parameters
    ----------
    questions
        Columns of `ASKED_COLUMNS`, blank where unknown; model and accelerator by any name the catalogue knows.
        A blank `n_accelerator` is one, a blank `statistic` the mean, a blank load a single request at a time, of
        which the reason tells; the rest is filled as `roofcast.features.descriptors.descriptor_table.describe` says.
    level
        Probability that an unseen LLM's measurement lies between ``_lo`` and ``_hi``.
    references
        Measurements of the model in question, or of the user's own stack.

    Raises
    ------
    SchemaError
        If a column is unknown or `model` or `accelerator` is missing.
    OutOfRangeError
        If `level` is more than the measurements can promise.
    """
    check_columns([*questions.columns])
    columns = {str(name): questions[name].to_numpy() for name in questions}
    answers = pd.DataFrame(answer_columns(columns, bundle, catalog, level, references))
    return pd.concat([questions.reset_index(drop=True), answers], axis=1)


def answer_columns(
    questions: Mapping[str, Cells],
    bundle: ModelBundle,
    catalog: Catalog,
    level: float = 0.8,
    references: References | None = None,
) -> dict[str, Cells]:
    """Return the answers alone, as `answer` does, of questions whose columns are given as arrays; both by name."""
    table, problems = _checked(questions, catalog)
    n_row = len(problems)
    answers: dict[str, Cells] = {name: np.full(n_row, np.nan) for name in ANSWER_COLUMNS[:-3]}
    answers |= {"status": filled(n_row, "ok"), "reason": filled(n_row, ""), "outside": np.zeros(n_row, dtype=bool)}
    answers |= {name: np.full(n_row, np.nan) for name in (UNCALIBRATED_COLUMNS if references else ())}
    rows = np.array([i for i, problem in enumerate(problems) if problem is None], dtype=np.intp)
    if len(rows):
        _predict(table, rows, answers, problems, _Given(bundle, catalog, level, references))
    for i, problem in enumerate(problems):
        if problem is not None:
            answers["status"][i], answers["reason"][i] = problem
    return answers


def checked(questions: pd.DataFrame, catalog: Catalog) -> tuple[pd.DataFrame, list[Problem | None]]:
    """Return the questions typed, with the catalogue's ids and `ASSUMED_LOAD`, and per row why it cannot be answered.

    Raises
    ------
    SchemaError
        If a column is unknown or `model` or `accelerator` is missing.
    """
    check_columns([*questions.columns])
    table, problems = _checked({str(name): questions[name].to_numpy() for name in questions}, catalog)
    return pd.DataFrame(table), problems


def _checked(questions: Mapping[str, Cells], catalog: Catalog) -> tuple[Table, list[Problem | None]]:
    table, problems = parsed(questions)
    _resolve(table, problems, catalog)
    _check_model_splits(table, problems, catalog)
    _check_precisions(table, problems, catalog)
    _check_contexts(table, problems, catalog)
    return table, problems


def _resolve(table: Table, problems: list[Problem | None], catalog: Catalog) -> None:
    for column, find in (("model", catalog.model), ("accelerator", catalog.accelerator)):
        names = table[column]
        specs: dict[str, Any] = {}
        failures: dict[str, str] = {}
        for name in dict.fromkeys(names.tolist()):
            try:
                specs[name] = find(name)
            except RoofcastError as error:
                failures[name] = str(error)
        if failures:
            failed = np.array([name in failures for name in names], dtype=bool)
            note(problems, failed, lambda i, names=names, failures=failures: failures[names[i]], "unknown_name")  # type: ignore[misc]
        copies = _copies(specs, catalog) if column == "model" else {}
        if copies:
            own = [copies.get(name, "") for name in names]
            table["weight_precision"] = np.where(
                table["weight_precision"] == "", filled(len(names), own), table["weight_precision"]
            )
        ids = {name: spec.id for name, spec in specs.items()}
        table[column] = filled(len(names), [ids.get(name) for name in names])


def with_own_precision(
    precision: pd.Series, names: pd.Series, specs: Mapping[str, ModelSpec], catalog: Catalog
) -> pd.Series:
    """Return the precisions, those left blank filled where the model's name is that of a quantised copy.

    Parameters
    ----------
    precision, names
        Of each row, as given.
    specs
        Name to what the catalogue knows by it.
    catalog
        Which knows the originals.
    """
    copies = _copies(specs, catalog)
    return precision.where(precision != "", names.map(lambda name: copies.get(name, "")).astype(object))


def _copies(specs: Mapping[str, ModelSpec], catalog: Catalog) -> dict[str, str]:
    """Return the names that stand for quantised copies, with their precision."""
    return {
        name: spec.weight_precision
        for name, spec in specs.items()
        if spec.weight_precision != catalog.models[spec.id].weight_precision
    }


def _check_model_splits(table: Table, problems: list[Problem | None], catalog: Catalog) -> None:
    tp, ep = (np.where(np.isnan(table[name]), 1, table[name]) for name in ("tp", "ep"))
    for i in np.flatnonzero((tp > 1) | (ep > 1)).tolist():
        if problems[i] is None:
            error = split_error(catalog.models[table["model"][i]], tp[i], ep[i], table["engine"][i])
            problems[i] = ("invalid", str(error)) if error else None


def _check_precisions(table: Table, problems: list[Problem | None], catalog: Catalog) -> None:
    """Note weights that were asked for in a precision which the engine does not serve on the accelerator."""
    errors: dict[tuple[str, str, str], InputError | None] = {}
    asked = zip(table["engine"], table["weight_precision"], table["accelerator"], strict=True)
    for i, (engine, precision, accelerator) in enumerate(asked):
        if not engine or not precision or problems[i] is not None:
            continue
        key = engine, precision, accelerator
        if key not in errors:
            errors[key] = precision_error(engine, precision, catalog.accelerators[accelerator])
        if errors[key]:
            problems[i] = "invalid", str(errors[key])


def _check_contexts(table: Table, problems: list[Problem | None], catalog: Catalog) -> None:
    model, ids = distinct(table["model"])
    limit = np.array([context_limit(catalog.models[str(name)]) if name else math.inf for name in ids])[model]
    note(
        problems,
        table["n_input_token"] + table["n_output_token"] > limit,
        lambda i: str(
            context_error(catalog.models[table["model"][i]], table["n_input_token"][i], table["n_output_token"][i])
        ),
        "out_of_range",
    )


@dataclass(frozen=True, slots=True)
class _Given:
    """What all rows of one call share."""

    bundle: ModelBundle
    catalog: Catalog
    level: float
    references: References | None


def _predict(
    table: Table, rows: npt.NDArray[np.intp], answers: Table, problems: list[Problem | None], given: _Given
) -> None:
    """Answer some rows of a table, and tell which of them have no answer."""
    bundle, catalog = given.bundle, given.catalog
    some = table if len(rows) == len(problems) else {name: cells[rows] for name, cells in table.items()}
    descriptors = describe(some, catalog.models, catalog.accelerators)
    predictor = narrowed(bundle.predictor, ANSWER_METRICS)
    prediction = predictor.predict_interval(descriptors, given.level, given.references)
    _fill(answers, rows, prediction)
    if given.references:
        _fill(answers, rows, predictor.predict_interval(descriptors, given.level), UNCALIBRATED)
    beyond = outside_columns(prediction, some, bundle, catalog.accelerators)
    answers["outside"][rows] = [bool(columns) for columns in beyond]
    answers["reason"][rows] = remarks(descriptors, bundle, some[ASSUMED_LOAD])
    failed = []
    splits = assumed_split_problems(descriptors, some, catalog)
    for i, split, whole in zip(rows.tolist(), splits, unanswerable(prediction.estimate), strict=True):
        problem = split or whole
        if problem is not None:
            problems[i] = problem
            failed.append(i)
    for name in answers.keys() - set(ANSWER_COLUMNS[-3:]):
        answers[name][failed] = np.nan


def _fill(answers: Table, rows: npt.NDArray[np.intp], prediction: Prediction, kind: str = "") -> None:
    for end, part in (("", prediction.value), ("_lo", prediction.low), ("_hi", prediction.high)):
        for metric, values in zip(part.columns, part.to_numpy().T, strict=True):
            answers[f"{metric}{kind}{end}"][rows] = values


def remarks(descriptors: pd.DataFrame, bundle: ModelBundle, is_load_assumed: npt.NDArray[np.bool_]) -> list[str]:
    """Return what is doubtful about each question although it has an answer; empty if nothing is."""
    flags = find_flags(descriptors, bundle.predictor.coefficients_)
    texts = [LOAD_REMARK, *(FLAGS[str(name)] for name in flags)]
    holds = np.column_stack([is_load_assumed, flags.to_numpy(dtype=bool)])
    found = [""] * len(holds)
    for i in np.flatnonzero(holds.any(axis=1)).tolist():
        found[i] = "; ".join(itertools.compress(texts, holds[i].tolist()))
    return found


def assumed_split_problems(
    descriptors: pd.DataFrame, table: Mapping[str, Cells] | pd.DataFrame, catalog: Catalog
) -> list[Problem | None]:
    """Return per question whether a blank `tp` was taken for one that the model does not admit, and for which."""
    tp = descriptors["config.tp"].to_numpy()
    problems: list[Problem | None] = [None] * len(tp)
    is_blank = np.isnan(np.asarray(table["tp"], dtype=float))
    for i in np.flatnonzero(is_blank & (tp > 1)).tolist():
        model, engine, n = catalog.models[table["model"][i]], table["engine"][i], table["n_accelerator"][i]
        error = assumed_split_error(model, tp[i], n, engine)
        problems[i] = ("invalid", str(error)) if error else None
    return problems


def unanswerable(estimate: Estimate) -> list[Problem | None]:
    """Return per question why it has no answer: it does not fit, or asks more than one replica can serve."""
    memory = estimate.memory
    fits = memory.fits
    problems: list[Problem | None] = [None] * len(fits)
    for i in np.flatnonzero(estimate.is_saturated).tolist():
        problems[i] = ("out_of_range", "request_rate: is more than one replica can serve; use more replicas")
    for i in np.flatnonzero(~fits).tolist():
        needed, usable = memory.needed_byte[i] / BYTE_PER_GB, memory.usable_byte[i] / BYTE_PER_GB
        problems[i] = ("does_not_fit", f"weights and one request need {needed:.1f} GB of {usable:.1f} GB usable")
    return problems


def require_answer(answers: pd.DataFrame) -> None:
    """Raise if no row was answered.

    Raises
    ------
    InputError
        With the first row's reason.
    """
    if answers.empty:
        raise InputError("rows", "there is none to answer")
    if not (answers["status"] == "ok").any():
        raise InputError("rows", f"none could be answered; the first: {answers['reason'].iloc[0]}")
