"""Reader of documentation tables stored as JSON lines: one line per row of every page revision."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from builders.figures import number, ratio, split_brackets
from roofcast.data.errors import SchemaError

__all__ = ["PageRow", "number", "ratio", "read_pages", "split_brackets"]

_FIELDS: Final = ("first", "last", "file", "head", "intro", "row")


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
