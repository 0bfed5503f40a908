"""Reader of documentation tables stored as JSON lines: one line per row of every page revision."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roofcast.data.errors import SchemaError

_FIELDS: Final = ("first", "last", "file", "head", "intro", "row")
_UNITS: Final = r"%|GiB|GB|MiB|TPS|s|ms|samp/s|token/gpu/sec|min"
_NUMBER: Final = re.compile(
    rf"\[?[~≈]?\s*((?:\d[\d,]*)?\.?\d+(?:[eE][+-]?\d+)?)\*?(?:\]\([^)]*\))?\s*(?:{_UNITS})?", re.ASCII
)
_BRACKETED: Final = re.compile(r"([^()]*)\(([^()]*)\)")


@dataclass(frozen=True)
class PageRow:
    """One row of a page table, with its position and the dates of its revisions.

    Parameters
    ----------
    reference
        ``file:line`` of the JSON lines.
    file, heading, intro
        Page, headings above the table, and the paragraph before it.
    date, last
        First and last day on which a revision holds the row.
    cells
        Text by column.
    """

    reference: str
    file: str
    heading: str
    intro: str
    date: str
    last: str
    cells: dict[str, str]


def read_pages(file: Path) -> list[PageRow]:
    """Read the rows of all tables in the file.

    Raises
    ------
    SchemaError
        If the file cannot be read or a line is malformed.
    """
    return [_page_row(file.name, line, text) for line, text in enumerate(_lines(file), start=1)]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SchemaError("", f"cannot be read: {error.strerror}", file.name) from error


def _page_row(name: str, line: int, text: str) -> PageRow:
    try:
        record = json.loads(text)
        first, last, page, head, intro, cells = (record[field] for field in _FIELDS)
    except (ValueError, TypeError, KeyError) as error:
        raise SchemaError("", f"must be a JSON object with {', '.join(_FIELDS)}", name, line) from error
    return PageRow(f"{name}:{line}", page, head, intro, first, last, cells)


def number(text: str | None) -> float | None:
    """Return the number in a cell without its unit; None if the cell does not hold exactly one number.

    Examples
    --------
    >>> number("1,002"), number("16.69 GB"), number("[797*](https://example.org)")
    (1002.0, 16.69, 797.0)
    >>> number("n/a") is None, number("1 (16)") is None, number("8.7 5") is None
    (True, True, True)
    """
    match = _NUMBER.fullmatch((text or "").strip())
    return float(match[1].replace(",", "")) if match else None


def ratio(text: str | None) -> float | None:
    """Return a fraction from a percentage, with or without the percent sign.

    Examples
    --------
    >>> ratio("47.5%"), ratio("62.5"), ratio("0.25")
    (0.475, 0.625, 0.25)
    """
    value = number(text)
    if value is None:
        return None
    return value / 100.0 if "%" in str(text) or value > 1.0 else value


def split_brackets(cells: dict[str, str]) -> tuple[dict[str, str], dict[str, str] | None]:
    """Split cells such as ``1 (2)`` into the row outside the brackets and, if any cell has brackets, the row inside.

    Examples
    --------
    >>> split_brackets({"TP": "1 (2)", "GBS": "128"})
    ({'TP': '1', 'GBS': '128'}, {'TP': '2', 'GBS': '128'})
    >>> split_brackets({"TP": "1"})
    ({'TP': '1'}, None)
    """
    matches = {name: _BRACKETED.fullmatch(text.strip()) for name, text in cells.items()}
    if not any(matches.values()):
        return cells, None
    outside = {name: match[1].strip() if match else cells[name] for name, match in matches.items()}
    inside = {name: match[2].strip() if match else cells[name] for name, match in matches.items()}
    return outside, inside
