from types import SimpleNamespace

import pytest

from roofcast.serving.http import load_shedding
from roofcast.serving.http.load_shedding import Lane


class BusyLane:
    """A lane without a free slot, whose slots are released when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now_s = 100.0
        self.lane = Lane("predictions", n_slot=1, n_share=1, max_waiting=64, max_wait_s=1.0)
        self.lane.slots = SimpleNamespace(locked=lambda: True, release=lambda: None)  # type: ignore[assignment]
        monkeypatch.setattr(load_shedding, "time", SimpleNamespace(monotonic=lambda: self._now_s))

    def release(self, n: int, interval_s: float) -> None:
        for _ in range(n):
            self._now_s += interval_s
            self.lane.release()


def test_a_queue_that_moves_too_slowly_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = BusyLane(monkeypatch)
    lane = busy.lane
    lane.waiting["a"] = 9
    assert not lane.is_full("b")
    busy.release(30, interval_s=0.1)
    assert lane.is_full("b")
    lane.waiting["a"] = 7
    assert not lane.is_full("b")
    lane.waiting["a"] = 9
    busy.release(30, interval_s=0.05)
    assert not lane.is_full("b")
    lane.waiting["a"] = 0
    lane.release()
    busy.release(30, interval_s=10.0)
    lane.waiting["a"] = 9
    assert not lane.is_full("b"), "nobody waited"


def test_a_caller_has_a_share_of_the_places_that_the_pace_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = BusyLane(monkeypatch)
    busy.lane.waiting["a"] = 6
    assert not busy.lane.is_full("a")
    busy.release(30, interval_s=0.1)
    assert busy.lane.is_full("a"), "eight places, six of them for one caller"
    assert not busy.lane.is_full("b")


def test_one_hang_shortens_the_queue_by_one_longest_wait_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = BusyLane(monkeypatch)
    busy.lane.waiting["a"] = 3
    busy.release(30, interval_s=0.01)
    busy.release(1, interval_s=30.0)
    assert not busy.lane.is_full("b")
