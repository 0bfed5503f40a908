"""Return of freed memory from the C library to the operating system."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def release_freed_memory() -> None:
    """Call glibc's ``malloc_trim`` if there is one: loading a bundle frees much memory that glibc would keep."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
