"""``POST /v1/recommendations``: the main job."""

from __future__ import annotations

from fastapi import APIRouter

from roofcast.serving.bodies import JsonRoute
from roofcast.serving.dependencies import Bench, Loaded, Today
from roofcast.serving.metrics import RECOMMENDATIONS
from roofcast.serving.recommending import answer_recommendation
from roofcast.serving.schemas_recommending import RecommendationRequest, RecommendationResponse

router = APIRouter(tags=["recommendations"], route_class=JsonRoute)


@router.post("/v1/recommendations")
def post_recommendation(
    request: RecommendationRequest, bench: Bench, loaded: Loaded, today: Today
) -> RecommendationResponse:
    """Rank hardware and configuration by cost among what meets the limits with the confidence asked.

    An empty ranking is an answer: the rejections say what stood in the way, the nearest miss first.
    """
    response = answer_recommendation(request, bench, loaded, today)
    RECOMMENDATIONS.labels("yes" if response.entries else "no").inc()
    return response
