"""The HTTP application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.responses import RedirectResponse

from roofcast.data.errors import RoofcastError
from roofcast.serving.bodies import BodyLimit
from roofcast.serving.jobs import JobQueue
from roofcast.serving.problems import RESPONSES, describe_problems, install_handlers
from roofcast.serving.routes import health, knowledge, measurements, predictions, recommendations, retrainings
from roofcast.serving.settings import Settings, load_settings
from roofcast.serving.workbench import Workbench

logger = logging.getLogger(__name__)

STARTUP_WAIT_S = 10.0
"""How long the start waits for the champion; a registry that does not answer in time is looked at again later."""

ROUTERS = (recommendations, predictions, measurements, retrainings, knowledge, health)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application; it opens its store and loads its champion when it starts.

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
        bench = await asyncio.to_thread(Workbench, chosen)
        app.state.workbench = bench
        app.state.jobs = JobQueue(chosen.home, bench)
        first = asyncio.create_task(_refresh(bench))
        await asyncio.wait({first}, timeout=STARTUP_WAIT_S)
        polling = asyncio.create_task(_poll(bench))
        yield
        polling.cancel()
        bench.store.close()

    app = FastAPI(
        title="roofcast",
        version=version("roofcast"),
        description="How fast an LLM that nobody has run will be, and which hardware serves it at the least cost.",
        lifespan=lifespan,
        responses=RESPONSES,
    )
    install_handlers(app)
    app.add_middleware(BodyLimit, max_byte=chosen.max_body_byte)
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_api_route("/", lambda: RedirectResponse("/docs"), include_in_schema=False)
    document = describe_problems(app.openapi())
    setattr(app, "openapi", lambda: document)  # noqa: B010  (FastAPI's own way; mypy forbids the plain assignment)
    return app


async def _poll(bench: Workbench) -> None:
    while True:
        await asyncio.sleep(bench.settings.poll_s)
        await _refresh(bench)


async def _refresh(bench: Workbench) -> None:
    """Put a new champion into service; whatever goes wrong, the one in service stays and is looked for again."""
    try:
        if await asyncio.to_thread(bench.refresh):
            logger.info("predictor version %s is in service", bench.in_service.champion.version)
    except RoofcastError as error:
        logger.warning("no newer predictor could be loaded: %s", error)
    except Exception:
        logger.exception("no newer predictor could be loaded")
