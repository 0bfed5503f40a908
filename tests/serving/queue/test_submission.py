"""Requests for retrainings: which record a caller gets, and the messages to the worker."""

import threading
from pathlib import Path

from roofcast.data.store.retrainings import Retraining
from roofcast.serving.queue.queue import JobQueue, owner_id


def test_a_queued_retraining_is_returned_to_later_callers(queue: JobQueue) -> None:
    first, second = queue.submit(), queue.submit()
    assert second == first
    assert len(queue.huey) == 1
    queue.huey.dequeue()
    assert queue.submit() == first  # whose message was lost
    assert len(queue.huey) == 1
    queue._service.store.retrainings.start(first.id)
    assert queue.submit().id != first.id


def test_callers_at_once_get_one_retraining_and_send_one_message(queue: JobQueue) -> None:
    found: list[Retraining] = []
    threads = [threading.Thread(target=lambda: found.append(queue.submit())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == queue._service.store.retrainings.load() * 6
    assert len(queue.huey) >= 1
    for _ in range(20):
        queue.submit()
    assert len(queue.huey) <= 6


def test_two_state_folders_may_share_a_store(queue: JobQueue, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other, store = JobQueue(tmp_path / "other", queue._service), queue._service.store
    assert other.owner != queue.owner == owner_id(queue._service.settings.home)
    own, others = queue.submit(), other.submit()
    assert others.id != own.id
    store.retrainings.start(others.id)
    queue.recover()
    assert store.retrainings.find(others.id).state == "running"
    other.recover()
    assert store.retrainings.find(others.id).state == "queued"
    assert store.retrainings.find(own.id).state == "queued"
