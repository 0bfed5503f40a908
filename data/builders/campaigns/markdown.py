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


def read_markdown_rows(file: Path, *, is_strict: bool = True) -> Iterator[MarkdownRow]:
    """Yield the rows of all tables of a file; columns of the same name keep the last cell.

    Parameters
    ----------
    is_strict
        Refuse a row with more or fewer cells than the header; else it has no cells.

    Raises
    ------
    SchemaError
        If the file is missing, or a row is refused.
    """
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    headings: dict[int, str] = {}
    header: list[str] = []
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), start=1):
        heading = _HEADING.fullmatch(line)
        if heading:
            level = len(heading[1])
            headings = {n: name for n, name in headings.items() if n < level} | {level: heading[2].strip()}
        if _RULE.fullmatch(following):
            header = _cells(line)
        elif not line.startswith("|"):
            header = []
        elif header and not _RULE.fullmatch(line):
            cells = _cells(line)
            if is_strict and len(cells) != len(header):
                problem = f"must have {len(header)} cells as the header has, got {len(cells)}"
                raise SchemaError("", problem, file.name, number)
            row = dict(zip(header, cells, strict=True)) if len(cells) == len(header) else {}
            yield MarkdownRow(f"{file.name}:{number}", tuple(headings[n] for n in sorted(headings)), row)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
