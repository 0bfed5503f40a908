"""``/v1/predictor/versions`` and ``/v1/predictor/changes``."""

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Query

from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.http.access import READ
from roofcast.serving.http.dependencies import Parts, TargetQuery
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.http.schemas.history import ChangeResponse, VersionResponse
from roofcast.training.lifecycle.gate.challenger_alias import challenger_of
from roofcast.training.lifecycle.registry.champion_changes import read_changes

router = APIRouter(tags=["knowledge"], route_class=GuardedRoute)


@router.get("/v1/predictor/versions", dependencies=READ)
def list_versions(service: Parts, target: TargetQuery = INFERENCE) -> list[VersionResponse]:
    """List the versions of a target's predictor, the newest first, then the shipped one."""
    registry = service.champions[target].registry
    champion, challenger = registry.champion(), challenger_of(registry)
    return [
        VersionResponse(
            version=v.version,
            sha256=v.sha256,
            run_id=v.run_id,
            in_service=v == champion,
            is_challenger=v == challenger,
            description=v.description,
        )
        for v in registry.versions()
    ]


@router.get("/v1/predictor/changes", dependencies=READ)
def list_changes(service: Parts, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[ChangeResponse]:
    """List the changes of champion and challenger made in this state folder, the latest first, with their callers."""
    changes = read_changes(service.settings.home, limit)
    return [ChangeResponse.model_validate(dataclasses.asdict(change)) for change in changes]
