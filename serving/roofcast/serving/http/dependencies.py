"""What routes are given."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import Depends, Request

from roofcast.serving.app_state.app_state import InService, Workbench
from roofcast.serving.http.telemetry.health import Watch
from roofcast.serving.jobs.queue import JobQueue


async def workbench(request: Request) -> Workbench:
    """Return the workbench of this process."""
    found: Workbench = request.app.state.workbench
    return found


async def in_service(bench: Annotated[Workbench, Depends(workbench)]) -> InService:
    """Return the champion, or answer 503 through `NotReadyError`."""
    return bench.in_service


async def jobs(request: Request) -> JobQueue:
    """Return the job queue of this process."""
    found: JobQueue = request.app.state.jobs
    return found


async def watch(request: Request) -> Watch:
    """Return what this process knows of its own state."""
    found: Watch = request.app.state.watch
    return found


async def today() -> dt.date:
    """Return the day, by which prices are old or not."""
    return dt.datetime.now(dt.UTC).date()


Bench = Annotated[Workbench, Depends(workbench)]
Loaded = Annotated[InService, Depends(in_service)]
Jobs = Annotated[JobQueue, Depends(jobs)]
Today = Annotated[dt.date, Depends(today)]
Watching = Annotated[Watch, Depends(watch)]
