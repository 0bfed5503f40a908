"""Waiting for what other threads and processes bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 1800.0
"""How long a condition may take to hold: far beyond what a loaded machine needs, so that only a fault reaches it."""


def wait_until(holds: Callable[[], bool], timeout_s: float = PATIENCE_S, pause_s: float = 0.05) -> None:
    """Return once a condition holds; an assertion fails if it never does."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"the condition did not hold within {timeout_s:g} s"
        time.sleep(pause_s)
