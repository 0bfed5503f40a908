"""``POST /v1/training/predictions`` and ``POST /v1/training/recommendations``."""

from typing import Any

from fastapi import APIRouter, Response

from roofcast.serving.http.access import READ
from roofcast.serving.http.body import JSON_TYPE
from roofcast.serving.http.dependencies import Parts, Today
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.jobs.job_answer_parts import JobPredictionResponse, JobRecommendationResponse
from roofcast.serving.jobs.job_request import JobPredictionRequest, JobRecommendationRequest
from roofcast.serving.jobs.job_service import answer_training_predictions, answer_training_recommendation

router = APIRouter(tags=["training"], route_class=GuardedRoute)


@router.post("/v1/training/predictions", dependencies=READ, response_model=JobPredictionResponse)
def post_training_predictions(request: JobPredictionRequest, service: Parts) -> Any:
    """Predict step time, throughput, MFU and peak memory of each training job; an invalid row gets its own status.

    Blank settings of the plan are those of the fastest plan that fits.
    """
    answer = answer_training_predictions(request, service.job_catalog, service.job_model)
    return Response(answer.model_dump_json(), media_type=JSON_TYPE)  # FastAPI would validate it again


@router.post("/v1/training/recommendations", dependencies=READ, response_model=JobRecommendationResponse)
def post_training_recommendation(request: JobRecommendationRequest, service: Parts, today: Today) -> Any:
    """Rank hardware and plans for a training job by cost, among those that fit and meet deadline and budget.

    One entry for each accelerator, kind of price and market; the front has the fastest run for each cost.
    """
    answer = answer_training_recommendation(request, service.job_catalog, service.job_model, today)
    return Response(answer.model_dump_json(), media_type=JSON_TYPE)
