"""Why the predictor says what it says: contributions, intervals with and without references, nearest measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from roofcast.data.specs import AcceleratorSpec
from roofcast.serving.predict.answers import ANSWER_METRICS
from roofcast.serving.predict.extrapolation import outside_columns
from roofcast.serving.predict.json_rows import rows_from_table
from roofcast.serving.predict.row_checks import capacity_problems
from roofcast.training.explain.contributions import contributions, nearest_measurements
from roofcast.training.learner.conditioning import narrowed
from roofcast.training.learner.predictor import Prediction, References
from roofcast.training.lifecycle.bundle import ModelBundle

N_NEAREST: Final = 3


def explain_predictions(
    descriptors: pd.DataFrame,
    table: pd.DataFrame,
    bundle: ModelBundle,
    accelerators: Mapping[str, AcceleratorSpec],
    *,
    level: float,
    references: References | None = None,
) -> list[dict[str, Any]]:
    """Return, for each question, the prediction and its reasons as JSON values.

    Parameters
    ----------
    descriptors, table
        The questions, and their rows with the catalogue's ids.
    bundle
        That predicts.
    accelerators
        Specs by the ids of the table.
    level
        Of the intervals.
    references
        Measurements that the predictions are to know.
    """
    predictor = narrowed(bundle.predictor, ANSWER_METRICS)
    prediction = predictor.predict_interval(descriptors, level, references)
    plain = predictor.predict_interval(descriptors, level) if references else None
    summands = contributions(predictor, descriptors, references)
    near = {m: nearest_measurements(predictor, bundle.anchors, descriptors, m, N_NEAREST) for m in predictor.metrics_}
    beyond = outside_columns(prediction, table, bundle, accelerators)
    answers = []
    for i, problem in enumerate(capacity_problems(prediction.estimate)):
        status, reason = (problem.status, str(problem)) if problem else ("ok", "")
        answer = {"status": status, "reason": reason, "level": level, "outside": list(beyond[i])}
        for metric in predictor.metrics_ if problem is None else ():
            answer[metric] = {
                **_interval(prediction, metric, i),
                "uncalibrated": _interval(plain, metric, i) if plain else None,
                "contributions": {str(part): float(log) for part, log in summands[metric].iloc[i].items()},
                "nearest": rows_from_table(near[metric][i]),
            }
        answers.append(answer)
    return answers


def _interval(prediction: Prediction, metric: str, i: int) -> dict[str, float]:
    parts = {"value": prediction.value, "low": prediction.low, "high": prediction.high}
    return {name: float(part[metric].iloc[i]) for name, part in parts.items()}
