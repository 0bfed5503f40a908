"""What routes are given."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import Depends, Request

from roofcast.serving.app_state.app_state import AppState, InService
from roofcast.serving.http.telemetry.health import HealthMonitor
from roofcast.serving.jobs.queue import JobQueue


async def workbench(request: Request) -> AppState:
    """Return the workbench of this process."""
    found: AppState = request.app.state.workbench
    return found


async def in_service(bench: Annotated[AppState, Depends(workbench)]) -> InService:
    """Return the champion, or answer 503 through `NotReadyError`."""
    return bench.in_service


async def jobs(request: Request) -> JobQueue:
    """Return the job queue of this process."""
    found: JobQueue = request.app.state.jobs
    return found


async def watch(request: Request) -> HealthMonitor:
    """Return what this process knows of its own state."""
    found: HealthMonitor = request.app.state.watch
    return found


async def today() -> dt.date:
    """Return the day, by which prices are old or not."""
    return dt.datetime.now(dt.UTC).date()


Bench = Annotated[AppState, Depends(workbench)]
Loaded = Annotated[InService, Depends(in_service)]
Jobs = Annotated[JobQueue, Depends(jobs)]
Today = Annotated[dt.date, Depends(today)]
Watching = Annotated[HealthMonitor, Depends(watch)]
