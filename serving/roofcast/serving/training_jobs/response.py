"""Responses of training predictions and recommendations over HTTP."""

from __future__ import annotations

from pydantic import BaseModel

from roofcast.serving.request_fields import Value


class TrainingPredictionResponse(BaseModel):
    """The rows with their answers."""

    predictor_version: str
    level: float
    rows: list[dict[str, Value]]
