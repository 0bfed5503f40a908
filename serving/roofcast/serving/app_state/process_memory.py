"""Return of freed memory from the C library to the operating system."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

GROWTH_BYTE: Final = 64 * 2**20
"""Growth of the resident memory after which freed memory is returned."""


def release_freed_memory() -> None:
    """Call glibc's ``malloc_trim`` if there is one: loading a bundle frees much memory that glibc would keep."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident_byte() -> int:
    """Return the resident memory of this process; 0 where the system does not tell."""
    try:
        n_page = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return n_page * os.sysconf("SC_PAGE_SIZE")


class MemoryReturn:
    """Returns freed memory when the process has grown, as after many large requests at once."""

    def __init__(self) -> None:
        self._base_byte = resident_byte()

    def return_if_grown(self) -> bool:
        """Return freed memory if the process has grown by `GROWTH_BYTE` since the last time; say whether it has."""
        if resident_byte() < self._base_byte + GROWTH_BYTE:
            return False
        release_freed_memory()
        self._base_byte = resident_byte()
        return True
