"""``/v1/predictor``: versions and changes, promotion and rollback, the challenger and its comparison."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from roofcast.data.errors import NoAnswerError
from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.composition import Service
from roofcast.serving.http.access import ADMIN, CALLER, READ
from roofcast.serving.http.guarded_routes import GuardedRoute, Parts, TargetQuery, Viewer
from roofcast.serving.http.routes.knowledge import predictor_response
from roofcast.serving.http.schemas.resources import (
    DEFAULT_TARGET,
    ChallengerRequest,
    PredictorResponse,
    PromotionRequest,
    TargetRequest,
)
from roofcast.serving.shadow.version_comparison import VersionComparison, compare_version
from roofcast.training.lifecycle.gate.challenger_alias import (
    NO_CHALLENGER,
    VersionSummary,
    challenger_of,
    summarize_versions,
    withdraw_challenger,
)
from roofcast.training.lifecycle.registry.champion_changes import ChampionChange, read_changes


class ChallengerResponse(BaseModel):
    """The challenger; `is_loaded` is that of the answering server process, and `problem` why it has not loaded it."""

    version: str
    sha256: str
    description: str
    is_loaded: bool
    problem: str
    shadow_ratio: Annotated[float, Field(description="Share of the prediction requests that it answers too.")]


class ChallengerWithdrawn(BaseModel):
    """The version that was the challenger."""

    version: str


router = APIRouter(tags=["knowledge"], route_class=GuardedRoute)


@router.get("/v1/predictor/versions", dependencies=READ)
def list_versions(service: Parts, target: TargetQuery = INFERENCE) -> list[VersionSummary]:
    """List the versions of a target's predictor, the newest first, then the shipped one."""
    return summarize_versions(service.champions[target].registry)


@router.get("/v1/predictor/changes", dependencies=READ)
def list_changes(service: Parts, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[ChampionChange]:
    """List the changes of champion and challenger made in this state folder, the latest first, with their callers."""
    return read_changes(service.settings.home, limit)


@router.put("/v1/predictor", dependencies=ADMIN)
def put_predictor(request: PromotionRequest, *, http: Request, service: Parts) -> PredictorResponse:
    """Promote a version of the registry; all server processes follow within seconds."""
    champion = service.champions[request.target]
    champion.promote(request.version, http.scope[CALLER])
    return predictor_response(champion.active_model, request.target)


@router.post("/v1/predictor/rollback", dependencies=ADMIN)
def post_rollback(http: Request, service: Parts, request: TargetRequest = DEFAULT_TARGET) -> PredictorResponse:
    """Promote the version before the champion; a second rollback promotes the one before that.

    If there is none, or the champion has changed meanwhile, the answer is 409 and the champion stays.
    """
    champion = service.champions[request.target]
    champion.roll_back(http.scope[CALLER])
    return predictor_response(champion.active_model, request.target)


Version = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


@router.get("/v1/predictor/challenger", dependencies=READ)
def get_challenger(service: Parts) -> ChallengerResponse:
    """Return the version that answers a sample of the requests beside the champion; 409 if there is none."""
    return _response(service)


@router.put("/v1/predictor/challenger", dependencies=ADMIN)
def put_challenger(request: ChallengerRequest, *, http: Request, service: Parts) -> ChallengerResponse:
    """Make a version of the registry answer beside the champion, unseen; all server processes load it in seconds.

    `PUT /v1/predictor` promotes it.
    """
    service.challenger.shadow(request.version, http.scope[CALLER])
    return _response(service)


@router.delete("/v1/predictor/challenger", dependencies=ADMIN)
def delete_challenger(http: Request, service: Parts) -> ChallengerWithdrawn:
    """Withdraw the challenger: no version answers beside the champion; 409 if there is none."""
    withdrawn = withdraw_challenger(service.registry, http.scope[CALLER])
    service.challenger.refresh()
    return ChallengerWithdrawn(version=withdrawn.version)


@router.get("/v1/predictor/versions/{version}/comparison", dependencies=READ)
def get_comparison(
    version: Version,
    service: Parts,
    viewer: Viewer,
    days: Annotated[
        float | None,
        Query(gt=0, le=36_500, description="Of the last so many days by import; `ROOFCAST_DRIFT_DAYS` by default."),
    ] = None,
) -> VersionComparison:
    """Compare a version with the champion: their answers to the same requests, and their errors on measurements.

    Any version has errors on recent measurements that the caller may list; only a challenger's answers are recorded.
    """
    models = service.compared_models
    other = service.versions.load(version, models)
    return compare_version(service.store, models, other, days or service.settings.drift_days, viewer)


def _response(service: Service) -> ChallengerResponse:
    challenger, model = challenger_of(service.registry), service.challenger.model
    if challenger is None:
        raise NoAnswerError(NO_CHALLENGER)
    return ChallengerResponse(
        version=challenger.version,
        sha256=challenger.sha256,
        description=challenger.description,
        is_loaded=model is not None and model.champion == challenger,
        problem=service.challenger.problem,
        shadow_ratio=service.settings.shadow_ratio,
    )
