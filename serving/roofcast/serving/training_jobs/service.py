"""Training service: from a request to its response, for HTTP and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.registered_models import Config, with_configs
from roofcast.serving.predict.json_rows import columns_from_rows, rows_from_columns
from roofcast.serving.training_jobs.prediction import TrainingOptions, answer_jobs
from roofcast.serving.training_jobs.request import TrainingPredictionRequest
from roofcast.serving.training_jobs.response import TrainingPredictionResponse
from roofcast.training.training_jobs import load_shipped_training_predictor


def predictor_version() -> str:
    """Return the name of the predictor of training jobs, which is the shipped one."""
    return f"shipped {version('roofcast')}"


def answer_training_predictions(request: TrainingPredictionRequest, state: AppState) -> TrainingPredictionResponse:
    """Return the rows of a request with their answers: see `answer_rows`."""
    configs = [(model.name, model.config) for model in request.models]
    rows = answer_rows(request.rows, configs, request.level, state)
    return TrainingPredictionResponse(predictor_version=predictor_version(), level=request.level, rows=rows)


def answer_rows(
    rows: Sequence[Mapping[str, Any]], configs: Iterable[tuple[str, Config]], level: float, state: AppState
) -> list[dict[str, Any]]:
    """Return rows of jobs with their answers, as JSON values.

    Raises
    ------
    InputError
        If a configuration is not a language model's, or another model has its name.
    SchemaError
        If a column is unknown.
    """
    catalog, _ = with_configs(state.catalog, configs)
    answers = answer_jobs(rows, TrainingOptions(load_shipped_training_predictor(), catalog, level))
    return rows_from_columns(columns_from_rows(rows) | answers)
