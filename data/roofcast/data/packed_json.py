"""JSON whose long arrays of numbers take eight bytes a number, where lists of Python's numbers take thirty-two."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable
from typing import Any, Final

Hook = Callable[[dict[str, Any]], Any]
"""Given every object as it is parsed, returns what is kept of it."""

MIN_ARRAY: Final = 64
"""Characters from which on an array is packed."""

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBERS: Final = rf"\[[-+.\deE,\s]{{{MIN_ARRAY},}}\]"
_PIECE: Final = re.compile(f"{_STRING}|{_NUMBERS}", re.DOTALL)
_KEY: Final = "\0packed"
"""Where an array stood, an object of this one key says which it is."""


def parse_packed(text: str, hook: Hook | None = None) -> Any:
    """Return what a JSON text says, with each long array of numbers alone as an `array` of doubles.

    Parameters
    ----------
    text
        One JSON document.
    hook
        Given every object as it is parsed, returns what is kept of it.

    Raises
    ------
    ValueError
        If the text is no JSON, as of `json.loads`.
    RecursionError
        If it is nested too deeply.

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
        return json.loads(text, object_hook=hook)  # fails as well, and names the line


def _without_arrays(text: str) -> tuple[list[array[float]], str]:
    """Return the long arrays of a text and the text with their numbers in their places; strings stay as they are."""
    arrays: list[array[float]] = []
    parts: list[str] = []
    end = 0
    for piece in _PIECE.finditer(text):
        if text[piece.start()] == '"':
            continue
        try:
            found = array("d", json.loads(piece[0]))
        except (ValueError, OverflowError):
            continue
        parts += text[end : piece.start()], f'{{"\\u0000packed":{len(arrays)}}}'
        arrays.append(found)
        end = piece.end()
    return arrays, "".join((*parts, text[end:])) if arrays else text
