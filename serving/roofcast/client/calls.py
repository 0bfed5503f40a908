"""The operations of the service, each once, for both clients to send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import quote

import httpx
from pydantic_core import to_json

from roofcast.client.answers import (
    AcceleratorSpec,
    CampaignInfo,
    ExplanationsResponse,
    MeasurementsAdded,
    ModelSpec,
    Offer,
    OwnCampaign,
    PredictionResponse,
    PredictorResponse,
    ReadinessResponse,
    RecommendationResponse,
    RetrainingResponse,
    ScoreboardResponse,
)
from roofcast.client.requests import (
    ExplanationRequest,
    MeasurementsRequest,
    PredictionRequest,
    PromotionRequest,
    RecommendationRequest,
)

Row = dict[str, float | int | str | bool | None]
"""A row of questions, answers or measurements."""

T = TypeVar("T")

PREDICTIONS: Final = "/v1/predictions"
JSON: Final = "application/json"


def _json(response: httpx.Response) -> Any:
    return response.json()


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and how its answer is read.

    Parameters
    ----------
    content, content_type
        The body, None if there is none.
    may_repeat
        Whether it may be sent again although the service may have acted on it already.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    may_repeat: bool = True


def _get(path: str, **params: Any) -> Call[Any]:
    return Call("GET", path, _json, {name: value for name, value in params.items() if value is not None})


def _send(method: str, path: str, body: object, *, may_repeat: bool = True) -> Call[Any]:
    """Return a call with a body in JSON; NaN is written as null, which is blank."""
    return Call(method, path, _json, content=to_json(body, inf_nan_mode="null"), may_repeat=may_repeat)


def recommend(request: RecommendationRequest) -> Call[RecommendationResponse]:
    """Return the call that ranks hardware and configuration by cost under the limits."""
    return cast("Call[RecommendationResponse]", _send("POST", "/v1/recommendations", request))


def predict(request: PredictionRequest) -> Call[PredictionResponse]:
    """Return the call that predicts a few rows."""
    return cast("Call[PredictionResponse]", _send("POST", PREDICTIONS, request))


def predict_bulk(
    content: bytes,
    content_type: str,
    read: Callable[[httpx.Response], T],
    level: float | None = None,
    reference: Sequence[Row] = (),
) -> Call[T]:
    """Return the call that predicts rows in bulk, answered in the kind that they are sent in."""
    params: dict[str, Any] = {"reference": [to_json(row, inf_nan_mode="null").decode() for row in reference]}
    params |= {} if level is None else {"level": level}
    return Call("POST", PREDICTIONS, read, params, content, content_type, accept=content_type)


def explain(request: ExplanationRequest) -> Call[ExplanationsResponse]:
    """Return the call that tells where the time of each row goes."""
    return cast("Call[ExplanationsResponse]", _send("POST", "/v1/explanations", request))


def add_measurements(request: MeasurementsRequest) -> Call[MeasurementsAdded]:
    """Return the call that keeps measured rows, which are counted and not kept twice if they are sent twice."""
    return cast("Call[MeasurementsAdded]", _send("POST", "/v1/measurements", request))


def measurements(campaign: str | None = None, offset: int = 0, limit: int = 100) -> Call[list[Row]]:
    """Return the call that lists the measurements kept."""
    return _get("/v1/measurements", campaign=campaign, offset=offset, limit=limit)


def retrain() -> Call[RetrainingResponse]:
    """Return the call that queues a retraining, once."""
    return Call("POST", "/v1/retrainings", _json, may_repeat=False)


def retraining(retraining_id: str) -> Call[RetrainingResponse]:
    """Return the call that looks at a retraining."""
    return _get(f"/v1/retrainings/{quote(retraining_id, safe='')}")


def retrainings(limit: int = 100) -> Call[list[RetrainingResponse]]:
    """Return the call that lists the retrainings, the latest first."""
    return _get("/v1/retrainings", limit=limit)


def models() -> Call[list[ModelSpec]]:
    """Return the call that lists the models."""
    return _get("/v1/models")


def accelerators() -> Call[list[AcceleratorSpec]]:
    """Return the call that lists the accelerators."""
    return _get("/v1/accelerators")


def offers() -> Call[list[Offer]]:
    """Return the call that lists the dated prices."""
    return _get("/v1/offers")


def campaigns() -> Call[list[CampaignInfo | OwnCampaign]]:
    """Return the call that lists the campaigns of measurements."""
    return _get("/v1/campaigns")


def predictor() -> Call[PredictorResponse]:
    """Return the call that tells of the predictor in service."""
    return _get("/v1/predictor")


def scoreboard() -> Call[ScoreboardResponse]:
    """Return the call that tells how good the predictor in service is."""
    return _get("/v1/scoreboard")


def promote(request: PromotionRequest) -> Call[PredictorResponse]:
    """Return the call that puts a version into service."""
    return _send("PUT", "/v1/predictor", request)


def roll_back() -> Call[PredictorResponse]:
    """Return the call that puts the version before into service, once."""
    return Call("POST", "/v1/predictor/rollback", _json, may_repeat=False)


def ready() -> Call[ReadinessResponse]:
    """Return the call that asks whether predictions are answered."""
    return _get("/readyz")


def health() -> Call[dict[str, str]]:
    """Return the call that asks whether the process answers."""
    return _get("/healthz")


def metrics() -> Call[str]:
    """Return the call that fetches the metrics, as Prometheus reads them."""
    return Call("GET", "/metrics", lambda response: response.text, accept="text/plain")
