"""Factors of predictions, intervals with and without references, and nearest training measurements."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.prediction_input import column_arrays
from roofcast.features.queries import Queries, descriptor_arrays
from roofcast.serving.predict.measured_values import blank_columns, fill_measured
from roofcast.serving.predict.question_rows import rows_from_columns, rows_from_table
from roofcast.serving.predict.row_answers import ANSWER_METRICS, outside_columns
from roofcast.serving.predict.row_checks import capacity_problems
from roofcast.serving.predict.saturation import SATURATED, saturation_text, undefined_metrics
from roofcast.serving.row_problems import Problem
from roofcast.training.explain.contributions import contributions, nearest_measurements
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

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
