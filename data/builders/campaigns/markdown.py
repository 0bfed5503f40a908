"""Reader of tables in Markdown files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roofcast.data.errors import SchemaError

_HEADING: Final = re.compile(r"(#+)\s+(.*)")
_RULE: Final = re.compile(r"\|(\s*:?-+:?\s*\|)+")


@dataclass(frozen=True)
class MarkdownRow:
    """One row of a table in a Markdown file.

    Parameters
    ----------
    reference
        ``file:line``.
    headings
        Headings above the table, the outermost first.
    cells
        Text by column.
    """

    reference: str
    headings: tuple[str, ...]
    cells: dict[str, str]


def read_markdown_rows(file: Path) -> Iterator[MarkdownRow]:
    """Yield the rows of all tables of a file; columns of the same name keep the last cell.

    Raises
    ------
    SchemaError
        If the file is missing, or a row has more or fewer cells than the header.
    """
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    headings: dict[int, str] = {}
    header: list[str] = []
    previous = ""
    for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        line = text.strip()
        heading = _HEADING.fullmatch(line)
        if heading:
            level = len(heading[1])
            headings = {n: name for n, name in headings.items() if n < level} | {level: heading[2].strip()}
        if _RULE.fullmatch(line):
            header = _cells(previous)
        elif header and line.startswith("|"):
            cells = _cells(line)
            if len(cells) != len(header):
                problem = f"must have {len(header)} cells as the header has, got {len(cells)}"
                raise SchemaError("", problem, file.name, number)
            row = dict(zip(header, cells, strict=True))
            yield MarkdownRow(f"{file.name}:{number}", tuple(headings[n] for n in sorted(headings)), row)
        else:
            header = []
        previous = line


def _cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
