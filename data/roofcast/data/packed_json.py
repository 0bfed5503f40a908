"""JSON parser that packs long arrays of numbers into doubles: 8 bytes a number, where a list takes 32."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable
from typing import Any, Final

Hook = Callable[[dict[str, Any]], Any]
"""Reduces each object while it is parsed: returns the value that replaces it."""

MIN_ARRAY: Final = 64
"""Shortest array that is packed, in characters."""

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBERS: Final = rf"\[[-+.\deE,\s]{{{MIN_ARRAY},}}\]"
_PIECE: Final = re.compile(f"{_STRING}|{_NUMBERS}", re.DOTALL)
_KEY: Final = "\0packed"
"""Only key of the placeholder object of a packed array; its value is the array's index."""


def parse_packed(text: str, hook: Hook | None = None) -> Any:
    """Return the value of a JSON text, with each long array of numbers as an `array` of doubles.

    Raises `ValueError` if the text is no JSON; `RecursionError` if it is nested too deeply.

    Examples
    --------
    >>> parse_packed('{"gaps": [' + "0.5, " * 20 + "1]}")["gaps"].typecode
    'd'
    >>> parse_packed('{"gaps": [0.5, 1]}')
    {'gaps': [0.5, 1]}
    """
    arrays, shorter = _without_arrays(text)

    def unpack(members: dict[str, Any]) -> Any:
        if members.keys() == {_KEY} and members[_KEY] in range(len(arrays)):
            return arrays[members[_KEY]]
        return hook(members) if hook else members

    try:
        return json.loads(shorter, object_hook=unpack if arrays else hook)
    except ValueError:
        return json.loads(text, object_hook=hook)  # raises again, with the line in the original text


def _without_arrays(text: str) -> tuple[list[array[float]], str]:
    arrays: list[array[float]] = []
    parts: list[str] = []
    end = 0
    for piece in _PIECE.finditer(text):
        if text[piece.start()] == '"':
            continue
        try:
            numbers = array("d", json.loads(piece[0]))
        except (ValueError, OverflowError):
            continue
        parts += text[end : piece.start()], f'{{"\\u0000packed":{len(arrays)}}}'
        arrays.append(numbers)
        end = piece.end()
    return arrays, "".join((*parts, text[end:])) if arrays else text
