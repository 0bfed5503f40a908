import sys

import pytest

from roofcast.serving.app_state.process_memory import GROWTH_BYTE, MemoryReturn, resident_byte

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc and /proc")

PIECE_BYTE = 10_000


def test_freed_memory_between_pieces_in_use_is_returned() -> None:
    memory = MemoryReturn()
    assert not memory.return_if_grown()
    pieces = [b"x" * PIECE_BYTE for _ in range(2 * GROWTH_BYTE // PIECE_BYTE)]
    grown = resident_byte()
    kept = pieces[::200]
    del pieces
    assert memory.return_if_grown()
    assert resident_byte() < grown - GROWTH_BYTE
    assert not memory.return_if_grown()
    assert kept
