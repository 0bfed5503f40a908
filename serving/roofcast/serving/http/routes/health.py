"""``/healthz``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from roofcast.serving.http.dependencies import Bench, Watching
from roofcast.serving.http.errors import problem
from roofcast.serving.http.schemas.resources import ReadinessResponse
from roofcast.serving.http.telemetry.health import STOPPING
from roofcast.serving.http.telemetry.prometheus import exposition

router = APIRouter(tags=["health"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.head("/readyz", response_model=None, include_in_schema=False)
@router.get("/readyz", response_model=ReadinessResponse)
async def readyz(bench: Bench, watch: Watching) -> ReadinessResponse | JSONResponse:
    """Say whether predictions are answered, and how predictor, store and registry are, each with its reason.

    Without store or registry predictions go on, so that only a missing predictor or a stop under way is a 503.
    """
    checks = watch.checks
    if watch.is_stopping or not checks["predictor"].ok:
        detail = STOPPING if watch.is_stopping else checks["predictor"].detail
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", detail, checks=checks)
    is_whole = all(check.ok for check in checks.values())
    version = bench.in_service.champion.version
    return ReadinessResponse(status="ready" if is_whole else "degraded", predictor_version=version, checks=checks)


@router.get("/metrics", response_class=Response)
def metrics(bench: Bench, watch: Watching) -> Response:
    """Return counts and times of all server processes, for Prometheus."""
    return Response(exposition(bench, watch), media_type=CONTENT_TYPE_LATEST)
