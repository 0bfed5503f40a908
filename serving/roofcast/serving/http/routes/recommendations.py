"""``POST /v1/recommendations``: the main job."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from roofcast.serving.http.body import JSON_TYPE, JsonRoute
from roofcast.serving.http.dependencies import Bench, Loaded, Today
from roofcast.serving.http.telemetry.prometheus import RECOMMENDATIONS
from roofcast.serving.recommend.api.models import RecommendationRequest, RecommendationResponse
from roofcast.serving.recommend.api.service import answer_recommendation

router = APIRouter(tags=["recommendations"], route_class=JsonRoute)


@router.post("/v1/recommendations", response_model=RecommendationResponse)
def post_recommendation(request: RecommendationRequest, bench: Bench, loaded: Loaded, today: Today) -> Any:
    """Rank hardware and configuration by cost among what meets the limits with the confidence asked.

    An empty ranking is an answer: the rejections say what stood in the way, the nearest miss first.
    """
    answer = answer_recommendation(request, bench, loaded, today)
    RECOMMENDATIONS.labels("yes" if answer.entries else "no").inc()
    return Response(answer.model_dump_json(), media_type=JSON_TYPE)  # else checked again, in another thread
