"""FastAPI application."""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

from asgi_correlation_id import CorrelationIdMiddleware
from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline

from roofcast.data.errors import NotReadyError
from roofcast.data.home import make_home
from roofcast.data.store.api_keys import KeyStore
from roofcast.serving.app_state.settings import Settings, load_settings
from roofcast.serving.composition import Service, build_service
from roofcast.serving.http.access import Gate, KeyCache, RateLimits, describe_access
from roofcast.serving.http.body import Bodies
from roofcast.serving.http.guarded_routes import refuse_unknown_parameters
from roofcast.serving.http.load_shedding import EarlyRefusal, Lanes
from roofcast.serving.http.problem_details import REQUEST_ID_HEADER, RESPONSES, describe_problems, install_handlers
from roofcast.serving.http.request_log import RequestLog, is_request_id
from roofcast.serving.http.routes import (
    health,
    jobs,
    knowledge,
    page,
    predictions,
    predictor_versions,
    recommendations,
    retraining_requests,
)
from roofcast.serving.http.routes.measurements import measurement_files, measurements, own_stacks
from roofcast.serving.http.telemetry.health_monitor import HealthMonitor
from roofcast.serving.http.telemetry.prometheus import count_shadow
from roofcast.serving.http.telemetry.tracing import trace
from roofcast.serving.queue.parent_death import end_with_parent
from roofcast.serving.queue.queue import JobQueue
from roofcast.serving.shadow.shadow import Shadow

logger = logging.getLogger(__name__)

STARTUP_WAIT_S = 10.0
"""Longest wait at startup for the store, and for the registry if no champion is cached; both are polled later."""

N_AT_START = 3
"""Groups of parts that are checked at startup: store, catalogue and registries."""

ROUTERS = (
    recommendations, predictions, jobs, measurements, measurement_files, own_stacks,
    retraining_requests, knowledge, predictor_versions, health, page,
)  # fmt: skip


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application; it opens the store and loads the champion at startup, and starts without either.

    `settings`: None to read them from the environment. Raises `InputError` if a setting in the environment is
    invalid.
    """
    end_with_parent()
    settings = settings or load_settings()
    lanes = Lanes(settings.max_running, settings.max_dear, settings.max_waiting, settings.max_wait_s)
    app = FastAPIOffline(
        title="roofcast",
        version=version("roofcast"),
        description="Predict how an LLM performs on hardware, and recommend the cheapest hardware within limits.",
        lifespan=_lifespan(settings, lanes),
        dependencies=[Depends(refuse_unknown_parameters)],
        responses=RESPONSES,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # Starlette builds the address of a redirect from the request's Host
        swagger_ui_parameters={"validatorUrl": None},
    )
    app.state.lanes = lanes
    app.state.bodies = Bodies(
        settings.max_body_byte, settings.max_body_s, settings.max_bulk_byte, settings.max_bulk_request
    )
    install_handlers(app)
    _install_middleware(app, lanes)
    for module in ROUTERS:
        app.include_router(module.router)
    app.include_router(jobs.files)
    _describe(app, settings)
    trace(app)
    return app


def import_learning_libraries() -> None:
    """Import what the first large request needs; the server is ready before."""
    for name in ("scipy.linalg", "scipy.special"):
        import_module(name)


def prepare_comparisons(service: Service) -> None:
    """Load what the first import is compared with; the server is ready before."""
    try:
        service.learnt_rows.names(service.store, service.active_model)
    except NotReadyError as error:
        logger.info("comparisons not prepared: %s", error)


def _lifespan(settings: Settings, lanes: Lanes) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = build_service(settings)
        run = asyncio.get_running_loop().run_in_executor
        resumes = [champion.resume for champion in service.champions.values()]
        resumed = [run(None, resume) for resume in resumes]  # bundles load during the imports below
        monitor = HealthMonitor(service)
        app.state.service, app.state.health_monitor = service, monitor
        app.state.shadow = Shadow(
            service.challenger,
            service.stores,
            service.catalogs,
            sample_ratio=settings.shadow_ratio,
            count=count_shadow,
            is_busy=lanes.is_busy,
        )
        app.state.jobs = JobQueue(make_home(settings.home), service)
        app.state.key_cache = KeyCache(lambda: KeyStore(service.store.database))
        rates = RateLimits(settings.rate_limit) if settings.rate_limit else None
        app.state.gate = Gate(settings.require_key, rates, app.state.key_cache)
        is_resumed, _ = await asyncio.gather(*resumed)
        first = [asyncio.create_task(monitor.check(*parts)) for parts in monitor.parts[:N_AT_START]]
        await asyncio.wait(first[:2] if is_resumed else first, timeout=STARTUP_WAIT_S)
        polls = [asyncio.create_task(monitor.poll(*parts)) for parts in monitor.parts]
        polls.append(asyncio.create_task(asyncio.to_thread(import_learning_libraries)))
        polls.append(asyncio.create_task(asyncio.to_thread(prepare_comparisons, service)))
        with monitor.drain_at_sigterm(settings.drain_s):
            yield
        for poll in polls:
            poll.cancel()
        await asyncio.to_thread(app.state.shadow.close)
        service.close()
        # Routers of the module outlive the application and refer to it; predictors do not.
        for name in ("service", "health_monitor", "shadow", "jobs", "key_cache", "gate"):
            delattr(app.state, name)

    return lifespan


def _describe(app: FastAPI, settings: Settings) -> None:
    openapi = app.openapi

    @functools.cache
    def document() -> dict[str, Any]:
        return describe_access(describe_problems(openapi()), settings.require_key)

    setattr(app, "openapi", document)  # noqa: B010  (FastAPI's own way; mypy forbids the plain assignment)


def _install_middleware(app: FastAPI, lanes: Lanes) -> None:
    app.add_middleware(RequestLog)
    app.add_middleware(CorrelationIdMiddleware, header_name=REQUEST_ID_HEADER, validator=is_request_id)
    app.add_middleware(EarlyRefusal, lanes=lanes)
