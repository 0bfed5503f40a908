"""JSON files of benchmark clients: parsed within bounds into nodes that know their file, line and path."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roofcast.data.csv_rows import iter_csv
from roofcast.data.errors import SchemaError
from roofcast.data.importers.sources import Source, iter_lines
from roofcast.data.packed_json import Hook, parse_packed

MAX_DOCUMENT_BYTE: Final = 256 * 2**20
MAX_JSON_LINE_BYTE: Final = 128 * 2**20
_CHUNK_BYTE: Final = 2**20
_NUMBER: Final = re.compile(r"(?:[0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,9})?")
_DAY: Final = re.compile(r"(20[0-9]{2})-?([0-9]{2})-?([0-9]{2})(?![0-9])")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Node:
    """A value of a JSON file with its path in the document, its file `place`, and its line in a file of JSON lines.

    Every accessor raises a `SchemaError` with file, line and path for a value of the wrong type.
    """

    value: Any
    path: str
    place: str
    line: int = 0

    def __getitem__(self, name: str) -> Node:
        """Return a member of an object; a blank node if the object or the member is absent."""
        if self.value is not None and not isinstance(self.value, dict):
            raise self.error(f"must be an object, got {_short(self.value)}")
        path = f"{self.path}.{name}" if self.path else name
        return Node((self.value or {}).get(name), path, self.place, self.line)

    def at(self, *names: str) -> Node:
        """Return the node at a path of member names."""
        node = self
        for name in names:
            node = node[name]
        return node

    @property
    def is_blank(self) -> bool:
        """Whether the value is absent or null."""
        return self.value is None

    @property
    def is_array(self) -> bool:
        """Whether the value is an array, packed or not."""
        return isinstance(self.value, list | array)

    @property
    def keys(self) -> list[str]:
        """Member names of an object; none of another value."""
        return list(self.value) if isinstance(self.value, dict) else []

    def items(self) -> list[Node]:
        """Return the entries of an array; none if blank."""
        if self.value is not None and not self.is_array:
            raise self.error(f"must be an array, got {_short(self.value)}")
        return [Node(value, f"{self.path}[{i}]", self.place, self.line) for i, value in enumerate(self.value or [])]

    def text(self) -> str:
        """Return a text without the space around it; empty if blank."""
        if self.value is not None and not isinstance(self.value, str):
            raise self.error(f"must be a text, got {_short(self.value)}")
        text = (self.value or "").strip()
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise self.error(f"must hold no half of a surrogate pair, got {_short(text)}")
        return text

    def number(self) -> float:
        """Return a finite number of at least 0; NaN if blank."""
        if self.value is None:
            return math.nan
        number = _float(self.value)
        if not 0 <= number < math.inf:
            raise self.error(f"must be a finite number of at least 0, got {_short(self.value)}")
        return number

    def required_number(self) -> float:
        """Return a finite number of at least 0, which must not be blank."""
        number = self.number()
        if math.isnan(number):
            raise self.error("must be given")
        return number

    def day(self) -> str:
        """Return the day of a text that begins with one, such as 20251120 or 2025-11-20, or of seconds since 1970."""
        try:
            if isinstance(self.value, int | float):
                return dt.datetime.fromtimestamp(self.value, dt.UTC).date().isoformat()
        except (ValueError, OverflowError, OSError):
            match = None
        else:
            match = _DAY.match(self.text())
        if self.value is not None and not match:
            raise self.error(f"must be a date such as 2025-11-20 or seconds since 1970, got {_short(self.value)}")
        return "-".join(match.groups()) if match else ""

    def numbers(self) -> Floats:
        """Return an array of finite numbers of at least 0."""
        if not self.is_array:
            raise self.error(f"must be an array of numbers, got {_short(self.value)}")
        try:
            if isinstance(self.value, array) or set(map(type, self.value)) <= {int, float}:
                numbers = np.array(self.value, dtype=np.float64)
                if numbers.size == 0 or (numbers.min() >= 0 and numbers.max() < math.inf):
                    return numbers
        except OverflowError:
            pass
        wrong = next(entry for entry in self.items() if not 0 <= _float(entry.value) < math.inf)
        raise wrong.error(f"must be a finite number of at least 0, got {_short(wrong.value)}")

    def error(self, problem: str) -> SchemaError:
        """Return the error with this node's file, line and path."""
        path = self.path if self.path.isprintable() and len(self.path) <= 120 else ascii(self.path)[:120]
        return SchemaError(path, problem, self.place, self.line)


def cell_node(text: str, path: str, place: str, line: int) -> Node:
    """Return the node of a cell of a text file: a number if it is a finite one without sign, blank if it is empty."""
    is_number = _NUMBER.fullmatch(text) and math.isfinite(float(text))
    value = float(text) if is_number else (text or None)
    return Node(value, path, place, line)


def csv_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row of a CSV file starts, and its cells; see `read_text` and `iter_csv`."""
    yield from iter_csv(io.StringIO(read_text(source)), source.name)


def begins_json(start: bytes, *names: str, opening: tuple[bytes, ...] = (b"{",)) -> bool:
    """Return whether the start of a file is JSON with one of the opening characters and all of the quoted names."""
    is_json = start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(opening)
    return is_json and all(f'"{name}"'.encode() in start for name in names)


def check_keys(document: Node, keys: Sequence[str], tool: str) -> None:
    """Refuse a document that lacks one of the keys. Raises `SchemaError` if a key is missing."""
    for key in keys:
        if document[key].is_blank:
            raise document[key].error(f"no such field: this is no result of {tool}, or a truncated one")


def read_document(source: Source, hook: Hook | None = None) -> Node:
    """Return a file that is one JSON object; see `read_json`."""
    return _object(read_json(source, hook))


def read_json(source: Source, hook: Hook | None = None) -> Node:
    """Return a file that is one JSON document, in UTF-8 with or without a byte order mark.

    Raises `SchemaError` if the file is empty, too large, truncated or no JSON; names the line.
    """
    return _parse(read_text(source), source.name, 0, hook)


def read_text(source: Source) -> str:
    """Return the text of a file.

    Raises `SchemaError` if the file is empty, too large or not UTF-8; names the line.
    """
    content = bytearray()  # grows with the file; the largest size is not reserved
    while chunk := source.stream.read(_CHUNK_BYTE):
        content += chunk
        if len(content) > MAX_DOCUMENT_BYTE:
            raise SchemaError("", f"must be at most {MAX_DOCUMENT_BYTE} bytes", source.name)
    text = _decode(content, source.name, 0)
    if not text or text.isspace():
        raise SchemaError("", "is empty", source.name)
    return text


def iter_documents(source: Source, hook: Hook | None = None) -> Iterator[Node]:
    """Yield the objects of a file of JSON lines, one line in memory at a time; blank lines are skipped.

    Raises `SchemaError` if the file is empty, or a line is too long, truncated or no JSON object.
    """
    n_document = 0
    for line, content in iter_lines(source, MAX_JSON_LINE_BYTE):
        n_document += 1
        yield _object(_parse(_decode(content, source.name, line), source.name, line, hook))
    if not n_document:
        raise SchemaError("", "is empty", source.name)


def _decode(content: bytes | bytearray, place: str, line: int) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = line or content.count(b"\n", 0, error.start) + 1
        raise SchemaError("", f"must be UTF-8: {error.reason}", place, at) from error


def _parse(text: str, place: str, line: int, hook: Hook | None) -> Node:
    try:
        value = parse_packed(text, hook)
    except json.JSONDecodeError as error:
        is_cut = not error.doc[error.pos :].strip() or error.msg.startswith("Unterminated")
        problem = "ends early: the file is truncated" if is_cut else f"is not valid JSON: {error.msg.lower()}"
        raise SchemaError("", problem, place, line or error.lineno) from error
    except (ValueError, RecursionError) as error:
        problem = "is nested too deeply" if isinstance(error, RecursionError) else "holds a number of too many digits"
        raise SchemaError("", problem, place, line) from error
    return Node(value, "", place, line)


def _object(node: Node) -> Node:
    if not isinstance(node.value, dict):
        raise SchemaError("", f"must be a JSON object, got {_short(node.value)}", node.place, node.line or 1)
    return node


def _float(value: object) -> float:
    try:
        return float(value) if type(value) in {int, float} else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def _short(value: object, limit: int = 60) -> str:
    kinds = {dict: "an object", list: "an array", array: "an array", type(None): "nothing"}
    text = kinds.get(type(value)) or repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
