"""``POST /v1/recommendations``."""

from typing import Any

from fastapi import APIRouter, Response

from roofcast.serving.http.access import READ
from roofcast.serving.http.body import JSON_TYPE
from roofcast.serving.http.guarded_routes import ActiveModel, GuardedRoute, Owner, Parts, Today
from roofcast.serving.http.telemetry.prometheus import RECOMMENDATIONS
from roofcast.serving.recommend.answer.parts import RecommendationResponse
from roofcast.serving.recommend.api.recommendation_service import answer_recommendation
from roofcast.serving.recommend.api.request import RecommendationRequest

router = APIRouter(tags=["recommendations"], route_class=GuardedRoute)


@router.post("/v1/recommendations", dependencies=READ, response_model=RecommendationResponse)
def post_recommendation(
    request: RecommendationRequest, service: Parts, active: ActiveModel, today: Today, owner: Owner
) -> Any:
    """Rank hardware and configurations by cost, among those that meet the limits with the requested confidence.

    If nothing does, the ranking is empty and the rejections give the reasons, the nearest miss first.
    """
    answer = answer_recommendation(request, service.catalog, active, service.stacks, today, owner=owner)
    RECOMMENDATIONS.labels("yes" if answer.entries else "no").inc()
    return Response(answer.model_dump_json(), media_type=JSON_TYPE)  # FastAPI would validate it again
