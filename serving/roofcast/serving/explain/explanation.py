"""Explanation of predictions: operators and bounds of the estimate, memory, power, and factors of the prediction."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import isfinite, nan
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import AcceleratorSpec
from roofcast.features.analysis.breakdown import (
    METRIC_PHASES,
    Bound,
    OperatorTime,
    bottleneck,
    bound_seconds,
    break_down,
    breakdown_table,
)
from roofcast.features.analysis.power import replica_power_w
from roofcast.features.analysis.whatif import DRAM_BYTE_PER_S, FACTORS, NODES, parse_steps, sweep
from roofcast.features.columns import DESCRIPTOR_NAMES
from roofcast.features.descriptors.assumptions import ASSUMED, ASSUMED_LOAD, assumed_values
from roofcast.features.descriptors.descriptor_table import describe_service
from roofcast.features.descriptors.prediction_input import column_arrays
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.pipeline import estimate_metrics
from roofcast.features.queries import FloatArray, Queries, build_frame, descriptor_arrays
from roofcast.features.validity.capacity_limits import CapacityLimits, capacity_limits
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.predict.name_remarks import name_remarks
from roofcast.serving.predict.question_rows import Problem, rows_from_columns, rows_from_table
from roofcast.serving.predict.row_answers import (
    ANSWER_METRICS,
    SATURATED,
    blank_columns,
    fill_measured,
    outside_columns,
    question_remarks,
    saturation_text,
    undefined_metrics,
)
from roofcast.serving.predict.row_checks import (
    assumed_split_problems,
    capacity_problems,
    check_table,
    support_remarks,
    table_columns,
)
from roofcast.training.explain.contributions import contributions, nearest_measurements
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

MAX_SWEEP: Final = 200
"""Maximum number of steps of a sweep."""

NAMED_STEPS: Final[Mapping[str, Collection[str]]] = {"node": NODES, "dram": DRAM_BYTE_PER_S}
"""Kinds of sweep whose steps are names, oldest first; the steps of other kinds are factors."""

KINDS: Final = (*FACTORS, *NAMED_STEPS)


@dataclass(frozen=True)
class Explanation:
    """Explanation of a table of questions; arrays have shape (n_question,).

    - `table`, `parts`: The questions with the catalogue's ids, and the accelerator of each.
    - `assumed`: What each question leaves to usual values, as `column=value` separated by spaces.
    - `remarks`: Warnings about each question, which has an answer nevertheless.
    - `d`: Descriptors.
    - `operators`: Time of each operator in each phase of the estimate.
    - `limits`: Capacity limits by memory.
    - `power_w`: Mean power of a replica.
    - `explain_predictions`: Computes `prediction`, the dearest part.
    """

    table: pd.DataFrame
    assumed: Sequence[str]
    remarks: Sequence[Sequence[str]]
    parts: list[AcceleratorSpec]
    d: Queries
    estimate: Estimate
    operators: list[OperatorTime]
    limits: CapacityLimits
    power_w: FloatArray
    explain_predictions: Callable[[], list[dict[str, Any]]]

    @cached_property
    def prediction(self) -> list[dict[str, Any]]:
        """Prediction of each question with its factors; empty without a model."""
        return self.explain_predictions()

    @cached_property
    def _metrics(self) -> Mapping[str, FloatArray]:
        return estimate_metrics(self.d, self.estimate)

    @cached_property
    def _breakdown(self) -> pd.DataFrame:
        return breakdown_table(self.operators)

    def metrics(self, i: int) -> dict[str, float]:
        """Return the estimated metrics of question `i`, and the mean power of its replica."""
        undefined = undefined_metrics(self.d, self.estimate)
        metrics = {
            name: nan if name in undefined and undefined[name][i] else float(self._metrics[name][i])
            for name in ANSWER_METRICS
        }
        return metrics | {"power_w": float(self.power_w[i])}

    def bounds(self, i: int) -> dict[str, dict[Bound, float]]:
        """Return the share of TTFT and of TPOT by bound."""
        shares = {}
        for metric, phases in METRIC_PHASES.items():
            seconds = {bound: float(s[i]) for bound, s in bound_seconds(self.operators, phases).items()}
            total = sum(seconds.values())
            shares[metric] = {bound: value / total for bound, value in seconds.items()}
        return shares

    def memory(self, i: int) -> dict[str, Any]:
        """Return the memory use and the capacity limits; the context limit is None if it is unbounded."""
        memory, limits = self.estimate.memory, self.limits
        context = float(limits.context_token[i])
        return {
            "usable_byte": float(memory.usable_byte[i]),
            "weight_byte": float(memory.weight_byte[i]),
            "cache_byte_per_request": float(memory.kv_byte_per_sequence[i]),
            "fits": bool(memory.fits[i]),
            "spare_byte": float(limits.spare_byte[i]),
            "greatest_concurrency": float(limits.concurrency[i]),
            "greatest_context_token": context if context != float("inf") else None,
        }

    def to_json(self, i: int = 0) -> dict[str, Any]:
        """Return the explanation of question `i` as JSON values."""
        n = len(self.operators)
        rows = self._breakdown.iloc[i * n : (i + 1) * n].drop(columns="question")
        return {
            "question": rows_from_table(self.table.iloc[[i]].drop(columns=[ASSUMED_LOAD, *ASSUMED.values()]))[0],
            "accelerator": self.parts[i].model_dump(mode="json"),
            "estimate": {name: value if isfinite(value) else None for name, value in self.metrics(i).items()},
            "is_saturated": bool(self.estimate.is_saturated[i]),
            "remarks": [*self.remarks[i]],
            "assumed": self.assumed[i].split(),
            "bounds": self.bounds(i),
            "bottleneck": str(bottleneck(self.operators, self.d["workload.n_output_token"])[i]),
            "operators": rows_from_table(rows),
            "memory": self.memory(i),
            "prediction": self.prediction[i] if self.prediction else None,
        }


def explain(
    questions: pd.DataFrame,
    catalog: Catalog,
    bundle: ModelBundle | None = None,
    *,
    parts: Sequence[AcceleratorSpec] = (),
    level: float = DEFAULT_LEVEL,
    references: CalibrationPoints | None = None,
) -> Explanation:
    """Explain the estimate of each question, and its prediction.

    Raises `SchemaError` if a question has no answer; with the row and the problem of the first.

    - `questions`: As in `roofcast.serving.predict.row_answers.answer`.
    - `bundle`: Model whose coefficients the estimate uses; without it the estimate uses the priors, and nothing is
      predicted.
    - `parts`: Accelerators that replace those of the questions, one per question, such as hypothetical ones.
    - `level`: Level of the intervals.
    - `references`: Reference measurements to condition the predictions on.
    """
    table, problems = check_table(questions, catalog, bundle.engines if bundle else ())
    _raise_first(problems)
    support = support_remarks(table_columns(table), catalog)
    meant = name_remarks(table_columns(questions), catalog)
    used = list(parts) or [catalog.accelerators[name] for name in table["accelerator"]]
    table["accelerator"] = [part.id for part in used]
    accelerators = {part.id: part for part in used}
    d = describe_service(table_columns(table), catalog.models, accelerators)
    descriptors = build_frame(d, DESCRIPTOR_NAMES, table.index)
    _raise_first(assumed_split_problems(descriptors, table, catalog))
    coefficients = bundle.predictor.coefficients_ if bundle else DEFAULT_COEFFICIENTS
    e = estimate(d, coefficients)
    operators = break_down(d, coefficients, e)
    known = {**catalog.accelerators, **accelerators}
    columns = table_columns(table)
    assumed = assumed_values(columns, d, catalog.models, columns[ASSUMED_LOAD])
    own = question_remarks(d, columns[ASSUMED_LOAD], e)
    remarks = [[*filter(None, (one, *of, other))] for one, of, other in zip(meant, own, support, strict=True)]
    return Explanation(
        table=table,
        assumed=assumed,
        remarks=remarks,
        parts=used,
        d=d,
        estimate=e,
        operators=operators,
        limits=capacity_limits(d, e.memory),
        power_w=replica_power_w(d, e, operators),
        explain_predictions=partial(
            explain_predictions, descriptors, table, bundle, known, level=level, references=references
        ),
    )


def _raise_first(problems: Sequence[Problem | None]) -> None:
    for row, problem in enumerate(problems, 1):
        if problem is not None:
            raise problem.error(*(("rows", row) if len(problems) > 1 else ()))


def scale_accelerator(spec: AcceleratorSpec, options: Sequence[str]) -> AcceleratorSpec:
    """Return the accelerator scaled by options such as ``bandwidth=2``; itself if there are none.

    Raises `InputError` if an option has another form, or several values.
    """
    if not options:
        return spec
    factors: dict[str, float] = {}
    for option in options:
        kind, values = parse_option(option)
        if len(values) != 1 or kind in NAMED_STEPS:
            raise InputError("scale", f"must be written as bandwidth=2, got {option!r}")
        factors |= parse_steps(kind, values)[0]
    return sweep(spec, [factors])[0]


def sweep_accelerator(spec: AcceleratorSpec, option: str) -> list[AcceleratorSpec]:
    """Return the accelerators of a sweep such as ``bandwidth=1,1.5,2`` or ``node=N5,N3``.

    Raises `InputError` if the option has another form, an unknown kind or step, or more than `MAX_SWEEP` steps.
    """
    kind, values = parse_option(option, "sweep")
    if len(values) > MAX_SWEEP:
        raise InputError("sweep", f"must have at most {MAX_SWEEP} steps, got {len(values)}")
    if kind not in KINDS:
        raise InputError("sweep", f"must name one of {', '.join(KINDS)}, got {kind!r}")
    try:
        return sweep(spec, parse_steps(kind, values))
    except UnknownNameError as error:
        raise InputError(kind, f"must be of {', '.join(NAMED_STEPS[kind])}, got {error.name!r}") from error


def sweep_question(
    table: pd.DataFrame, catalog: Catalog, option: str
) -> tuple[pd.DataFrame, Sequence[AcceleratorSpec]]:
    """Return a question once for each step of a sweep, and the accelerator of each step.

    Raises `InputError` if there is more than one question, or as `sweep_accelerator`; `UnknownNameError` if the
    accelerator is unknown.
    """
    if len(table) != 1:
        raise InputError("rows", f"must be one question where there is a sweep, got {len(table)}")
    parts = sweep_accelerator(catalog.accelerator(str(table["accelerator"].iloc[0])), option)
    return table.loc[table.index.repeat(len(parts))].reset_index(drop=True), parts


def parse_option(text: str, field: str = "scale") -> tuple[str, list[str]]:
    """Return the kind and the values of ``kind=value,value``.

    Raises `InputError` if the text has another form; with this field.

    Examples
    --------
    >>> parse_option("node=N5,N3")
    ('node', ['N5', 'N3'])
    """
    kind, _, text_values = text.partition("=")
    values = [value.strip() for value in text_values.split(",")]
    if not all(values):
        raise InputError(field, f"must be written as bandwidth=2 or bandwidth=1,1.5,2, got {text!r}")
    return kind.strip(), values


N_NEAREST: Final = 3


def explain_predictions(
    descriptors: pd.DataFrame,
    table: pd.DataFrame,
    bundle: ModelBundle | None,
    accelerators: Mapping[str, AcceleratorSpec],
    *,
    level: float,
    references: CalibrationPoints | None = None,
) -> list[dict[str, Any]]:
    """Return, for each question, the prediction and its reasons as JSON values; nothing without a bundle.

    - `descriptors`, `table`: The questions, and their rows with the catalogue's ids.
    - `bundle`: That predicts.
    - `accelerators`: Specs by the ids of the table.
    - `level`: Of the intervals.
    - `references`: Reference measurements to condition the predictions on.
    """
    if bundle is None:
        return []
    predictor = bundle.predictor
    metrics = predictor.select_metrics(ANSWER_METRICS)
    prediction = predictor.predict_distribution(descriptors, references, metrics=metrics)
    intervals = _intervals(prediction, level)
    plain = _intervals(predictor.predict_distribution(descriptors, metrics=metrics), level) if references else None
    summands = contributions(predictor, descriptors, references, metrics)
    near = {m: nearest_measurements(predictor, bundle.anchors, descriptors, m, N_NEAREST) for m in metrics}
    beyond = outside_columns(prediction.features, column_arrays(table), bundle, accelerators)
    d, answers = descriptor_arrays(descriptors), []
    problems = capacity_problems(descriptors, prediction.estimate)
    measured = _measured_values(bundle, d, problems)
    undefined = undefined_metrics(d, prediction.estimate)
    for i, problem in enumerate(problems):
        status, reason = (problem.status, str(problem)) if problem else ("ok", "")
        if problem is None and prediction.estimate.is_saturated[i]:
            status, reason = SATURATED, saturation_text(d, prediction.estimate, i)
        answer = {"status": status, "reason": reason, "level": level, "outside": list(beyond[i]), **measured[i]}
        for metric in metrics if problem is None else ():
            if metric in undefined and undefined[metric][i]:
                continue
            answer[metric] = {
                **_interval(intervals, metric, i),
                "uncalibrated": _interval(plain, metric, i) if plain else None,
                "contributions": {str(part): float(log) for part, log in summands[metric].iloc[i].items()},
                "nearest": rows_from_table(near[metric][i]),
            }
        answers.append(answer)
    return answers


def _measured_values(bundle: ModelBundle, d: Queries, problems: Sequence[Problem | None]) -> list[dict[str, Any]]:
    n = len(problems)
    columns, (blank,) = blank_columns(n), rows_from_columns(blank_columns(1))
    fill_measured(columns, np.arange(n), bundle.anchors, d, build_group_keys(d))
    return [blank if problem else row for row, problem in zip(rows_from_columns(columns), problems, strict=True)]


def _intervals(prediction: Prediction, level: float) -> dict[str, pd.DataFrame]:
    low, high = prediction.interval(level)
    return {"value": prediction.median, "low": low, "high": high}


def _interval(intervals: Mapping[str, pd.DataFrame], metric: str, i: int) -> dict[str, float]:
    return {name: float(part[metric].iloc[i]) for name, part in intervals.items()}
