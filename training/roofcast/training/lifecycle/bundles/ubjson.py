"""Reader of XGBoost's UBJSON, without XGBoost: it reads files that the library must not see before they are checked.

Only what the library writes is read: big-endian numbers, 64-bit lengths, and arrays that declare their length.
Anything else is refused, so that both read the same.

References
----------
"Universal Binary JSON Specification", draft 12, ubjson.org.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

_NUMBERS: Final = {
    b"i": (">b", ">i1"),
    b"U": (">B", ">u1"),
    b"I": (">h", ">i2"),
    b"l": (">i", ">i4"),
    b"L": (">q", ">i8"),
    b"d": (">f", ">f4"),
    b"D": (">d", ">f8"),
}
"""Format of `struct` and dtype of the elements of a typed array, by marker."""


def parse_ubjson(content: bytes) -> Any:
    r"""Return the value of a document; typed arrays become NumPy arrays.

    Raises `ValueError` if it is cut, has bytes after its end, a name twice, or a marker that XGBoost does not write;
    `RecursionError` if it is nested too deeply.

    Examples
    --------
    >>> parse_ubjson(b"{L" + bytes(7) + b"\x01ai\x05}")
    {'a': 5}
    """
    reader = _Reader(content)
    value = reader.value(reader.take(1))
    if reader.at != len(content):
        raise ValueError(f"{len(content) - reader.at} bytes follow the end")
    return value


@dataclass(slots=True)
class _Reader:
    content: bytes
    at: int = 0

    def take(self, n_byte: int) -> bytes:
        if not 0 <= n_byte <= len(self.content) - self.at:
            raise ValueError(f"{n_byte} bytes are declared at {self.at} of {len(self.content)}")
        self.at += n_byte
        return self.content[self.at - n_byte : self.at]

    def length(self) -> int:
        if self.take(1) != b"L":
            raise ValueError(f"no length at {self.at}")
        return int.from_bytes(self.take(8), "big", signed=True)

    def value(self, marker: bytes) -> Any:
        match marker:
            case b"{":
                return self.object()
            case b"[":
                return self.array()
            case b"S":
                return self.take(self.length()).decode()
            case b"T" | b"F":
                return marker == b"T"
            case b"Z":
                return None
        if marker not in _NUMBERS:
            raise ValueError(f"unknown marker {marker!r} at {self.at}")
        form = _NUMBERS[marker][0]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def object(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while self.content[self.at : self.at + 1] != b"}":
            name = self.take(self.length()).decode()
            if name in fields:
                raise ValueError(f"{name!r} is given twice")
            fields[name] = self.value(self.take(1))
        self.take(1)
        return fields

    def array(self) -> Any:
        marker = self.take(1)
        if marker == b"#":
            return [self.value(self.take(1)) for _ in range(self.length())]
        dtype = np.dtype(_NUMBERS[self.take(1)][1]) if marker == b"$" else None
        if dtype is None or self.take(1) != b"#":
            raise ValueError(f"an array without length at {self.at}")
        return np.frombuffer(self.take(self.length() * dtype.itemsize), dtype)
