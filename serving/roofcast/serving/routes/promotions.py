"""``PUT /v1/predictor``: put another version into service."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from roofcast.serving.bodies import JsonRoute
from roofcast.serving.dependencies import Bench
from roofcast.serving.routes.knowledge import get_predictor
from roofcast.serving.schemas import PromotionRequest

router = APIRouter(tags=["knowledge"], route_class=JsonRoute)


@router.put("/v1/predictor")
def put_predictor(request: PromotionRequest, bench: Bench) -> dict[str, Any]:
    """Promote a version of the registry, as after a bad retraining; every server process follows within seconds."""
    bench.registry.promote(request.version)
    bench.refresh()
    return get_predictor(bench.in_service)
