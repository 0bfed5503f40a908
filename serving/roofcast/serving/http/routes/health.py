"""``/healthz``, ``/readyz`` and ``/metrics``."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from roofcast.serving.http.access import READ
from roofcast.serving.http.guarded_routes import GuardedRoute, Health, Parts
from roofcast.serving.http.problem_details import RefusedError
from roofcast.serving.http.schemas.resources import ReadinessResponse
from roofcast.serving.http.telemetry.health_monitor import STOPPING
from roofcast.serving.http.telemetry.prometheus import exposition

router = APIRouter(tags=["health"])
guarded = APIRouter(tags=["health"], route_class=GuardedRoute)


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Confirm that the process answers."""
    return {"status": "ok"}


@router.head("/readyz", response_model=None, include_in_schema=False)
@router.get("/readyz", response_model=ReadinessResponse)
async def readyz(service: Parts, monitor: Health) -> ReadinessResponse:
    """Return whether the service predicts, and the state of predictor, store and registry.

    The service predicts without store and registry, so only a missing predictor, a shutdown, or a database file that
    was deleted is a 503.
    """
    checks = monitor.checks
    if monitor.is_stopping or monitor.is_store_lost or not checks["predictor"].ok:
        part = "store" if monitor.is_store_lost else "predictor"
        detail = STOPPING if monitor.is_stopping else checks[part].detail
        raise RefusedError("not-ready", detail, checks=checks)
    status = "ready" if all(check.ok for check in checks.values()) else "degraded"
    return ReadinessResponse(status=status, predictor_version=service.active_model.champion.version, checks=checks)


@guarded.get("/metrics", dependencies=READ, response_class=Response)
def metrics(service: Parts, monitor: Health) -> Response:
    """Return the metrics of all server processes, for Prometheus."""
    return Response(exposition(service, monitor), media_type=CONTENT_TYPE_LATEST)


router.include_router(guarded)
