"""Background work: retrainings run one at a time in a process of their own.

The queue is huey's, on an SQLite file under the state folder; what was asked for and what came of it stands in the
measurement store, so that a crash loses nothing that was acknowledged.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from huey import SqliteHuey
from huey.consumer import Consumer

from roofcast.data.errors import InputError, RoofcastError
from roofcast.data.store import Retraining
from roofcast.serving.settings import Settings
from roofcast.serving.workbench import Workbench

logger = logging.getLogger(__name__)

INTERRUPTED: Final = "the process that ran it ended; ask for it again"


class JobQueue:
    """The queue of retrainings.

    Parameters
    ----------
    home
        State folder.
    bench
        Where retrainings are recorded and done.
    """

    def __init__(self, home: Path, bench: Workbench) -> None:
        self._bench = bench
        self.huey = SqliteHuey("roofcast", filename=str(home / "jobs.sqlite"), results=False, fsync=True)
        self._task: Any = self.huey.task(name="retrain")(self.run)

    def submit(self) -> Retraining:
        """Record a retraining, queue it and return its record."""
        record = self._bench.store.add_retraining()
        self._task(record.id)
        return record

    def run(self, retraining_id: str) -> None:
        """Do one retraining and record what came of it; one that is no longer queued is left alone."""
        store = self._bench.store
        try:
            store.start_retraining(retraining_id)
        except InputError:
            return
        try:
            report = self._bench.retrain()
        except RoofcastError as error:
            store.fail_retraining(retraining_id, str(error))
        except Exception as error:
            store.fail_retraining(retraining_id, f"{type(error).__name__}: {error}")
            raise
        else:
            store.finish_retraining(retraining_id, report.model_dump(mode="json"))

    def recover(self) -> None:
        """Mark what a dead worker left running as failed, and queue again what it left queued."""
        self.huey.flush()
        for record in reversed(self._bench.store.retrainings()):
            if record.state == "running":
                self._bench.store.fail_retraining(record.id, INTERRUPTED)
            elif record.state == "queued":
                self._task(record.id)


def work(settings: Settings, parent: int | None = None) -> None:
    """Run queued jobs until told to stop; at once if another worker serves this state folder.

    Parameters
    ----------
    parent
        Process id to stop with.
    """
    lock = FileLock(settings.home / "worker.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.info("another worker serves %s", settings.home)
        return
    with lock:
        queue = JobQueue(settings.home, Workbench(settings))
        queue.recover()
        if parent is not None:
            threading.Thread(target=_stop_with, args=(parent,), daemon=True).start()
        Consumer(queue.huey, workers=1, periodic=False, check_worker_health=False).run()


def _stop_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def worker_process() -> Iterator[None]:
    """Run a worker beside the service for as long as the block lasts."""
    command = [sys.executable, "-m", "roofcast.serving.jobs", str(os.getpid())]
    process = subprocess.Popen(command)  # noqa: S603  (our own interpreter and module)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    from roofcast.serving.logs import configure_logs

    configure_logs()
    work(Settings(), int(sys.argv[1]) if len(sys.argv) > 1 else None)
