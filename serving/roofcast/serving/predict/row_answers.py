"""Bulk prediction: rows of prediction input in, rows of answers out, each with its own status."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from roofcast.data.catalog import Catalog
from roofcast.data.measurements.cells import Table, object_column
from roofcast.data.specs import AcceleratorSpec
from roofcast.data.units import BYTE_PER_GB
from roofcast.features.descriptors.assumptions import ASSUMED_LOAD, assumed_values
from roofcast.features.descriptors.descriptor_table import describe_service
from roofcast.features.descriptors.prediction_input import ColumnArray, factorize
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import BoolArray, FloatArray, Queries
from roofcast.features.validity.checks import FLAGS, find_flags
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.display_names import metric_name, quantity_text, three_digits
from roofcast.serving.predict.name_remarks import name_remarks
from roofcast.serving.predict.question_rows import Problem
from roofcast.serving.predict.row_checks import (
    assumed_split_problems,
    capacity_problems,
    check_rows,
    support_remarks,
)
from roofcast.training.explain.measured_points import MeasuredPoints
from roofcast.training.learner.errors.group_keys import GroupKeys, build_group_keys
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

SATURATED: Final = "saturated"
"""Status of a question whose request rate is more than one replica sustains."""

LENGTH_REMARK: Final = "an answer of one token has no time per output token"

MEASURED_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")

_TOLD: Final = ("stack", "engine_version", "date")

MEASURED_NUMBERS: Final = tuple(f"observed_{name}" for name in MEASURED_METRICS)
MEASURED_TEXTS: Final = ("support", *(f"observed_{name}" for name in _TOLD))
MEASURED_COLUMNS: Final = ("support", *MEASURED_NUMBERS, *MEASURED_TEXTS[1:])
"""What an answer rests on, `Support`, and the newest measurement of the same; blank where there is none."""

ANSWER_METRICS: Final = ("ttft_s", "tpot_s", "itl_s", "e2e_s", "output_throughput_token_per_s")
METRIC_COLUMNS: Final = tuple(f"{metric}{end}" for metric in ANSWER_METRICS for end in ("", "_lo", "_hi"))
TEXT_COLUMNS: Final = ("status", "reason", "assumed", *MEASURED_TEXTS)
ANSWER_COLUMNS: Final = (*METRIC_COLUMNS, *MEASURED_COLUMNS, "status", "reason", "outside", "assumed")

UNCALIBRATED: Final = "_uncalibrated"
UNCALIBRATED_COLUMNS: Final = tuple(
    f"{metric}{UNCALIBRATED}{end}" for metric in ANSWER_METRICS for end in ("", "_lo", "_hi")
)
"""Predictions without the reference measurements; they follow `ANSWER_COLUMNS` if references are given."""

STATUSES: Final = ("ok", SATURATED, "invalid", "unknown_name", "does_not_run", "does_not_fit", "out_of_range")

LOAD_REMARK: Final = "concurrency and request_rate are blank: one request in flight is assumed"


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """What all rows of one prediction share.

    `level`: coverage probability of the intervals, for an unseen LLM. `references`: measurements of the LLM, or of
    the user's own stack, to condition the predictions on.
    """

    bundle: ModelBundle
    catalog: Catalog
    level: float = DEFAULT_LEVEL
    references: CalibrationPoints | None = None


def answer_columns(columns: Mapping[str, ColumnArray], options: PredictOptions) -> dict[str, ColumnArray]:
    """Return `ANSWER_COLUMNS` of questions, and `UNCALIBRATED_COLUMNS` if references are given.

    A row without an answer has a status and a reason, and no numbers.

    `columns`: of `INPUT_COLUMNS`, blank where unknown; model and accelerator by any name of the catalogue. Blanks are
    filled by `roofcast.serving.predict.question_rows.parse_rows` and
    `roofcast.features.descriptors.descriptor_table.describe`. Raises `SchemaError` if a column is unknown, or `model`
    or `accelerator` is missing; `OutOfRangeError` if the measurements cannot support the level.
    """
    table, problems = check_rows(columns, options.catalog, options.bundle.engines)
    n_row = len(problems)
    answers: dict[str, ColumnArray] = {name: np.full(n_row, np.nan) for name in METRIC_COLUMNS}
    answers |= blank_columns(n_row)
    answers |= {"status": object_column(n_row, "ok"), "reason": object_column(n_row, "")}
    answers |= {"outside": np.zeros(n_row, dtype=bool), "assumed": object_column(n_row, "")}
    answers |= {name: np.full(n_row, np.nan) for name in (UNCALIBRATED_COLUMNS if options.references else ())}
    rows = np.array([i for i, problem in enumerate(problems) if problem is None], dtype=np.intp)
    if len(rows):
        _predict(table, rows, answers, problems, options)
        meant = name_remarks(columns, options.catalog)
        reasons = zip([meant[i] for i in rows.tolist()], answers["reason"][rows].tolist(), strict=True)
        answers["reason"][rows] = ["; ".join(filter(None, pair)) for pair in reasons]
    for i, problem in enumerate(problems):
        if problem is not None:
            answers["status"][i], answers["reason"][i] = problem.status, str(problem)
    return answers


def _predict(
    table: Table, rows: npt.NDArray[np.intp], answers: Table, problems: list[Problem | None], options: PredictOptions
) -> None:
    predictor, catalog = options.bundle.predictor, options.catalog
    subset = table if len(rows) == len(problems) else {name: cells[rows] for name, cells in table.items()}
    queries = describe_service(subset, catalog.models, catalog.accelerators)
    keys = build_group_keys(queries)
    prediction = predictor.predict_distribution(queries, options.references, metrics=ANSWER_METRICS, keys=keys)
    fill_measured(answers, rows, options.bundle.anchors, queries, keys)
    _fill_numbers(answers, rows, prediction, options.level)
    if options.references:
        uncalibrated = predictor.predict_distribution(queries, metrics=ANSWER_METRICS, keys=keys)
        _fill_numbers(answers, rows, uncalibrated, options.level, UNCALIBRATED)
    outside = outside_columns(prediction.features, subset, options.bundle, catalog.accelerators)
    answers["outside"][rows] = [bool(columns) for columns in outside]
    answers["assumed"][rows] = assumed_values(subset, queries, catalog.models, subset[ASSUMED_LOAD])
    remarks = question_remarks(queries, subset[ASSUMED_LOAD], prediction.estimate)
    supports = support_remarks(subset, catalog)
    answers["reason"][rows] = [
        "; ".join(filter(None, (*of, support))) for of, support in zip(remarks, supports, strict=True)
    ]
    splits = assumed_split_problems(queries, subset, catalog)
    capacities = capacity_problems(queries, prediction.estimate)
    failed = []
    for i, split, capacity in zip(rows.tolist(), splits, capacities, strict=True):
        if problem := split or capacity:
            problems[i] = problem
            failed.append(i)
    undefined = undefined_metrics(queries, prediction.estimate)
    for name in answers.keys() - {"outside", *TEXT_COLUMNS}:
        answers[name][failed] = np.nan
        is_undefined = next((mask for metric, mask in undefined.items() if name.startswith(metric)), None)
        if is_undefined is not None:
            answers[name][rows[is_undefined]] = np.nan
    answers["status"][rows[prediction.estimate.is_saturated]] = SATURATED
    for name in ("assumed", *MEASURED_TEXTS):
        answers[name][failed] = ""


def _fill_numbers(
    answers: Table, rows: npt.NDArray[np.intp], prediction: Prediction, level: float, suffix: str = ""
) -> None:
    low, high = prediction.bounds(level)
    for end, part in (("", prediction.medians), ("_lo", low), ("_hi", high)):
        for metric, values in part.items():
            answers[f"{metric}{suffix}{end}"][rows] = values


def question_remarks(queries: Queries, is_load_assumed: ColumnArray, estimate: Estimate) -> list[list[str]]:
    """Return the warnings about each question, which has an answer nevertheless."""
    flags = find_flags(queries, estimate.memory)
    texts = [LOAD_REMARK, LENGTH_REMARK, *(FLAGS[name] for name in flags)]
    is_one = undefined_metrics(queries, estimate)["tpot_s"]
    holds = np.column_stack([is_load_assumed, is_one, *flags.values()])
    is_hosted = np.maximum(queries["config.host_dense_ratio"], queries["config.host_expert_ratio"]) > 0
    remarks: list[list[str]] = [[] for _ in holds]
    for i in np.flatnonzero(holds.any(axis=1) | estimate.is_saturated | is_hosted).tolist():
        saturated = [saturation_text(queries, estimate, i)] if estimate.is_saturated[i] else []
        hosted = [_host_text(queries, i)] if is_hosted[i] else []
        remarks[i] = [*saturated, *itertools.compress(texts, holds[i].tolist()), *hosted]
    return remarks


def _host_text(queries: Queries, i: int) -> str:
    host, bus = (queries[f"hardware.{name}_byte_per_s"][i] / BYTE_PER_GB for name in ("host", "bus"))
    return f"the memory of the host is assumed to be read at {host:.0f} GB/s there and {bus:.0f} GB/s over the bus"


def outside_columns(
    features: FloatArray,
    table: Mapping[str, ColumnArray],
    bundle: ModelBundle,
    accelerators: Mapping[str, AcceleratorSpec],
) -> list[tuple[str, ...]]:
    """Return, for each row, what is outside the training data: engine, accelerator vendor, features out of range.

    A blank engine is never outside.

    - `features`: shape (n_row, n_feature). Columns of the learner.
    - `table`: The rows, in the same order.
    - `accelerators`: Specs by the ids in the table.
    """
    engine_index, engines = factorize(table["engine"])
    accelerator_index, ids = factorize(table["accelerator"])
    is_engine_new = np.array([bool(name) and name not in bundle.engines for name in engines])[engine_index]
    new_ids = [str(id_) for id_ in ids if id_ not in bundle.accelerators]
    vendors = new_ids and {accelerators[name].vendor for name in bundle.accelerators if name in accelerators}
    new_vendors = {name for name in new_ids if accelerators[name].vendor not in vendors}
    is_vendor_new = np.array([id_ in new_vendors for id_ in ids])[accelerator_index]
    is_new = zip(is_engine_new.tolist(), is_vendor_new.tolist(), strict=True)
    names = bundle.predictor.extrapolated_features(features)
    return [
        (*itertools.compress(("engine", "accelerator.vendor"), new), *outside)
        for new, outside in zip(is_new, names, strict=True)
    ]


def undefined_metrics(queries: Queries, estimate: Estimate) -> Mapping[str, BoolArray]:
    """Return which rows have no value of a metric, by metric: shapes (n_row,)."""
    is_one = np.asarray(queries["workload.n_output_token"] <= 1, dtype=bool)
    return {
        "ttft_s": estimate.is_saturated,
        "e2e_s": estimate.is_saturated,
        "tpot_s": is_one,
        "itl_s": is_one,
    }


def saturation_text(queries: Queries, estimate: Estimate, i: int) -> str:
    """Return what becomes of a saturated replica: the rate that it holds, the growth of the queue, TTFT over time.

    Notes
    -----
    A request that arrives after ``t`` finds ``(rate - held) t`` others before it, which take ``(rate / held - 1) t``.
    """
    rate, ratio = float(queries["workload.request_rate_per_s"][i]), float(estimate.rate_ratio[i])
    served_s = float(estimate.ttft_s[i] - estimate.queue_s[i])
    after = [quantity_text("ttft_s", (ratio - 1) * t + served_s) for t in (60.0, 600.0)]
    held, growth = three_digits(rate / ratio), three_digits(rate - rate / ratio)
    return (
        f"request_rate: {rate:g}/s is more than one replica sustains, about {held}/s; the queue grows by {growth} "
        f"requests a second, TTFT is about {after[0]} after one minute and {after[1]} after ten; use more replicas"
    )


def blank_columns(n_row: int) -> Table:
    """Return `MEASURED_COLUMNS` of rows without an answer."""
    return {
        name: np.full(n_row, np.nan) if name in MEASURED_NUMBERS else object_column(n_row, "")
        for name in MEASURED_COLUMNS
    }


def fill_measured(
    answers: Table, rows: npt.NDArray[np.intp], points: MeasuredPoints, queries: Queries, keys: GroupKeys
) -> None:
    """Fill `MEASURED_COLUMNS` of some rows, which have these queries and group keys."""
    match = points.match(queries, keys)
    answers["support"][rows] = match.support
    known = match.row >= 0
    if not known.any():
        return
    for name in (*MEASURED_METRICS, *_TOLD):
        answers[f"observed_{name}"][rows[known]] = points.rows[name].array.take(match.row[known]).to_numpy()


class Meaning(NamedTuple):
    """Unit of a column, empty for a text or a truth value, and what it holds."""

    unit: str
    text: str


_UNIT: Final = {metric: "token/s" if metric.endswith("token_per_s") else "s" for metric in ANSWER_METRICS}

_ENDS: Final = {"": "median", "_lo": "lower end of the interval", "_hi": "upper end of the interval"}

_MEANINGS: Final = {
    f"{metric}{end}": Meaning(_UNIT[metric], f"{metric_name(metric)}, predicted: {text}")
    for metric in ANSWER_METRICS
    for end, text in _ENDS.items()
} | {
    "support": Meaning(
        "",
        "what the answer rests on: `measured` where a training measurement has the same configuration and statistic "
        "and lengths and load within a tenth, `near` where the model was measured with the engine on the "
        "accelerator, `extrapolated` otherwise; blank without an answer",
    ),
    **{
        f"observed_{metric}": Meaning(
            _UNIT[metric], f"{metric_name(metric)} of the newest such measurement; blank unless `measured`"
        )
        for metric in MEASURED_METRICS
    },
    "observed_stack": Meaning("", "who measured it: a name that `stack` takes; blank if unknown"),
    "observed_engine_version": Meaning("", "version of the engine there; blank if unknown"),
    "observed_date": Meaning("", "date of the measurement, as YYYY-MM-DD; blank if unknown"),
    "status": Meaning("", f"one of {', '.join(f'`{name}`' for name in STATUSES)}"),
    "reason": Meaning("", "why there is no answer, or what is doubtful about it; blank otherwise"),
    "outside": Meaning("", "whether the row is beyond the range of the measurements"),
    "assumed": Meaning("", "what is blank and assumed, as `column=value` separated by spaces"),
}

MEANINGS: Final = {name: _MEANINGS[name] for name in ANSWER_COLUMNS}
"""Meaning of each of `ANSWER_COLUMNS`, in their order."""


def describe_column(name: str) -> str:
    """Return the meaning of a column with its unit, as a sentence."""
    unit, text = MEANINGS[name]
    return f"{text[0].upper()}{text[1:]}{f'; in {unit}' if unit else ''}."


def column_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a column in a row of answers; a number may be null."""
    number = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    kind = number if MEANINGS[name].unit else {"type": "boolean" if name == "outside" else "string"}
    return {**kind, "description": describe_column(name)}
