"""``PUT /v1/predictor`` and ``POST /v1/predictor/rollback``: put another version into service."""

from __future__ import annotations

from fastapi import APIRouter, Request

from roofcast.serving.app_state.promotion import promote, roll_back, swap
from roofcast.serving.http.auth import CONSUMER
from roofcast.serving.http.body import JsonRoute
from roofcast.serving.http.dependencies import Bench
from roofcast.serving.http.routes.knowledge import described
from roofcast.serving.http.schemas.resources import PredictorResponse, PromotionRequest

router = APIRouter(tags=["knowledge"], route_class=JsonRoute)


@router.put("/v1/predictor")
def put_predictor(request: PromotionRequest, *, http: Request, bench: Bench) -> PredictorResponse:
    """Promote a version of the registry, as after a bad retraining; every server process follows within seconds."""
    return described(swap(bench, promote(bench, request.version, http.scope[CONSUMER])))


@router.post("/v1/predictor/rollback")
def post_rollback(http: Request, bench: Bench) -> PredictorResponse:
    """Put the version before the champion back into service, and asked again the one before that.

    If there is none left to go back to, or another one has come into service meanwhile, the answer is 409 and the
    champion stays.
    """
    return described(swap(bench, roll_back(bench, http.scope[CONSUMER])))
