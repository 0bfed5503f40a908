"""What goes over HTTP: requests and responses, apart from the specs they become."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from roofcast.serving.app_state.published_figures import ProtocolFigures
from roofcast.serving.request_fields import Config, Level, Message, ModelConfig, References, Row, Text, Value

QUESTION: Config = {
    "model": "meta-llama/Llama-3.1-8B",
    "accelerator": "nvidia-a100-pcie-80gb",
    "n_input_token": 120,
    "n_output_token": 20,
    "concurrency": 16,
    "statistic": "p95",
}


class PredictionRequest(Message):
    """Rows of questions, as `roofcast predict` reads them, and the models that only they know."""

    rows: Annotated[list[Row], Field(min_length=1)]
    models: Annotated[list[ModelConfig], Field(max_length=100)] = Field(default_factory=list)
    references: References = Field(default_factory=list)
    level: Level = 0.8

    model_config = ConfigDict(json_schema_extra={"examples": [{"rows": [QUESTION]}]})


class ExplanationRequest(Message):
    """Rows of questions as of a prediction, a few at a time: an explanation is a hundred times as long."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=100)]
    models: Annotated[list[ModelConfig], Field(max_length=100)] = Field(default_factory=list)
    references: References = Field(default_factory=list)
    level: Level = 0.8

    model_config = ConfigDict(json_schema_extra={"examples": [{"rows": [QUESTION]}]})


class PredictionResponse(BaseModel):
    """The rows with their answers."""

    predictor_version: str
    level: float
    rows: list[dict[str, Value]]


class MeasurementsRequest(Message):
    """Measured rows, and the models that no catalogue knows."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=50_000)]
    models: Annotated[list[ModelConfig], Field(max_length=100)] = Field(default_factory=list)

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "rows": [
                        {
                            "campaign": "nightly",
                            "model": "meta-llama/Llama-3.1-8B",
                            "accelerator": "nvidia-a100-pcie-80gb",
                            "n_accelerator": 1,
                            "engine": "vllm",
                            "n_input_token": 120,
                            "n_output_token": 20,
                            "concurrency": 16,
                            "statistic": "p50",
                            "ttft_s": 0.061,
                            "itl_s": 0.0132,
                        }
                    ]
                }
            ]
        }
    )


class MeasurementsAdded(BaseModel):
    """How many rows were new, and how many were known before."""

    n_new: int
    n_known: int


class OwnCampaign(BaseModel):
    """Measurements that were kept here under one name."""

    name: str
    n_row: int
    licence: str = ""
    source: str = "imported here"


class RetrainingResponse(BaseModel):
    """A retraining and what came of it."""

    id: str
    state: Literal["queued", "running", "done", "failed"]
    requested_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    report: dict[str, Any] | None
    error: str


class Check(BaseModel):
    """Whether a part of the service works, and what stands in its way."""

    ok: bool
    detail: str = ""


class ReadinessResponse(BaseModel):
    """Predictions are answered; `degraded` if something else is not."""

    status: Literal["ready", "degraded"]
    predictor_version: str
    checks: dict[str, Check]


class PredictorResponse(BaseModel):
    """The predictor in service.

    `held_out` are its errors by metric on LLM lineages that it had not seen; intervals go up to `highest_level`.
    """

    version: str
    sha256: str
    roofcast_version: str
    data_digest: str
    n_row: int
    engines: list[str]
    held_out: dict[str, dict[str, float]]
    highest_level: float


class ScoreboardResponse(BaseModel):
    """How good the predictor in service is, and what `roofcast scoreboard` last found, by protocol."""

    predictor_version: str
    data_digest: str
    n_row: int
    held_out: dict[str, dict[str, float]]
    protocols: dict[str, ProtocolFigures]


class PromotionRequest(Message):
    """A version in the registry."""

    version: Text

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": "1"}]})


class ProblemResponse(BaseModel):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    field: str = ""
    did_you_mean: list[str] = []
    request_id: str = ""
    checks: dict[str, Check] | None = None
