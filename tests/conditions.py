"""Waiting for conditions that other threads and processes fulfil."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 1800.0
"""Time limit of a condition: far above what a loaded machine needs, so that only a fault exceeds it."""


def wait_until(holds: Callable[[], bool], timeout_s: float = PATIENCE_S, pause_s: float = 0.05) -> None:
    """Return once a condition holds; an assertion fails if it never does."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"the condition did not hold within {timeout_s:g} s"
        time.sleep(pause_s)
