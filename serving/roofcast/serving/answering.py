"""Bulk prediction: rows of questions in, rows of answers out, each with a status of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, RoofcastError, SchemaError
from roofcast.data.schema import QUESTION_COLUMNS
from roofcast.data.specs import PRECISIONS, STATISTICS, ModelSpec
from roofcast.data.units import BYTE_PER_GB
from roofcast.features.batching import Estimate
from roofcast.features.checks import FLAGS, check_questions
from roofcast.features.descriptors import describe
from roofcast.serving.extrapolation import outside_columns
from roofcast.serving.splits import split_problem
from roofcast.training.bundle import ModelBundle
from roofcast.training.conditioning import narrowed
from roofcast.training.predictor import Prediction, References

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

ASSUMED_LOAD: Final = "load_is_assumed"
"""Column of `checked` that says where neither concurrency nor request rate was given."""

LOAD_REMARK: Final = "concurrency and request_rate are blank: one request in flight is assumed"

_BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "n_accelerator": (1, 100_000), "tp": (1, 100_000), "pp": (1, 100_000), "dp": (1, 100_000), "ep": (1, 100_000),
    "n_input_token": (1, 1e7), "n_output_token": (1, 1e7), "concurrency": (1, 1e6), "request_rate": (1e-9, 1e6),
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
        Columns of `QUESTION_COLUMNS`, blank where unknown; model and accelerator by any name the catalogue knows.
        A blank `n_accelerator` is one, a blank `statistic` the mean, a blank load a single request at a time, of
        which the reason tells; the rest is filled as `roofcast.features.descriptors.describe` says.
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
    table, problems = checked(questions, catalog)
    sound = np.array([problem is None for problem in problems])
    answers = _blank_answers(len(table), UNCALIBRATED_COLUMNS if references else ())
    if sound.any():
        _predict(table[sound], np.flatnonzero(sound), answers, problems, _Given(bundle, catalog, level, references))
    told = [(i, *problem) for i, problem in enumerate(problems) if problem is not None]
    if told:
        rows, status, reason = zip(*told, strict=True)
        answers.loc[list(rows), "status"] = np.array(status, dtype=object)
        answers.loc[list(rows), "reason"] = np.array(reason, dtype=object)
    return pd.concat([questions.reset_index(drop=True), answers], axis=1)


Problem = tuple[str, str]


def checked(questions: pd.DataFrame, catalog: Catalog) -> tuple[pd.DataFrame, list[Problem | None]]:
    """Return the questions typed, with the catalogue's ids and `ASSUMED_LOAD`, and per row why it cannot be answered.

    Raises
    ------
    SchemaError
        If a column is unknown or `model` or `accelerator` is missing.
    """
    _check_columns(questions)
    table, problems = _parsed(questions.reset_index(drop=True))
    _resolve(table, problems, catalog)
    _check_model_splits(table, problems, catalog)
    _check_contexts(table, problems, catalog)
    return table, problems


def _check_columns(questions: pd.DataFrame) -> None:
    twice = questions.columns[questions.columns.duplicated()]
    if len(twice):
        raise SchemaError(str(twice[0]), "is given twice as a column of the questions")
    for name in questions.columns:
        if name not in QUESTION_COLUMNS:
            raise SchemaError(str(name), f"is not a column of questions; they are {', '.join(QUESTION_COLUMNS)}")
    for name in ("model", "accelerator"):
        if name not in questions.columns:
            raise SchemaError(name, "must be a column of the questions")


def _parsed(questions: pd.DataFrame) -> tuple[pd.DataFrame, list[Problem | None]]:
    """Return typed columns and, per row, the first problem found."""
    problems: list[Problem | None] = [None] * len(questions)
    columns: dict[str, pd.Series] = {}
    for name in QUESTION_COLUMNS:
        given = questions[name] if name in questions else pd.Series("", index=questions.index, dtype=object)
        text = given.astype(object).where(given.notna(), "").astype(str).str.strip()
        columns[name] = _numbers(name, text, problems) if name in _BOUNDS else _texts(name, text, problems)
    table = pd.DataFrame(columns)
    has_both = table["concurrency"].notna() & table["request_rate"].notna()
    _note(problems, has_both, lambda _: "concurrency: give either concurrency or request_rate")
    has_none = table["concurrency"].isna() & table["request_rate"].isna()
    table["concurrency"] = table["concurrency"].where(~has_none, 1.0)
    table[ASSUMED_LOAD] = has_none
    _check_split(table, problems)
    return table, problems


def _check_split(table: pd.DataFrame, problems: list[Problem | None]) -> None:
    for name in _WHOLE:
        is_part = (table[name] % 1).fillna(0) != 0
        _note(problems, is_part, lambda i, name=name: f"{name}: must be a whole number, got {table[name][i]:g}")  # type: ignore[misc]
    ranks = table["pp"].fillna(1) * table["dp"].fillna(1)
    split = table["tp"].fillna(table["n_accelerator"] / ranks)
    _note(problems, split < 1, lambda _: "tp: pp x dp must not exceed n_accelerator")
    _note(
        problems,
        ((split * ranks - table["n_accelerator"]).abs() > 1e-9) | (split % 1 != 0),
        lambda i: (
            f"tp: tp x pp x dp must equal n_accelerator, got {split[i]:g} x {ranks[i]:g} "
            f"and {table['n_accelerator'][i]:g}"
        ),
    )


def _numbers(name: str, text: pd.Series, problems: list[Problem | None]) -> pd.Series:
    low, high = _BOUNDS[name]
    values = pd.to_numeric(text.where(text != "", None), errors="coerce").astype(float)
    if name in _DEFAULTS:
        values = values.where(text != "", _DEFAULTS[name])
    is_wrong = (text != "") & ~values.between(low, high)
    _note(problems, is_wrong, lambda i: f"{name}: must be a number from {low:g} to {high:g}, got {text[i][:40]!r}")
    if name in _REQUIRED:
        _note(problems, text == "", lambda _: f"{name}: must be given")
    return values.where(~is_wrong)


def _texts(name: str, text: pd.Series, problems: list[Problem | None]) -> pd.Series:
    if name == "statistic":
        text = text.where(text != "", "mean")
    if name in _NAMES:
        _note(problems, text == "", lambda _: f"{name}: must be given")
    choices = _CHOICES.get(name)
    if choices:
        is_wrong = (text != "") & ~text.isin(choices)
        _note(problems, is_wrong, lambda i: f"{name}: must be one of {', '.join(choices)}, got {text[i][:40]!r}")
    return text


def _note(
    problems: list[Problem | None], mask: pd.Series, message: Callable[[int], str], status: str = "invalid"
) -> None:
    for i in np.flatnonzero(mask.to_numpy(dtype=bool)):
        if problems[i] is None:
            problems[i] = (status, message(int(i)))


def _resolve(table: pd.DataFrame, problems: list[Problem | None], catalog: Catalog) -> None:
    for column, find in (("model", catalog.model), ("accelerator", catalog.accelerator)):
        ids: dict[str, str] = {}
        failures: dict[str, str] = {}
        for name in table[column].unique():
            try:
                spec = find(name)
            except RoofcastError as error:
                failures[name] = str(error)
            else:
                ids[name] = spec.id
        failed = table[column].isin(list(failures))
        names = table[column]
        _note(problems, failed, lambda i, names=names, failures=failures: failures[names[i]], "unknown_name")  # type: ignore[misc]
        if column == "model":
            specs = {name: catalog.model(name) for name in ids}
            table["weight_precision"] = with_own_precision(table["weight_precision"], table["model"], specs, catalog)
        table[column] = table[column].map(ids)


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
    copies = {
        name: spec.weight_precision
        for name, spec in specs.items()
        if spec.weight_precision != catalog.models[spec.id].weight_precision
    }
    return precision.where(precision != "", names.map(lambda name: copies.get(name, "")).astype(object))


def _check_model_splits(table: pd.DataFrame, problems: list[Problem | None], catalog: Catalog) -> None:
    split = table[["tp", "ep"]].fillna(1)
    for i in np.flatnonzero((split > 1).any(axis=1)):
        if problems[i] is None:
            model, engine = catalog.models[table["model"][i]], table["engine"][i]
            reason = split_problem(model, split["tp"][i], split["ep"][i], engine)
            problems[i] = ("invalid", reason) if reason else None


def _check_contexts(table: pd.DataFrame, problems: list[Problem | None], catalog: Catalog) -> None:
    longest = table["model"].map({name: longest_context(catalog.models[name]) for name in table["model"].dropna()})
    _note(
        problems,
        table["n_input_token"] + table["n_output_token"] > longest,
        lambda i: context_problem(table["n_input_token"][i], table["n_output_token"][i], longest[i]),
        "out_of_range",
    )


def longest_context(model: ModelSpec) -> float:
    """Return the most tokens, input and output together, that a model can hold; infinite if nothing bounds them.

    Encoder-decoders of the T5 kind know relative positions alone; the length that their configuration states is
    that of their training.
    """
    is_bound = model.max_context_token > 0 and model.n_encoder_layer == 0
    return float(model.max_context_token) if is_bound else math.inf


def context_problem(n_input_token: float, n_output_token: float, longest: float) -> str:
    """Return in a sentence why requests of these lengths cannot be served."""
    return (
        f"n_input_token: {n_input_token:g} with {n_output_token:g} output exceeds the model's context of {longest:g}"
    )


def _blank_answers(n_row: int, more: tuple[str, ...]) -> pd.DataFrame:
    answers = pd.DataFrame(np.nan, index=range(n_row), columns=list(ANSWER_COLUMNS[:-3]))
    answers = answers.assign(
        status=pd.Series("ok", index=answers.index, dtype=object),
        reason=pd.Series("", index=answers.index, dtype=object),
        outside=False,
    )
    return answers.assign(**dict.fromkeys(more, np.nan))


@dataclass(frozen=True, slots=True)
class _Given:
    """What all rows of one call share."""

    bundle: ModelBundle
    catalog: Catalog
    level: float
    references: References | None


def _predict(
    table: pd.DataFrame,
    rows: npt.NDArray[np.intp],
    answers: pd.DataFrame,
    problems: list[Problem | None],
    given: _Given,
) -> None:
    bundle, catalog = given.bundle, given.catalog
    descriptors = describe(table.reset_index(drop=True), catalog.models, catalog.accelerators)
    predictor = narrowed(bundle.predictor, ANSWER_METRICS)
    prediction = predictor.predict_interval(descriptors, given.level, given.references)
    for i, problem in zip(rows, unanswerable(prediction.estimate), strict=True):
        problems[i] = problem
    _fill(answers, rows, prediction)
    if given.references:
        _fill(answers, rows, predictor.predict_interval(descriptors, given.level), UNCALIBRATED)
    beyond = outside_columns(prediction, table, bundle, catalog.accelerators)
    answers.loc[rows, "outside"] = [bool(columns) for columns in beyond]
    answers.loc[rows, "reason"] = remarks(descriptors, bundle, table[ASSUMED_LOAD])
    failed = [i for i in rows if problems[i] is not None]
    answers.loc[failed, [name for name in answers if name not in ANSWER_COLUMNS[-3:]]] = np.nan


def _fill(answers: pd.DataFrame, rows: npt.NDArray[np.intp], prediction: Prediction, kind: str = "") -> None:
    for metric in prediction.value:
        for end, part in (("", prediction.value), ("_lo", prediction.low), ("_hi", prediction.high)):
            answers.loc[rows, f"{metric}{kind}{end}"] = part[metric].to_numpy()


def remarks(descriptors: pd.DataFrame, bundle: ModelBundle, is_load_assumed: pd.Series) -> list[str]:
    """Return what is doubtful about each question although it has an answer; empty if nothing is."""
    flags = check_questions(descriptors, bundle.predictor.coefficients_)
    texts = [LOAD_REMARK, *(FLAGS[str(name)] for name in flags)]
    holds = np.column_stack([is_load_assumed.to_numpy(dtype=bool), flags.to_numpy(dtype=bool)])
    found = [""] * len(holds)
    for i in np.flatnonzero(holds.any(axis=1)).tolist():
        found[i] = "; ".join(itertools.compress(texts, holds[i].tolist()))
    return found


def unanswerable(estimate: Estimate) -> list[Problem | None]:
    """Return per question why it has no answer: it does not fit, or asks more than one replica can serve."""
    memory = estimate.memory
    problems: list[Problem | None] = []
    for i, fits in enumerate(memory.fits):
        if not fits:
            needed, usable = memory.needed_byte[i] / BYTE_PER_GB, memory.usable_byte[i] / BYTE_PER_GB
            problems.append(
                ("does_not_fit", f"weights and one request need {needed:.1f} GB of {usable:.1f} GB usable")
            )
        elif estimate.is_saturated[i]:
            problems.append(("out_of_range", "request_rate: is more than one replica can serve; use more replicas"))
        else:
            problems.append(None)
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
