"""Headers of Parquet pages, which say what a file unpacks to: its footer may say anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MAX_PAGE: Final = 100_000
"""Most pages of a file; writers make one of a megabyte or 20,000 rows."""

DELTA_ENCODINGS: Final = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
"""Encodings whose values may take more memory than their pages: counts and texts repeat."""

_MAX_DEPTH: Final = 4
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8


class DamagedPageError(Exception):
    """Pages that cannot be read."""


@dataclass(frozen=True, slots=True)
class Page:
    """Size of an unpacked page, number of its rows (0 of a dictionary), and number of its encoding."""

    n_byte: int
    n_row: int
    encoding: int


def read_pages(body: bytes, start: int, end: int) -> Iterator[Page]:
    """Yield the pages of a column chunk, from one offset to another; values are not unpacked.

    Raises `DamagedPageError` if they cannot be read.

    References
    ----------
    Apache Parquet, parquet.thrift, `PageHeader`; Apache Thrift, compact protocol.
    """
    if not 0 <= start <= end <= len(body):
        raise DamagedPageError("a column lies outside the file")
    while start < end:
        header = _Header(body, start)
        fields = header.struct()
        n_byte, n_packed = fields.get(2, -1), fields.get(3, -1)
        if not (isinstance(n_byte, int) and isinstance(n_packed, int)) or n_byte < 0 or n_packed < 0:
            raise DamagedPageError("a page has no size")
        start = header.position + n_packed
        parts = [fields.get(number, {}) for number in (_DATA, _DATA_V2, _DICTIONARY)]
        data, second, dictionary = (part if isinstance(part, dict) else {} for part in parts)
        n_row = max(data.get(1, 0), second.get(1, 0))
        yield Page(n_byte, n_row, max(data.get(2, 0), second.get(4, 0), dictionary.get(2, 0)))


class _Header:
    def __init__(self, body: bytes, position: int) -> None:
        self._body = body
        self.position = position

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MAX_DEPTH:
            raise DamagedPageError("a page's header is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 8:
                n_byte = self._varint()
                self.position += n_byte
                return None
            case 12:
                return self.struct(depth + 1)
        raise DamagedPageError("a page's header has fields of unknown types")

    def _byte(self) -> int:
        if self.position >= len(self._body):
            raise DamagedPageError("a page ends early")
        self.position += 1
        return self._body[self.position - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DamagedPageError("a page's header has a number of excessive length")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
