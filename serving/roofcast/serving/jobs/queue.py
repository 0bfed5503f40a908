"""Background work: retrainings run one at a time in a process of their own.

The queue is huey's, on an SQLite file in the state folder. Requests and results are records of the measurement store,
so a crash loses nothing that was acknowledged.
"""

# ruff: noqa: PLC0415  (the process that starts the servers and the worker needs neither the queue nor the learning)

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock, Timeout

from roofcast.data.errors import InputError, NotReadyError, RoofcastError

if TYPE_CHECKING:
    from roofcast.data.store.retrainings import Retraining
    from roofcast.serving.app_state.app_state import AppState
    from roofcast.serving.app_state.settings import Settings

logger = logging.getLogger(__name__)

RESTART_PAUSE_S: Final = 5.0
STOP_WAIT_S: Final = 10.0
INTERRUPTED: Final = (
    "the process that ran it ended before it could say what came of it; see which version is in service, and ask for "
    "it again if that is an older one"
)
RECORD_PAUSE_S: Final = 1.0
MOST_RECORD_PAUSE_S: Final = 60.0
"""How long a store that does not answer is left alone before it is asked again: at first `RECORD_PAUSE_S`."""


class JobQueue:
    """The queue of retrainings.

    Parameters
    ----------
    home
        State folder.
    state
        Its store has the records; it does the retrainings.
    """

    def __init__(self, home: Path, state: AppState) -> None:
        from huey import SqliteHuey

        self._state = state
        self.owner = owner_id(home)
        self.huey = SqliteHuey("roofcast", filename=str(home / "jobs.sqlite"), results=False, fsync=True)
        self._task: Any = self.huey.task(name="retrain")(self.run)

    def submit(self) -> Retraining:
        """Record a retraining, queue it and return its record; a record that is still queued is returned again.

        Raises
        ------
        NotReadyError
            If the store or the queue cannot be written; nothing stays queued then.
        """
        own = self._state.store.retrainings.load(self.owner)
        waiting = (record for record in own if record.state == "queued")
        record = next(waiting, None) or self._state.store.retrainings.add(self.owner)
        try:
            self._task(record.id)
        except sqlite3.Error as error:
            problem = f"the job queue cannot be written: {error}"
            self._state.store.retrainings.fail(record.id, problem)
            raise NotReadyError(problem) from error
        return record

    def run(self, retraining_id: str) -> None:
        """Run one retraining and record its result; a retraining that is no longer queued is skipped."""
        try:
            _persist(lambda: self._state.store.retrainings.start(retraining_id))
        except InputError:
            return
        try:
            report = self._state.retrain()
        except RoofcastError as error:
            self._fail(retraining_id, str(error))
        except Exception as error:
            self._fail(retraining_id, f"{type(error).__name__}: {error}")
            raise
        else:
            _persist(lambda: self._state.store.retrainings.finish(retraining_id, report.model_dump(mode="json")))

    def _fail(self, retraining_id: str, problem: str) -> None:
        _persist(lambda: self._state.store.retrainings.fail(retraining_id, problem))

    def ensure_predictor(self) -> None:
        """Queue a retraining if no champion can be loaded, as after an upgrade that changed the columns."""
        if self._state.registry.is_empty and self._state.registry.shipped:
            return
        try:
            is_there = self._state.refresh()
        except NotReadyError as error:
            logger.warning("whether there is a predictor cannot be said: %s", error)
            return
        except InputError as error:
            logger.warning("the champion cannot be used: %s", error)
            is_there = False
        if not is_there:
            logger.info("no predictor can be used: one is trained in the background")
            self.submit()

    def recover(self) -> None:
        """Mark the retrainings that a dead worker left running as failed, and queue those that it left queued.

        Only what this state folder owns: a store may be shared, and the workers of other folders live on.
        """
        self.huey.flush()
        for record in reversed(self._state.store.retrainings.load(self.owner)):
            if record.state == "running":
                self._state.store.retrainings.fail(record.id, INTERRUPTED)
            elif record.state == "queued":
                self._task(record.id)


def _persist(change: Callable[[], object]) -> None:
    """Change a record; retry with growing pauses while the store does not answer.

    Raises
    ------
    InputError
        If the record is in no state for it; not if a change whose answer was lost may have brought it there.
    """
    pause_s, is_first = RECORD_PAUSE_S, True
    while True:
        try:
            change()
        except NotReadyError as error:
            logger.warning("a retraining cannot be recorded, which is tried again in %g s: %s", pause_s, error)
        except InputError:
            if is_first:
                raise
            return
        else:
            return
        time.sleep(pause_s)
        pause_s, is_first = min(2 * pause_s, MOST_RECORD_PAUSE_S), False


def owner_id(home: Path) -> str:
    """Return the id of this state folder in a store that several folders share; created once."""
    file = home / "owner"
    with FileLock(home / "owner.lock"):
        if not file.exists():
            file.write_text(uuid.uuid4().hex, encoding="ascii")
        return file.read_text(encoding="ascii")


def work(settings: Settings, parent: int | None = None) -> None:
    """Run queued jobs until told to stop; one worker serves a state folder at a time.

    Parameters
    ----------
    settings
        Where things are.
    parent
        Id of the process to stop with. A worker with a parent stands by while another one works, and takes its
        place when it ends; one without returns at once.
    """
    from huey.consumer import Consumer

    from roofcast.serving.app_state.app_state import AppState

    if parent is not None:
        threading.Thread(target=_stop_with, args=(parent,), daemon=True).start()
    settings.home.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(settings.home / "worker.lock", timeout=0 if parent is None else -1, poll_interval=0.5):
            queue = JobQueue(settings.home, AppState(settings))
            queue.recover()
            queue.ensure_predictor()
            Consumer(queue.huey, workers=1, periodic=False, check_worker_health=False).run()
    except Timeout:
        logger.info("another worker serves %s", settings.home)


def _stop_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def worker_process() -> Iterator[None]:
    """Run a worker beside the service for as long as the block lasts; one that dies is replaced."""
    stopping = threading.Event()
    keeper = threading.Thread(target=_keep_working, args=(stopping, os.getpid()), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        stopping.set()
        keeper.join()


def _keep_working(stopping: threading.Event, parent: int) -> None:
    command = [sys.executable, "-m", "roofcast.serving.jobs.worker", str(parent)]
    while not stopping.is_set():
        process = subprocess.Popen(command)  # noqa: S603  (our own interpreter and module)
        while process.poll() is None and not stopping.wait(0.2):
            pass
        if process.returncode is None:
            _stop(process)
        else:
            logger.warning("the worker ended with status %d", process.returncode)
            stopping.wait(RESTART_PAUSE_S)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
