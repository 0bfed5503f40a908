"""What routes are given."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import Depends, Request

from roofcast.serving.jobs import JobQueue
from roofcast.serving.workbench import InService, Workbench


def workbench(request: Request) -> Workbench:
    """Return the workbench of this process."""
    found: Workbench = request.app.state.workbench
    return found


def in_service(bench: Annotated[Workbench, Depends(workbench)]) -> InService:
    """Return the champion, or answer 503 through `NotReadyError`."""
    return bench.in_service


def jobs(request: Request) -> JobQueue:
    """Return the job queue of this process."""
    found: JobQueue = request.app.state.jobs
    return found


def today() -> dt.date:
    """Return the day, by which prices are old or not."""
    return dt.datetime.now(dt.UTC).date()


Bench = Annotated[Workbench, Depends(workbench)]
Loaded = Annotated[InService, Depends(in_service)]
Jobs = Annotated[JobQueue, Depends(jobs)]
Today = Annotated[dt.date, Depends(today)]
