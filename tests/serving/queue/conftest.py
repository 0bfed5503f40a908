from collections.abc import Iterator

import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.serving.queue import queue as queue_module
from roofcast.serving.queue.queue import JobQueue
from tests.conftest import FEW_CAMPAIGNS


@pytest.fixture
def short_retrainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let worker processes learn little from few measurements, and start at once when another has ended."""
    monkeypatch.setenv("PYTHONPATH", str(FEW_CAMPAIGNS))
    monkeypatch.setenv("ROOFCAST_TRAINING", '{"n_member": 1, "n_estimators": 2, "calibrate": false}')
    monkeypatch.setattr(queue_module, "RESTART_PAUSE_S", 0.1)


@pytest.fixture
def queue(settings: Settings) -> Iterator[JobQueue]:
    service = build_service(settings)
    yield JobQueue(settings.home, service)
    service.close()
