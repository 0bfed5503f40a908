from __future__ import annotations

import pytest

from roofcast.serving.jobs import queue
from tests.conftest import FEW_CAMPAIGNS


@pytest.fixture
def short_retrainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let worker processes learn little from few measurements, and start at once when another has ended."""
    monkeypatch.setenv("PYTHONPATH", str(FEW_CAMPAIGNS))
    monkeypatch.setenv("ROOFCAST_TRAINING", '{"n_member": 1, "n_estimators": 2, "calibrate": false}')
    monkeypatch.setattr(queue, "RESTART_PAUSE_S", 0.1)
