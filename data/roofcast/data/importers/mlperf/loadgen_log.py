"""Parser of LoadGen's ``mlperf_log_summary.txt``: values by name, each with its line."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from roofcast.data.errors import SchemaError
from roofcast.data.importers.json_input import Node, read_text
from roofcast.data.importers.sources import Source

MAX_LOG_BYTE: Final = 2**20
TITLE: Final = "MLPerf Results Summary"

_NUMBER: Final = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,9})?")
_ERRORS: Final = re.compile(r"(No|[0-9]+) errors? encountered\b.*", re.IGNORECASE)


@dataclass(frozen=True)
class Log:
    """Values of a log by name, with runs of blanks in a name reduced to one, and the errors that LoadGen counted."""

    place: str
    values: dict[str, Node]
    n_error: int

    def __getitem__(self, names: str | tuple[str, ...]) -> Node:
        """Return the text of the first of the names in the log; blank if there is none."""
        names = (names,) if isinstance(names, str) else names
        known = (self.values[name] for name in names if name in self.values)
        return next(known, Node(None, names[0], self.place))

    def number(self, *names: str) -> float:
        """Return the number of the first name in the log; NaN if there is none.

        Raises
        ------
        SchemaError
            If it is no finite number of at least 0; names line and field.
        """
        node = self[names]
        is_number = node.value and _NUMBER.fullmatch(node.value) and math.isfinite(float(node.value))
        return (Node(float(node.value), node.path, node.place, node.line) if is_number else node).number()

    def required_number(self, *names: str) -> float:
        """Return the number of the first name in the log, which must hold one of them.

        Raises
        ------
        SchemaError
            If none of the names is there, or it is no number.
        """
        if self[names].is_blank:
            raise self[names].error("no such line, which this scenario has")
        return self.number(*names)


def read_log(source: Source) -> Log:
    """Return the values of a log.

    Raises
    ------
    SchemaError
        If the file is empty, too large, not UTF-8, another log, truncated, or gives a name two values.
    """
    content = source.stream.read(MAX_LOG_BYTE + 1)
    if len(content) > MAX_LOG_BYTE:
        raise SchemaError("", f"must be at most {MAX_LOG_BYTE} bytes", source.name)
    lines = read_text(Source(source.name, io.BytesIO(content))).splitlines()
    if not any(line.strip() == TITLE for line in lines):
        raise SchemaError("", f"is no summary of LoadGen: no line {TITLE!r}", source.name)
    ends = [match for line in lines if (match := _ERRORS.fullmatch(line.strip()))]
    if not ends:
        problem = "ends early: LoadGen's count of errors, its last line, is missing"
        raise SchemaError("", problem, source.name, len(lines))
    values: dict[str, Node] = {}
    for node in _iter_values(lines, source.name):
        first = values.setdefault(node.path, node)
        if first.value != node.value:
            raise node.error(f"is {first.value[:60]!a} in line {first.line} and {node.value[:60]!a} here")
    return Log(source.name, values, sum(_count(match[1]) for match in ends))


def _iter_values(lines: list[str], place: str) -> Iterator[Node]:
    for number, line in enumerate(lines, start=1):
        name, colon, value = line.rpartition(":")
        name = " ".join(name.split())
        if colon and value.strip() and name and name.isascii() and name.isprintable() and not name.startswith("*"):
            yield Node(value.strip(), name, place, number)  # advice begins with a star


def _count(text: str) -> int:
    return 0 if text.lower() == "no" else min(int(text[:9]), 10**9)
