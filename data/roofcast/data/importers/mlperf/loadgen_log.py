"""Parser of LoadGen's ``mlperf_log_summary.txt``: values by name, each with its line."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from roofcast.data.errors import SchemaError
from roofcast.data.importers.json_input import read_text
from roofcast.data.importers.sources import Source

MAX_LOG_BYTE: Final = 2**20
TITLE: Final = "MLPerf Results Summary"

_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_ERRORS: Final = re.compile(r"(No|[0-9]+) errors? encountered\b.*", re.IGNORECASE)
_SHOWN: Final = 60


@dataclass(frozen=True)
class Log:
    """Values of a log and the number of errors that LoadGen counted.

    Parameters
    ----------
    values
        Text and line by name, with runs of blanks in a name reduced to one.
    """

    place: str
    values: dict[str, tuple[str, int]]
    n_error: int

    def text(self, *names: str) -> str:
        """Return the value of the first name in the log; empty if there is none."""
        return next((self.values[name][0] for name in names if name in self.values), "")

    def number(self, *names: str) -> float:
        """Return the number of the first name in the log; NaN if there is none.

        Raises
        ------
        SchemaError
            If it is no finite number of at least 0; names line and field.
        """
        name = next((name for name in names if name in self.values), "")
        if not name:
            return math.nan
        text = self.values[name][0]
        number = float(text) if len(text) <= _SHOWN and _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(number):
            raise self.schema_error(name, f"must be a finite number of at least 0, got {_shown(text)}")
        return number

    def required_number(self, *names: str) -> float:
        """Return the number of the first name in the log, which must hold one of them.

        Raises
        ------
        SchemaError
            If none of the names is there, or it is no number.
        """
        number = self.number(*names)
        if math.isnan(number):
            raise SchemaError(names[0], "no such line, which this scenario has", self.place)
        return number

    def schema_error(self, name: str, problem: str) -> SchemaError:
        """Return the error with the name of a value and its line."""
        return SchemaError(name, problem, self.place, self.values[name][1] if name in self.values else 0)


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
    values: dict[str, tuple[str, int]] = {}
    for name, value, line in _iter_values(lines):
        if name in values and values[name][0] != value:
            problem = f"is {_shown(values[name][0])} in line {values[name][1]} and {_shown(value)} here"
            raise SchemaError(name, problem, source.name, line)
        values.setdefault(name, (value, line))
    return Log(source.name, values, sum(_count(match[1]) for match in ends))


def _iter_values(lines: list[str]) -> Iterator[tuple[str, str, int]]:
    for number, line in enumerate(lines, start=1):
        name, colon, value = line.rpartition(":")
        name = " ".join(name.split())
        if colon and value.strip() and name and name.isascii() and name.isprintable() and not name.startswith("*"):
            yield name, value.strip(), number


def _count(text: str) -> int:
    return 0 if text.lower() == "no" else min(int(text[:9]), 10**9)


def _shown(text: str) -> str:
    return ascii(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
