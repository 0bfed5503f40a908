"""``/v1/predictor/challenger``: the version that answers beside the champion, and a comparison of the two."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from roofcast.data.errors import NoAnswerError
from roofcast.serving.app_state import promotion
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.http.auth import CALLER
from roofcast.serving.http.body import JsonRoute
from roofcast.serving.http.dependencies import State, Viewer
from roofcast.serving.http.schemas.history import ChallengerResponse, ChallengerWithdrawn
from roofcast.serving.http.schemas.resources import ChallengerRequest
from roofcast.serving.shadow.comparison import VersionComparison, compare_version
from roofcast.training.lifecycle.gate.challenger import NO_CHALLENGER, challenger_of, withdraw_challenger

router = APIRouter(tags=["knowledge"], route_class=JsonRoute)

Version = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


@router.get("/v1/predictor/challenger")
def get_challenger(state: State) -> ChallengerResponse:
    """Return the version that answers a sample of the requests beside the champion; 409 if there is none."""
    return _response(state)


@router.put("/v1/predictor/challenger")
def put_challenger(request: ChallengerRequest, *, http: Request, state: State) -> ChallengerResponse:
    """Make a version of the registry answer beside the champion, unseen; all server processes load it in seconds.

    `PUT /v1/predictor` promotes it.
    """
    state.challenger.refresh(promotion.shadow(state, request.version, http.scope[CALLER]))
    return _response(state)


@router.delete("/v1/predictor/challenger")
def delete_challenger(http: Request, state: State) -> ChallengerWithdrawn:
    """Withdraw the challenger: no version answers beside the champion; 409 if there is none."""
    withdrawn = withdraw_challenger(state.registry, http.scope[CALLER])
    state.challenger.refresh()
    return ChallengerWithdrawn(version=withdrawn.version)


@router.get("/v1/predictor/versions/{version}/comparison")
def get_comparison(
    version: Version,
    state: State,
    viewer: Viewer,
    days: Annotated[
        float | None,
        Query(gt=0, le=36_500, description="Of the last so many days by import; `ROOFCAST_DRIFT_DAYS` by default."),
    ] = None,
) -> VersionComparison:
    """Compare a version with the champion: their answers to the same requests, and their errors on measurements.

    Any version has errors on recent measurements that the caller may list; only a challenger's answers are recorded.
    """
    return compare_version(state, version, days or state.settings.drift_days, viewer)


def _response(state: AppState) -> ChallengerResponse:
    challenger, model = challenger_of(state.registry), state.challenger.model
    if challenger is None:
        raise NoAnswerError(NO_CHALLENGER)
    return ChallengerResponse(
        version=challenger.version,
        sha256=challenger.sha256,
        description=challenger.description,
        is_loaded=model is not None and model.champion == challenger,
        problem=state.challenger.problem,
        shadow_ratio=state.settings.shadow_ratio,
    )
