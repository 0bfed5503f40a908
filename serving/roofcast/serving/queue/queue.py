"""Background work: retrainings run one at a time in a process of their own.

huey queues the jobs in an SQLite file of the state folder. Requests and results are records of the measurement store,
so a crash loses no acknowledged request.
"""

# ruff: noqa: PLC0415  (the parent process needs neither the queue nor the learning libraries)

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filelock import FileLock, Timeout
from huey.registry import Message
from huey.serializer import Serializer

from roofcast.data.errors import InputError, NotReadyError, RoofcastError
from roofcast.data.measurements.target import INFERENCE, TARGETS, Target
from roofcast.data.private_files import make_private_file
from roofcast.serving.app_state.retraining_schedule import DueTimes, RetrainingSchedule, next_retraining_at
from roofcast.serving.app_state.retraining_stages import REGISTRATION, CancelledRetrainingError, record_stages
from roofcast.serving.queue.parent_death import signal_at_parent_death

if TYPE_CHECKING:
    from roofcast.data.store.retrainings import Retraining
    from roofcast.serving.app_state.settings import Settings
    from roofcast.serving.composition import Service
    from roofcast.training.lifecycle.retraining import RetrainingReport


class JsonSerializer(Serializer):  # type: ignore[misc]  # huey has no types
    """Serializer of huey that reads and writes messages whose arguments are JSON values, and nothing else."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps(data._asdict()).encode()

    def _deserialize(self, data: bytes) -> Message:
        fields: Any = json.loads(data)
        if not isinstance(fields, dict) or not fields.keys() <= set(Message._fields):
            raise ValueError("a row of the job queue is no message")
        return Message(**fields)


logger = logging.getLogger(__name__)

T = TypeVar("T")

RESTART_PAUSE_S: Final = 5.0
STOP_WAIT_S: Final = 10.0
MAX_INTERRUPTION: Final = 2
"""How often a retraining whose worker has ended is queued again: one that kills its worker ends as failed."""

INTERRUPTED: Final = (
    "the worker process ended before it recorded a result; see which version is in service, and submit another "
    "retraining if that is an older one"
)
RECORD_PAUSE_S: Final = 1.0
MAX_RECORD_PAUSE_S: Final = 60.0
"""Pauses between attempts to write to a store that does not answer: from the first, doubled up to the second."""


class JobQueue:
    """The queue of retrainings.

    `retrain`: runs a retraining of a target with a progress callback; `Service.retrain` by default.
    """

    def __init__(self, home: Path, service: Service, retrain: Callable[..., RetrainingReport] | None = None) -> None:
        from huey import SqliteHuey

        self._service = service
        self.retrain: Callable[..., RetrainingReport] = retrain or service.retrain
        self.owner = owner_id(home)
        self._folds = home / "folds"
        file, serializer = make_private_file(home / "jobs.sqlite"), JsonSerializer()
        self.huey = SqliteHuey("roofcast", filename=str(file), serializer=serializer, results=False, fsync=True)
        self._task: Any = self.huey.task(name="retrain")(self.run)
        if service.settings.retrain_at:
            times = DueTimes(RetrainingSchedule(service.settings.retrain_at), dt.datetime.now(dt.UTC))
            self.huey.periodic_task(times.is_due, name="retrain_if_changed")(self.submit_changed)

    def submit(self, target: Target = INFERENCE) -> Retraining:
        """Record a retraining, queue it and return its record; if one of the target is queued already, return that.

        Raises `NotReadyError` if the store or the queue cannot be written; nothing is queued then.
        """
        record = self._service.store.retrainings.add(self.owner, target)
        self._enqueue(record)
        return record

    def submit_changed(self) -> list[Retraining]:
        """Queue a retraining of each target whose measurements have changed since the last one that is done.

        A target of which one is pending waits for the next time. State folders with the same MLflow server count as
        one service: one of them retrains.
        """
        is_shared, records = bool(self._service.settings.mlflow_tracking_uri), []
        for target in TARGETS:
            try:
                store = self._service.store
                digest = store.of(target).learnable_digest()
                record = store.retrainings.add_if_changed(self.owner, target, digest, is_shared=is_shared)
                if record:
                    self._enqueue(record)
                    records.append(record)
                    logger.info("retraining scheduled id=%s target=%s", record.id, target)
            except NotReadyError as error:
                logger.warning("schedule of retrainings not followed, target=%s: %s", target, error)
        return records

    def _enqueue(self, record: Retraining) -> None:
        # sent unless a message waits: a process may have ended before it sent its own
        try:
            if not self._is_sent(record):
                self._task(record.id)
        except sqlite3.Error as error:
            problem = f"the job queue cannot be written: {error}"
            self._service.store.retrainings.fail(record.id, problem)
            raise NotReadyError(problem) from error

    def _is_sent(self, record: Retraining) -> bool:
        from huey.exceptions import HueyException

        try:
            return any(list(task.args) == [record.id] for task in self.huey.pending())
        except (ValueError, HueyException):  # a damaged message, which the worker logs and drops
            return False

    def run(self, retraining_id: str) -> None:
        """Run one retraining and record its result; one that is not queued is skipped, a cancelled one stops."""
        try:
            _persist(lambda: self._service.store.retrainings.start(retraining_id))
        except InputError:
            self._remove_folds(retraining_id)
            return
        from roofcast.training.lifecycle.fold_store import keep_folds

        target = _repeat(lambda: self._service.store.retrainings.find(retraining_id)).target
        digest = _repeat(self._service.store.of(target).learnable_digest)
        try:
            stages = record_stages(retraining_id, partial(self._advance, retraining_id))
            with keep_folds(self._folds / retraining_id, self._service.registry.key):
                report = self.retrain(target, stages)
        except CancelledRetrainingError:
            logger.info("retraining stops, id=%s: cancelled", retraining_id)
        except RoofcastError as error:
            self._fail(retraining_id, str(error))
        except Exception as error:
            self._fail(retraining_id, f"{type(error).__name__}: {error}")
            raise
        else:
            answer = report.model_dump(mode="json")
            _persist(lambda: self._service.store.retrainings.finish(retraining_id, answer, digest))
        finally:
            self._remove_folds(retraining_id)

    def _remove_folds(self, retraining_id: str) -> None:
        shutil.rmtree(self._folds / retraining_id, ignore_errors=True)

    def _advance(self, retraining_id: str, stage: str, n_step_done: int, n_step: int) -> None:
        change = partial(self._service.store.retrainings.advance, retraining_id, stage, n_step_done, n_step)
        if stage == REGISTRATION:  # recorded surely, so that nobody cancels what is promoted
            _persist(change, is_repeatable=True)
        else:
            change()

    def _fail(self, retraining_id: str, problem: str) -> None:
        try:
            _persist(lambda: self._service.store.retrainings.fail(retraining_id, problem))
        except InputError as error:
            logger.info("retraining stops, id=%s: %s; %s", retraining_id, error, problem)

    def ensure_predictor(self) -> None:
        """Queue a retraining if no champion can be loaded, as after an upgrade that changed the columns."""
        try:
            is_loaded = self._service.champions[INFERENCE].refresh()
        except NotReadyError as error:
            logger.warning("champion not checked: %s", error)
            return
        except InputError as error:
            logger.warning("champion not loaded: %s", error)
            is_loaded = False
        if not is_loaded:
            logger.info("no predictor can be loaded; one is trained in the background")
            self.submit()

    def recover(self) -> None:
        """Queue the retrainings of a dead worker again.

        A running one starts again, with the folds that it has fitted, unless it was registering its candidate or has
        ended several workers.
        Only records of this state folder change: other state folders with live workers may share the store.
        """
        self.huey.flush()
        pending = set()
        for record in reversed(self._service.store.retrainings.load(self.owner)):
            is_running, is_registered = record.state == "running", record.stage == REGISTRATION
            if is_running and (is_registered or record.n_interruption >= MAX_INTERRUPTION):
                self._service.store.retrainings.fail(record.id, INTERRUPTED)
                continue
            if is_running:
                self._service.store.retrainings.queue_again(record.id)
            if is_running or record.state == "queued":
                self._task(record.id)
                pending.add(record.id)
        for folder in self._folds.glob("*"):
            if folder.name not in pending:
                self._remove_folds(folder.name)


def _persist(change: Callable[[], object], *, is_repeatable: bool = False) -> None:
    pause_s, is_first = RECORD_PAUSE_S, True
    while True:
        try:
            change()
        except NotReadyError as error:
            logger.warning("retraining not recorded, retry_s=%g: %s", pause_s, error)
        except InputError:  # on a retry the first attempt may have succeeded
            if is_first or is_repeatable:
                raise
            return
        else:
            return
        time.sleep(pause_s)
        pause_s, is_first = min(2 * pause_s, MAX_RECORD_PAUSE_S), False


def _repeat(read: Callable[[], T]) -> T:
    answers: list[T] = []
    _persist(lambda: answers.append(read()))
    return answers[0]


def owner_id(home: Path) -> str:
    """Return the id of this state folder among those that share a store; created by the first call."""
    file = home / "owner"
    with FileLock(home / "owner.lock"):
        if not file.exists():
            file.write_text(uuid.uuid4().hex, encoding="ascii")
        return file.read_text(encoding="ascii")


def work(settings: Settings, parent: int | None = None) -> None:
    """Run queued jobs until a signal; one worker at a time serves a state folder.

    `parent`: id of the parent process; the worker stops when it ends. While another worker serves the state folder, a
    worker with a parent waits to replace it, and one without returns at once.
    """
    from huey.consumer import Consumer

    from roofcast.serving.composition import build_service

    if parent is not None:
        signal_at_parent_death(signal.SIGTERM)
        threading.Thread(target=_stop_after, args=(parent,), daemon=True).start()
    settings.home.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(settings.home / "worker.lock", timeout=0 if parent is None else -1, poll_interval=0.5):
            queue = JobQueue(settings.home, build_service(settings))
            queue.recover()
            queue.ensure_predictor()
            is_scheduled = bool(settings.retrain_at)
            if is_scheduled:
                next_at = next_retraining_at(settings.retrain_at, dt.datetime.now(dt.UTC))
                logger.info("retrainings are scheduled at=%r next=%s", settings.retrain_at, next_at)
            Consumer(queue.huey, workers=1, periodic=is_scheduled, check_worker_health=False).run()
    except Timeout:
        logger.info("another worker serves %s", settings.home)


def _stop_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def worker_process() -> Iterator[None]:
    """Run a worker process during the block; one that dies is replaced."""
    stop = threading.Event()
    supervisor = threading.Thread(target=_supervise, args=(stop, os.getpid()), daemon=True)
    supervisor.start()
    try:
        yield
    finally:
        stop.set()
        supervisor.join()


def _supervise(stop: threading.Event, parent: int) -> None:
    command = [sys.executable, "-m", "roofcast.serving.queue.worker", str(parent)]
    while not stop.is_set():
        process = subprocess.Popen(command)  # noqa: S603  (our own interpreter and module)
        while process.poll() is None and not stop.wait(0.2):
            pass
        if process.returncode is None:
            _stop(process)
        else:
            logger.warning("worker ended status=%d", process.returncode)
            stop.wait(RESTART_PAUSE_S)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
