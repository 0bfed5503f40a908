"""Writer of UBJSON as XGBoost writes it, for documents that the library would not make."""

import struct
from typing import Any

import numpy as np

_MARKERS = {"i1": b"i", "u1": b"U", "i2": b"I", "i4": b"l", "i8": b"L", "f4": b"d", "f8": b"D"}


def write_ubjson(value: Any) -> bytes:  # noqa: PLR0911  (a case for each kind)
    """Return a document; NumPy arrays become typed arrays."""
    match value:
        case dict():
            return b"{" + b"".join(_text(name) + write_ubjson(item) for name, item in value.items()) + b"}"
        case np.ndarray():
            marker = _MARKERS[value.dtype.str[1:]]
            content = value.astype(value.dtype.newbyteorder(">")).tobytes()
            return b"[$" + marker + b"#" + _length(len(value)) + content
        case list():
            return b"[#" + _length(len(value)) + b"".join(map(write_ubjson, value))
        case str():
            return b"S" + _text(value)
        case bool():
            return b"T" if value else b"F"
        case int():
            return _length(value)
        case float():
            return b"D" + struct.pack(">d", value)
    assert value is None
    return b"Z"


def _length(value: int) -> bytes:
    return b"L" + struct.pack(">q", value)


def _text(value: str) -> bytes:
    return _length(len(value.encode())) + value.encode()
