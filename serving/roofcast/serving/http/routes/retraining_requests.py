"""``/v1/retrainings``: train a candidate on all measurements, and promote it if it is not worse."""

import dataclasses
import datetime as dt
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from roofcast.serving.app_state.retraining_schedule import next_retraining_at
from roofcast.serving.app_state.retraining_stages import REGISTRATION
from roofcast.serving.http.access import ADMIN, CALLER, READ, WRITE
from roofcast.serving.http.guarded_routes import GuardedRoute, Jobs, Parts
from roofcast.serving.http.schemas.resources import (
    DEFAULT_TARGET,
    RetrainingResponse,
    RetrainingScheduleResponse,
    TargetRequest,
)

router = APIRouter(tags=["retrainings"], route_class=GuardedRoute)

RetrainingId = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


@router.post("/v1/retrainings", dependencies=WRITE, status_code=HTTPStatus.ACCEPTED)
def post_retraining(jobs: Jobs, response: Response, request: TargetRequest = DEFAULT_TARGET) -> RetrainingResponse:
    """Queue a retraining of a target's predictor, which runs in the background; its state is at the location."""
    record = jobs.submit(request.target)
    response.headers["location"] = f"/v1/retrainings/{record.id}"
    return RetrainingResponse(**dataclasses.asdict(record))


@router.get("/v1/retrainings/{retraining_id}", dependencies=READ)
def get_retraining(retraining_id: RetrainingId, service: Parts) -> RetrainingResponse:
    """Return a retraining: its stage while it runs, its report once it is done."""
    return RetrainingResponse(**dataclasses.asdict(service.store.retrainings.find(retraining_id)))


@router.post("/v1/retrainings/{retraining_id}/cancellation", dependencies=ADMIN)
def post_cancellation(retraining_id: RetrainingId, http: Request, service: Parts) -> RetrainingResponse:
    """Cancel a retraining: one that waits does not start, one that runs stops after the folds that it fits.

    One that registers its candidate, or has ended, is refused.
    """
    record = service.store.retrainings.cancel(retraining_id, http.scope[CALLER], REGISTRATION)
    return RetrainingResponse(**dataclasses.asdict(record))


@router.get("/v1/retrainings", dependencies=READ)
def list_retrainings(service: Parts, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[RetrainingResponse]:
    """List the retrainings, the latest first."""
    return [
        RetrainingResponse(**dataclasses.asdict(record)) for record in service.store.retrainings.load(limit=limit)
    ]


@router.get("/v1/retraining-schedule", dependencies=READ)
def get_retraining_schedule(service: Parts) -> RetrainingScheduleResponse:
    """Return when the worker retrains, if measurements were accepted or withdrawn since the last retraining."""
    expression = service.settings.retrain_at
    next_at = next_retraining_at(expression, dt.datetime.now(dt.UTC))
    return RetrainingScheduleResponse(retrain_at=expression, next_at=next_at)
