"""FastAPI dependencies of the routes."""

from __future__ import annotations

import datetime as dt
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Query, Request, Response

from roofcast.data.errors import NotAllowedError
from roofcast.data.measurements.target import Target
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.composition import Service
from roofcast.serving.http.access import CALLER, KEY
from roofcast.serving.http.telemetry.health_monitor import HealthMonitor
from roofcast.serving.queue.queue import JobQueue
from roofcast.serving.shadow.shadow import Shadow

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey
    from roofcast.data.store.provenance import Origin


def _state(name: str) -> Any:
    async def part(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(part)


Parts = Annotated[Service, _state("service")]
ShadowQueue = Annotated[Shadow, _state("shadow")]
Jobs = Annotated[JobQueue, _state("jobs")]
Health = Annotated[HealthMonitor, _state("health_monitor")]
"""Parts of this process: see `roofcast.serving.http.app`."""


async def active_model(service: Parts) -> LoadedModel:
    """Return the champion; `NotReadyError` becomes 503."""
    return service.active_model


async def today() -> dt.date:
    """Return the date by which prices are stale or not."""
    return dt.datetime.now(dt.UTC).date()


async def owner(request: Request) -> str:
    """Return the name of the caller's API key, which owns its stack profiles; empty without a valid key."""
    kind, _, name = str(request.scope.get(CALLER, "")).partition(":")
    return name if kind == "key" else ""


async def viewer(request: Request, service: Parts) -> str | None:
    """Return the key that reads stored rows, `seen_by` of `roofcast.data.store.claims`: None sees the rows of all."""
    key: ApiKey | None = request.scope[KEY]
    if service.settings.share_rows or (key is not None and key.may("admin")):
        return None
    return key.name if key else ""


def origin_of(request: Request) -> Origin:
    """Return the origin of measurements that a request stores, by its API key."""
    from roofcast.data.store.provenance import Origin  # noqa: PLC0415  (needs SQLAlchemy)

    key: ApiKey = request.scope[KEY]
    return Origin(key.name, key.may("admin"))


async def dry_run(
    response: Response,
    *,
    is_wanted: Annotated[
        bool, Query(alias="dry_run", description="Validate and count the rows, store nothing, and answer 200.")
    ] = False,
) -> bool:
    """Return whether an import only counts; it creates nothing then, so the status is not 201."""
    if is_wanted:
        response.status_code = HTTPStatus.OK
    return is_wanted


ActiveModel = Annotated[LoadedModel, Depends(active_model)]
Today = Annotated[dt.date, Depends(today)]
Owner = Annotated[str, Depends(owner)]
Viewer = Annotated[str | None, Depends(viewer)]


async def claim_of_keys(
    request: Request,
    *,
    is_wanted: Annotated[
        bool,
        Query(
            alias="claim",
            description="Make rows that API keys own the operator's: they then teach as measurements of the "
            "service's own stack. For keys of the scope admin.",
        ),
    ] = False,
) -> bool:
    """Return whether an operator's import claims the rows of keys.

    Raises `NotAllowedError` if the caller is no operator.
    """
    key: ApiKey = request.scope[KEY]
    if is_wanted and not key.may("admin"):
        cure = "leave it out, or send a key of the scope admin"
        raise NotAllowedError(
            "claim", f"the key {key.name!r} has the scope {key.scope}, which claims nothing; {cure}"
        )
    return is_wanted


ClaimOfKeys = Annotated[bool, Depends(claim_of_keys)]
DryRun = Annotated[bool, Depends(dry_run)]
Compare = Annotated[bool, Query(description="Compare the new rows with the predictor before the answer.")]
TargetQuery = Annotated[Target, Query(description="What the predictor is about: inference, or training jobs.")]
