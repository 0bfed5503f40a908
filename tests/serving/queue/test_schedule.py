"""Retrainings that the worker starts by itself."""

import datetime as dt
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from huey.consumer import Scheduler
from huey.registry import Message

from roofcast.data.store.provenance import Action, Origin
from roofcast.data.store.retrainings import Retraining
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.http.app import create_app
from roofcast.serving.queue.queue import JobQueue, worker_process
from roofcast.training.lifecycle.retraining import RetrainingReport
from tests.conditions import wait_until
from tests.data.row_builders import many_rows
from tests.serving.http.test_app import drop_tables
from tests.serving.http_client import Client, Run, running

NIGHTLY = "30 2 * * *"
DUE, NOT_DUE = dt.time(2, 30), dt.time(2, 31)
REPORT = RetrainingReport(
    version="2", promoted=False, reason="", candidate_error=0.1, n_row=1, n_group=1, set_aside={}, scores={},
    champion_error=None,
)  # fmt: skip


class Night:
    """A state folder with a schedule whose retrainings end at once."""

    def __init__(self, settings: Settings) -> None:
        self.service = build_service(settings.model_copy(update={"retrain_at": NIGHTLY}))
        self.queue = JobQueue(settings.home, self.service, lambda *_: REPORT)
        self.scheduler = Scheduler(self.queue.huey, threading.Event(), 1, periodic=True)
        self._day = dt.datetime.now(dt.UTC).date()

    def at(self, time: dt.time) -> list[Retraining]:
        """Return the retrainings that are new after the scheduler and the worker have run at a time.

        `DUE` is that of the next day.
        """
        before = {record.id for record in self.service.store.retrainings.load()}
        self._day += dt.timedelta(days=time == DUE)
        self.scheduler.enqueue_periodic_tasks(dt.datetime.combine(self._day, time))
        self.work()
        return [record for record in self.service.store.retrainings.load() if record.id not in before]

    def work(self) -> None:
        """Execute what is queued."""
        while task := self.queue.huey.dequeue():
            self.queue.huey.execute(task)


@pytest.fixture
def night(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    night = Night(settings)
    yield night
    night.service.close()


def test_the_schedule_retrains_where_measurements_changed(night: Night) -> None:
    assert night.at(DUE) == []
    added = night.service.store.add(many_rows(3))
    assert night.at(NOT_DUE) == []
    (record,) = night.at(DUE)
    assert (record.state, record.target) == ("done", "inference")
    assert record.learnable_digest == night.service.store.learnable_digest()
    assert night.at(DUE) == []
    night.service.store.add(many_rows(3))
    assert night.at(DUE) == []
    actions: tuple[Action, ...] = ("withdrawal", "restoration")
    for action in actions:
        assert night.service.store.provenance.change(action, "me", {"import_id": added.import_id}).n_row == 3
        assert [one.state for one in night.at(DUE)] == ["done"]


def test_rows_in_quarantine_count_once_they_are_confirmed(night: Night) -> None:
    rows = many_rows(2)
    origin = Origin("key", is_operator=False)
    added = night.service.store.add(rows, origin=origin, quarantine=rows["model"].map(lambda _: "far"))
    assert night.at(DUE) == []
    night.service.store.provenance.change("confirmation", "me", {"import_id": added.import_id})
    assert len(night.at(DUE)) == 1


@pytest.mark.parametrize("end", ["fail", "cancel"])
def test_a_retraining_that_learnt_nothing_is_repeated_at_the_next_time(night: Night, end: str) -> None:
    night.service.store.add(many_rows(3))
    retrainings = night.service.store.retrainings
    record = night.queue.submit()
    assert night.at(DUE) == []  # the pending one learns the rows
    assert retrainings.find(record.id).state == "done"
    night.service.store.add(many_rows(5))
    other = retrainings.add(night.queue.owner)
    assert night.at(DUE) == []
    retrainings.fail(other.id, "no") if end == "fail" else retrainings.cancel(other.id, "me", "registration")
    assert len(night.at(DUE)) == 1


def test_several_workers_start_one_retraining(night: Night, tmp_path: Path, settings: Settings) -> None:
    """State folders that share a store and an MLflow server are one service."""
    night.service.store.add(many_rows(3))
    shared = {"mlflow_tracking_uri": "http://mlflow:5000", "database_url": settings.store_url, "retrain_at": NIGHTLY}
    queues = []
    for name in "abcd":
        (tmp_path / name).mkdir()
        service = build_service(settings.model_copy(update=shared | {"home": tmp_path / name}))
        queues.append(JobQueue(tmp_path / name, service))
    found: list[Retraining] = []
    threads = [threading.Thread(target=lambda q=q: found.extend(q.submit_changed())) for q in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(night.service.store.retrainings.load()) == 1
    assert sum(len(queue.huey) for queue in queues) == 1
    night.service.store.retrainings.start(found[0].id)
    digest = night.service.store.learnable_digest()
    night.service.store.retrainings.finish(found[0].id, {}, digest)
    assert [queue.submit_changed() for queue in queues] == [[]] * 4
    assert len(night.at(DUE)) == 1  # its registry is its own
    for queue in queues:
        queue._service.close()


def test_a_retraining_of_a_lost_state_folder_holds_up_others_for_a_day(night: Night) -> None:
    retrainings = night.service.store.retrainings
    lost = retrainings.add("lost")

    def queued() -> Retraining | None:
        return retrainings.add_if_changed("mine", "inference", "a", is_shared=True)

    assert queued() is None
    with sqlite3.connect(night.service.settings.home / "roofcast.sqlite") as connection:
        connection.execute("UPDATE retraining SET requested_at = '2026-01-01 00:00:00' WHERE id = ?", (lost.id,))
    connection.close()
    assert queued() is not None


def test_a_store_that_does_not_answer_costs_one_time(night: Night, caplog: pytest.LogCaptureFixture) -> None:
    night.service.store.add(many_rows(3))
    drop_tables(night.service.settings.home)
    assert night.queue.submit_changed() == []
    assert "schedule of retrainings not followed, target=inference" in caplog.text


def test_a_message_of_the_schedule_is_json(night: Night) -> None:
    night.scheduler.enqueue_periodic_tasks(dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    with sqlite3.connect(night.service.settings.home / "jobs.sqlite") as connection:
        ((data,),) = connection.execute("SELECT data FROM task").fetchall()
    connection.close()
    message: Message = night.queue.huey.serializer.deserialize(data)
    assert data.startswith(b"{")
    assert message.name.endswith("retrain_if_changed")


def test_the_schedule_is_shown(client: Client, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/v1/retraining-schedule"
    assert client.get(path).json() == {"retrain_at": "", "next_at": None}
    monkeypatch.setenv("ROOFCAST_RETRAIN_AT", NIGHTLY)
    with running(create_app(settings.model_copy(update={"retrain_at": NIGHTLY}))) as scheduled:
        answer = scheduled.get(path).json()
    assert answer["retrain_at"] == NIGHTLY
    assert answer["next_at"].endswith("T02:30:00Z")
    out = run.ok("retrainings", "schedule")
    assert NIGHTLY in out
    assert "T02:30:00+00:00" in out


@pytest.mark.slow  # a worker in a process of its own
@pytest.mark.usefixtures("short_retrainings")
def test_a_worker_follows_the_schedule(client: Client, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFCAST_RETRAIN_AT", "* * * * *")
    client.service.store.add(many_rows(3))
    retrainings = client.service.store.retrainings
    with worker_process():
        wait_until(lambda: [record.state for record in retrainings.load()] in (["running"], ["done"]))
