import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import pytest
from filelock import FileLock, Timeout
from huey.exceptions import HueyException

from roofcast.data.errors import NotReadyError, OutOfRangeError
from roofcast.data.measurements.target import TRAINING
from roofcast.serving import composition
from roofcast.serving.app_state.retraining_stages import REGISTRATION
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.queue import queue as queue_module
from roofcast.serving.queue.queue import INTERRUPTED, MAX_INTERRUPTION, JobQueue, owner_id, work, worker_process
from roofcast.training.lifecycle.registry.registry import Champion, ShippedPredictor
from roofcast.training.lifecycle.retraining import RetrainingReport
from tests.conditions import wait_until
from tests.serving.http_client import Client, Run, problem_of

PATH = "/v1/retrainings"


def is_working(home: Path) -> bool:
    """Return whether a worker holds the lock of a state folder."""
    try:
        with FileLock(home / "worker.lock", timeout=0):
            return False
    except Timeout:
        return True


def workers_of(parent: int) -> list[int]:
    """Return the process ids of the workers of a parent process."""
    command = f"roofcast.serving.queue.worker\0{parent}\0"
    workers = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if command in file.read_text():
                workers.append(int(file.parent.name))
        except OSError:
            continue
    return workers


def fail_twice(change: Callable[..., object]) -> Callable[..., object]:
    """Return a change of the store that fails the first two times."""
    answers = iter([NotReadyError("the store is away")] * 2)

    def fail_or_change(*arguments: object) -> object:
        problem = next(answers, None)
        if problem:
            raise problem
        return change(*arguments)

    return fail_or_change


def too_few_rows(_target: object, _progress: object) -> NoReturn:
    """Fail as a retraining of too few rows does."""
    raise OutOfRangeError("too few rows")


@pytest.mark.slow  # a retraining in a process of its own
@pytest.mark.usefixtures("short_retrainings")
def test_a_retraining_over_http_runs_in_a_worker_and_is_judged(client: Client, home: Path) -> None:
    """A worker waits for another one, replaces it and is killed; a third one continues.

    The training lock blocks the first retraining, so that the worker is killed while it runs.
    """
    store = client.service.store
    interrupted = store.retrainings.add(owner_id(home))
    with worker_process():
        with FileLock(home / "training.lock"):
            with FileLock(home / "worker.lock"):
                wait_until(lambda: len(workers_of(os.getpid())) == 1)
                assert store.retrainings.find(interrupted.id).state == "queued"
            wait_until(lambda: store.retrainings.find(interrupted.id).state == "running")
            os.kill(workers_of(os.getpid())[0], signal.SIGKILL)
            wait_until(lambda: store.retrainings.find(interrupted.id).n_interruption == 1)
            client.send("POST", f"{PATH}/{interrupted.id}/cancellation")
            response = client.send("POST", PATH)
            assert (response.status_code, response.json()["state"]) == (202, "queued")
            location = response.headers["location"]
        wait_until(lambda: client.get(location).json()["state"] == "done")
    assert [r.learnable_digest for r in store.retrainings.load() if r.state == "done"] == [store.learnable_digest()]
    assert not is_working(home)
    assert workers_of(os.getpid()) == []
    report = RetrainingReport.model_validate(client.get(location).json()["report"])
    assert (report.version, report.promoted) == ("2", False)
    assert report.reason == "the candidate no longer predicts output_throughput_token_per_s"
    assert [record["state"] for record in client.get(PATH).json()] == ["done", "cancelled"]
    champion = client.service.registry.champion()
    assert champion is not None
    assert champion.version == "1"


def test_an_unknown_retraining_is_404(shared: Client) -> None:
    assert problem_of(shared.get(f"{PATH}/nothing"), 404)["field"] == "retraining"


@pytest.mark.parametrize("is_bug", [False, True])
def test_a_job_that_fails_runs_once_and_a_bug_is_raised(queue: JobQueue, *, is_bug: bool) -> None:
    calls = []

    def fail(_target: object, _progress: object) -> NoReturn:
        calls.append(1)
        raise ZeroDivisionError("a bug") if is_bug else OutOfRangeError("too few rows")

    queue.retrain = fail
    record = queue.submit()
    with pytest.raises(ZeroDivisionError) if is_bug else nullcontext():
        queue.run(record.id)
    queue.run(record.id)
    record_after = queue._service.store.retrainings.find(record.id)
    error = "ZeroDivisionError: a bug" if is_bug else "too few rows"
    assert (record_after.state, record_after.error, len(calls)) == ("failed", error, 1)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_the_stage_of_a_retraining_is_recorded(
    is_recorded: bool, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that does not answer costs the record of a stage, not the retraining."""
    store, seen = queue._service.store, []

    def retrain(_target: object, progress: Callable[..., Iterator[Callable[[], object]]]) -> RetrainingReport:
        seen.append(store.retrainings.find(record.id))
        if not is_recorded:
            monkeypatch.setattr(store.retrainings, "advance", fail_twice(store.retrainings.advance))
        seen.extend(store.retrainings.find(record.id) for _ in progress(range(2), 2, "held-out lineages"))
        raise OutOfRangeError("too few rows")

    queue.retrain = retrain
    record = queue.submit()
    queue.run(record.id)
    steps = [(one.stage, one.n_step_done, one.n_step) for one in seen]
    loading, lineages = ("loading the measurements", 0, 0), "candidate, held-out lineages"
    assert steps == [loading, (lineages, 1, 2), (lineages, 2, 2)] if is_recorded else [loading] * 3
    assert store.retrainings.find(record.id).error == "too few rows"


@pytest.mark.parametrize("end", ["finish", "fail"])
def test_the_result_of_a_job_is_recorded_when_the_store_answers_again(
    end: str, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = RetrainingReport(
        version="2", promoted=True, reason="", candidate_error=0.1, n_row=1, n_group=1, set_aside={}, scores={},
        champion_error=None,
    )  # fmt: skip
    pauses: list[float] = []

    store = queue._service.store
    for name in ("start", end):
        monkeypatch.setattr(store.retrainings, name, fail_twice(getattr(store.retrainings, name)))
    queue.retrain = too_few_rows if end == "fail" else lambda _target, _progress: report
    monkeypatch.setattr(queue_module, "MAX_RECORD_PAUSE_S", 1.5)
    monkeypatch.setattr(time, "sleep", pauses.append)
    record = queue.submit()
    queue.run(record.id)
    record_after = store.retrainings.find(record.id)
    assert (record_after.state, record_after.error) == (
        ("done", "") if end == "finish" else ("failed", "too few rows")
    )
    assert pauses == [1.0, 1.5, 1.0, 1.5]


def test_a_change_whose_acknowledgement_was_lost_can_be_repeated(
    queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store commits the change, and the connection ends before the acknowledgement."""
    store = queue._service.store
    fail = store.retrainings.fail
    lost = iter([True, False])

    def fail_silently(id_: str, error: str) -> None:
        fail(id_, error)
        if next(lost):
            raise NotReadyError("the connection was lost")

    monkeypatch.setattr(store.retrainings, "fail", fail_silently)
    queue.retrain = too_few_rows
    monkeypatch.setattr(queue_module, "RECORD_PAUSE_S", 0.0)
    record = queue.submit()
    queue.run(record.id)
    assert store.retrainings.find(record.id).error == "too few rows"


def test_jobs_of_a_dead_worker_are_recovered(queue: JobQueue) -> None:
    """One that ends worker after worker fails in the end."""
    retrainings = queue._service.store.retrainings
    running, waiting = queue.submit(), queue.submit(TRAINING)
    for n in range(MAX_INTERRUPTION + 1):
        retrainings.start(running.id)
        retrainings.advance(running.id, "candidate, held-out lineages", 1, 8)
        assert retrainings.find(running.id).n_interruption == n
        queue.recover()
        assert len(queue.huey) == (2 if n < MAX_INTERRUPTION else 1)
    assert retrainings.find(running.id).error == INTERRUPTED
    assert retrainings.find(waiting.id).state == "queued"
    queue.recover()
    assert len(queue.huey) == 1


def test_folds_are_removed_with_the_end_of_their_retraining(
    queue: JobQueue, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a retraining that will be repeated stay."""
    retrainings = queue._service.store.retrainings

    def folds_of(id_: str) -> Path:
        (home / "folds" / id_).mkdir(parents=True)
        return home / "folds" / id_

    queue.retrain = too_few_rows
    interrupted, cancelled = queue.submit(), queue.submit(TRAINING)
    retrainings.start(interrupted.id)
    retrainings.cancel(cancelled.id, "me", REGISTRATION)
    failed = queue.submit()
    folders = [folds_of(record.id) for record in (failed, cancelled, interrupted)]
    forgotten = folds_of("forgotten")
    for record in (failed, cancelled):
        queue.run(record.id)
    assert [folder.exists() for folder in folders] == [False, False, True]
    queue.recover()
    assert (folders[2].exists(), forgotten.exists()) == (True, False)


def test_a_retraining_that_fails_as_it_is_cancelled_stays_cancelled(
    queue: JobQueue, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel_and_fail(_target: object, _progress: object) -> RetrainingReport:
        (home / "folds" / record.id).mkdir(parents=True)
        queue._service.store.retrainings.cancel(record.id, "me", REGISTRATION)
        raise OutOfRangeError("too few rows")

    queue.retrain = cancel_and_fail
    record = queue.submit()
    queue.run(record.id)
    assert queue._service.store.retrainings.find(record.id).error == "cancelled by me"
    assert not (home / "folds" / record.id).exists()


@pytest.mark.slow  # a retraining in a process of its own
@pytest.mark.usefixtures("short_retrainings")
def test_a_retraining_whose_worker_is_killed_resumes_with_its_folds(
    client: Client, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, retrainings = home / "folds", client.service.store.retrainings
    with worker_process():
        record = retrainings.find(client.send("POST", PATH).json()["id"])
        wait_until(lambda: any(folder.glob("*/*.fold")))
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)
        wait_until(lambda: retrainings.find(record.id).state == "done")
        wait_until(lambda: not any(folder.iterdir()))
    assert retrainings.find(record.id).n_interruption == 1
    assert "retraining resumes" in capfd.readouterr().err


def test_a_retraining_that_registered_its_candidate_is_not_repeated(queue: JobQueue) -> None:
    retrainings, record = queue._service.store.retrainings, queue.submit()
    retrainings.start(record.id)
    retrainings.advance(record.id, REGISTRATION, 1, 1)
    queue.recover()
    assert retrainings.find(record.id).error == INTERRUPTED


def test_a_cancelled_retraining_stops_before_its_next_step(client: Client, home: Path) -> None:
    steps: list[int] = []

    def retrain(_target: object, progress: Callable[..., Iterator[int]]) -> Any:
        for step in progress(range(3), 3, "held-out lineages"):
            steps.append(step)
            assert client.send("POST", f"{PATH}/{record.id}/cancellation").json()["state"] == "cancelled"

    queue = JobQueue(home, client.service, retrain)
    record, waiting = queue.submit(), queue.submit(TRAINING)
    client.send("POST", f"{PATH}/{waiting.id}/cancellation")
    for one in (record, waiting):
        queue.run(one.id)
    assert steps == [0]
    assert [one["state"] for one in client.get(PATH).json()] == ["cancelled"] * 2
    again = problem_of(client.send("POST", f"{PATH}/{record.id}/cancellation"), 422)
    assert again["detail"] == f"retraining: must be queued or running, but {record.id} is cancelled"


def test_a_retraining_that_registers_its_candidate_cannot_be_cancelled(
    queue: JobQueue, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is away when the last stage begins, which waits for it."""
    retrainings, record = queue._service.store.retrainings, queue.submit()
    seen: list[tuple[int, str]] = []
    advance = retrainings.advance

    def advance_to(id_: str, stage: str, *counts: int) -> object:
        return (fail_once if stage == REGISTRATION else advance)(id_, stage, *counts)

    def register() -> NoReturn:
        status, _, err = run("retrainings", "cancel", record.id)
        seen.append((status, err))
        raise OutOfRangeError("the registry is full")

    def retrain(_target: object, progress: Callable[..., Iterator[Callable[[], object]]]) -> Any:
        for step in progress([register], 1, REGISTRATION):
            step()

    fail_once = fail_twice(advance)
    monkeypatch.setattr(retrainings, "advance", advance_to)
    monkeypatch.setattr(queue_module, "RECORD_PAUSE_S", 0.0)
    queue.retrain = retrain
    queue.run(record.id)
    assert seen == [(2, f"error: retraining: must be queued or running, but {record.id} is in its registration\n")]
    assert retrainings.find(record.id).error == "the registry is full"
    assert '"state": "failed"' in run("retrainings", "--json")[1]


def test_a_row_of_the_queue_runs_no_code(queue: JobQueue, home: Path, tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
            return os.mkdir, (str(tmp_path / "executed"),)

    for row in (pickle.dumps(Attack()), b"[]", b'{"id": "1", "name": "os.system", "args": ["true"]}', b"\xff"):
        with sqlite3.connect(home / "jobs.sqlite") as connection:
            connection.execute("INSERT INTO task (queue, data, priority) VALUES ('roofcast', ?, 0)", (row,))
        connection.close()
        with pytest.raises((ValueError, HueyException)):
            queue.huey.dequeue()
    assert not (tmp_path / "executed").exists()
    record = queue.submit()
    assert queue.huey.dequeue().args == [record.id]
    assert (home / "jobs.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_queue_that_cannot_be_written_fails_the_retraining(queue: JobQueue, home: Path) -> None:
    connection = sqlite3.connect(home / "jobs.sqlite")
    connection.execute("DROP TABLE task")
    connection.close()
    with pytest.raises(NotReadyError, match="the job queue cannot be written"):
        queue.submit()
    assert [record.state for record in queue._service.store.retrainings.load()] == ["failed"]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_retraining_is_queued_if_the_shipped_predictor_cannot_be_loaded(
    is_damaged: bool, trained_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = (trained_home / "bundles").iterdir()
    champion = Champion(f"shipped-{file.stem[:8]}", "", file.stem)
    if is_damaged:
        file = tmp_path / "damaged.roofcast"
        file.write_bytes(b"")
    monkeypatch.setattr(composition, "shipped_predictor", lambda *_: ShippedPredictor(champion, file))
    service = build_service(Settings(home=tmp_path / "home"))
    JobQueue(service.settings.home, service).ensure_predictor()
    assert [record.state for record in service.store.retrainings.load()] == ["queued"] * is_damaged
    service.close()


def test_a_second_worker_without_a_parent_returns_at_once(settings: Settings) -> None:
    with FileLock(settings.home / "worker.lock"):
        work(settings)


def test_a_worker_stops_with_its_parent(home: Path) -> None:
    """The parent is killed, so that it sends no signal to the worker."""
    code = (
        "import os, subprocess, sys, time; "
        "subprocess.Popen([sys.executable, '-m', 'roofcast.serving.queue.worker', str(os.getpid())]); "
        "time.sleep(3600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])  # noqa: S603
    try:
        wait_until(lambda: is_working(home))
        assert len(workers_of(parent.pid)) == 1
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not workers_of(parent.pid) and not is_working(home))


@pytest.mark.parametrize("body", ["", "a=1"])
def test_a_cross_site_form_starts_no_retraining(body: str, shared: Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    problem_of(shared.send("POST", PATH, body, form), 415)
    assert shared.get(PATH).json() == []


def test_the_latest_retrainings_are_listed_up_to_a_limit(client: Client) -> None:
    store = client.service.store
    ids = [store.retrainings.add(owner).id for owner in "abc"]
    assert [record["id"] for record in client.get(f"{PATH}?limit=2").json()] == ids[:0:-1]
    problem_of(client.get(f"{PATH}?limit=0"), 422)
