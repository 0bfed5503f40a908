"""The HTTP application."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from asgi_correlation_id import CorrelationIdMiddleware
from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from roofcast.data.store.api_keys import KeyStore
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.settings import Settings, load_settings
from roofcast.serving.app_state.state_folder import make_home
from roofcast.serving.http.auth import Admission, KeyRing, describe_access
from roofcast.serving.http.body import BodyLimit
from roofcast.serving.http.errors import REQUEST_ID_HEADER, RESPONSES, describe_problems, install_handlers
from roofcast.serving.http.rate_limits import RateLimits
from roofcast.serving.http.routes import (
    health,
    knowledge,
    measurements,
    page,
    predictions,
    promotions,
    recommendations,
    retrainings,
)
from roofcast.serving.http.telemetry.health import HealthMonitor
from roofcast.serving.http.telemetry.request_log import Observation, is_request_id
from roofcast.serving.http.telemetry.tracing import trace
from roofcast.serving.jobs.queue import JobQueue

STARTUP_WAIT_S = 10.0
"""How long the start waits for the store, and for the registry if no champion has served here before; what does not
answer in time is looked at again later."""

ROUTERS = (recommendations, predictions, measurements, retrainings, knowledge, promotions, health, page)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application; it opens its store and loads its champion when it starts, and starts without either.

    Parameters
    ----------
    settings
        None to read them from the environment.

    Raises
    ------
    InputError
        If the environment holds what a setting cannot be.
    """
    chosen = settings or load_settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        bench = AppState(chosen)
        watch = HealthMonitor(bench)
        app.state.workbench, app.state.watch = bench, watch
        app.state.jobs = JobQueue(make_home(chosen.home), bench)
        app.state.key_ring = KeyRing(lambda: KeyStore(bench.store.database))
        is_resumed = await asyncio.to_thread(bench.resume)
        firsts = [asyncio.create_task(look()) for look in (watch.look_at_store, watch.look_at_registry)]
        await asyncio.wait(firsts[:1] if is_resumed else firsts, timeout=STARTUP_WAIT_S)
        looks = [asyncio.create_task(watch.keep(look)) for look in (watch.look_at_registry, watch.look_at_store)]
        with watch.draining(chosen.drain_s):
            yield
        for look in looks:
            look.cancel()
        bench.close()

    app = FastAPIOffline(
        title="roofcast",
        version=version("roofcast"),
        description="How fast an LLM that nobody has run will be, and which hardware serves it at the least cost.",
        lifespan=lifespan,
        responses=RESPONSES,
        redoc_url=None,
        swagger_ui_parameters={"validatorUrl": None},
    )
    install_handlers(app)
    _install_middleware(app, chosen)
    for module in ROUTERS:
        app.include_router(module.router)
    _describe(app, chosen)
    trace(app)
    return app


def _describe(app: FastAPI, settings: Settings) -> None:
    """Add keys and problems to the document, which is made when first asked for."""
    described = app.openapi

    @functools.cache
    def document() -> dict[str, Any]:
        return describe_access(describe_problems(described()), settings.require_key)

    setattr(app, "openapi", document)  # noqa: B010  (FastAPI's own way; mypy forbids the plain assignment)


def _install_middleware(app: FastAPI, settings: Settings) -> None:
    """Add what every request passes, the innermost first."""
    rates = RateLimits(settings.rate_limit) if settings.rate_limit else None
    app.add_middleware(
        BodyLimit,
        max_byte=settings.max_body_byte,
        max_s=settings.max_body_s,
        max_bulk_byte=settings.max_bulk_byte,
        max_bulk_request=settings.max_bulk_request,
    )
    app.add_middleware(Admission, require=settings.require_key, rates=rates)
    app.add_middleware(Observation)
    app.add_middleware(CorrelationIdMiddleware, header_name=REQUEST_ID_HEADER, validator=is_request_id)
