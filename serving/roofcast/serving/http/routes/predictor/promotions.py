"""``PUT /v1/predictor`` and ``POST /v1/predictor/rollback``: promote or roll back a predictor version."""

from fastapi import APIRouter, Request

from roofcast.serving.app_state.promotion import promote, roll_back
from roofcast.serving.http.access import ADMIN
from roofcast.serving.http.callers import CALLER
from roofcast.serving.http.dependencies import Parts
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.http.routes.knowledge import predictor_response
from roofcast.serving.http.schemas.resources import DEFAULT_TARGET, PredictorResponse, PromotionRequest, TargetRequest

router = APIRouter(tags=["knowledge"], route_class=GuardedRoute)


@router.put("/v1/predictor", dependencies=ADMIN)
def put_predictor(request: PromotionRequest, *, http: Request, service: Parts) -> PredictorResponse:
    """Promote a version of the registry; all server processes follow within seconds."""
    champion = service.champions[request.target]
    champion.refresh(promote(champion.registry, request.version, http.scope[CALLER]))
    return predictor_response(champion.active_model, request.target)


@router.post("/v1/predictor/rollback", dependencies=ADMIN)
def post_rollback(http: Request, service: Parts, request: TargetRequest = DEFAULT_TARGET) -> PredictorResponse:
    """Promote the version before the champion; a second rollback promotes the one before that.

    If there is none, or the champion has changed meanwhile, the answer is 409 and the champion stays.
    """
    champion = service.champions[request.target]
    champion.refresh(roll_back(champion.registry, http.scope[CALLER]))
    return predictor_response(champion.active_model, request.target)
