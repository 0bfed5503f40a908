"""Readers of published files: one record a published row, with its place as cells that begin with @."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import SchemaError

Cells = Mapping[str, Any]

_HEADING: Final = re.compile(r"(#+)\s+(.*)")
_RULE: Final = re.compile(r"\|(\s*:?-+:?\s*\|)+")
_PAGE_FIELDS: Final = {"first": "@date", "last": "@last", "file": "@page", "head": "@heading", "intro": "@intro"}


class RejectionError(Exception):
    """Raised by a rule or a hook that rejects a published row: short name of the rule, and detail."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Record:
    """Published row: what its source states.

    - `reference`: Identifier in the source.
    - `cells`: Text or JSON value by column. Every reader adds ``@source``, ``@file``, ``@path`` below the
      campaign's folder, and ``@row`` counted from 1 in its file; most add ``@line``, pages and Markdown ``@heading``.
    - `n_published`: Number of published rows that the record joins.
    - `rejection`: Rule and detail, if a hook rejects the row.
    """

    reference: str
    cells: Cells
    n_published: int = 1
    rejection: tuple[str, str] | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """Cells of the source alone."""
        return {name: value for name, value in self.cells.items() if not name.startswith("@")}

    def having(self, **cells: object) -> Record:
        """Return the record with more cells."""
        return replace(self, cells={**self.cells, **cells})

    def rejected(self, reason: str, detail: str) -> Record:
        """Return the record as one that a rule rejects."""
        return replace(self, rejection=(reason, detail))


@dataclass(frozen=True)
class FileSet:
    """Entry of ``[[files]]``: files of one format, read in the order of the patterns, then of their paths.

    - `globs`: Patterns below the campaign's folder, each of which at least one file matches.
    - `format`: Name in `FORMATS`.
    - `rows`: JSON: paths of nested lists, each of whose items is a record with the cells around it.
    - `keys`: JSON: names of the keys of nested objects, each of whose members is a record with the keys as cells.
    - `columns`: JSON lines: names of the items of a line that is a list.
    - `fields`: Text: regular expression of two groups, name and value, whose matches become cells.
    - `comment`: CSV: lines with this beginning are skipped.
    - `unquoted`: CSV: column whose commas are not quoted.
    - `is_loose`: CSV and Markdown: a line with more or fewer cells than the header is no error.
    - `is_titled`: HTML: the first row of each table names the columns.
    - `is_plain`: Whether names of columns count in lower case, with single blanks for blanks and underscores.
    - `repeated`: Columns whose blank cells repeat that of the row above.
    - `only`: Regular expressions by column that a row must match to be one.
    """

    globs: tuple[str, ...]
    format: str
    rows: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    fields: str = ""
    comment: str = ""
    unquoted: str = ""
    is_loose: bool = False
    is_titled: bool = False
    is_plain: bool = False
    repeated: tuple[str, ...] = ()
    only: Mapping[str, str] = field(default_factory=dict)

    def cells(self, folder: Path) -> Iterator[dict[str, Any]]:
        """Yield the cells of all records. Raises `SchemaError` if no file matches, or one is not of the format."""
        for file in self._paths(folder):
            text = "" if self.format == "path" else file.read_text(encoding="utf-8-sig")
            place = {"@source": file, "@file": file.name, "@path": file.relative_to(folder).as_posix()}
            above = dict.fromkeys(self.repeated, "")
            for row, read in enumerate(FORMATS[self.format](text, file.name, self), start=1):
                cells = {_plain(name): cell for name, cell in read.items()} if self.is_plain else read
                above |= {name: cells[name] for name in above if cells.get(name)}
                cells |= {name: text for name, text in above.items() if name in cells}
                if all(re.search(pattern, str(cells.get(name, ""))) for name, pattern in self.only.items()):
                    yield {**place, "@row": row, **cells}

    def _paths(self, folder: Path) -> Iterator[Path]:
        for glob in self.globs:
            files = sorted(folder.glob(glob))
            if not files:
                raise SchemaError("", f"no file {glob}: put the published files there, see --raw", str(folder))
            yield from files


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", " ", name).strip().lower()


def csv_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:
    """Yield the stripped cells of each line that is not blank.

    Raises `SchemaError` if a line has more or fewer cells than the header. Of a loose file the last cells may lack or
    exceed.
    """
    if files.comment:
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(files.comment))
    reader = csv.reader(io.StringIO(text, newline=""))
    header = [cell.strip() for cell in next(reader, [])]
    for cells in reader:
        if not any(cells):
            continue
        n_more = len(cells) - len(header)
        if n_more > 0 and files.unquoted in header:
            i = header.index(files.unquoted)
            cells[i : i + n_more + 1] = [",".join(cells[i : i + n_more + 1])]
        elif n_more and not files.is_loose:
            problem = f"must have {len(header)} cells as the header has, got {len(cells)}"
            raise SchemaError("", problem, name, reader.line_num)
        yield {"@line": reader.line_num} | dict(zip(header, map(str.strip, cells), strict=False))


def json_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:
    """Yield the document, or the items of its lists with the cells around them; of a list each item.

    Raises `SchemaError` if the file is no JSON object or list of objects, or lacks a list or a nested object.
    """
    if files.keys:
        yield from _members(_json_object(text, name), files.keys, name)
        return
    paths = ("", *files.rows) if text.lstrip().startswith("[") else files.rows
    yield from _items(_json_object(text if paths == files.rows else f'{{"": {text}}}', name), paths, name)


def _members(members: Any, keys: tuple[str, ...], name: str) -> Iterator[dict[str, Any]]:
    if not isinstance(members, dict):
        raise SchemaError(keys[0] if keys else "", f"must be a JSON object, got {type(members).__name__}", name)
    if not keys:
        yield members
        return
    for key, member in members.items():
        yield from ({keys[0]: key} | cells for cells in _members(member, keys[1:], name))


def _items(cells: dict[str, Any], paths: tuple[str, ...], name: str) -> Iterator[dict[str, Any]]:
    if not paths:
        yield cells
        return
    items = cells.get(paths[0])
    if not isinstance(items, list):
        raise SchemaError(paths[0], "must be a list", name)
    for position, item in enumerate(items):
        around = {key: value for key, value in cells.items() if key}
        yield from _items({**around, "@position": position, **item}, paths[1:], name)


def _json_object(text: str, name: str, line: int = 0, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise SchemaError("", f"must be JSON: {error}", name, line) from error
    if columns and isinstance(document, list) and len(document) == len(columns):
        return dict(zip(columns, document, strict=True))
    if not isinstance(document, dict):
        raise SchemaError("", f"must be a JSON object, got {type(document).__name__}", name, line)
    return document


def jsonl_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:
    """Yield the object of each line that is not blank."""
    for line, part in enumerate(text.splitlines(), start=1):
        if part.strip():
            yield {"@line": line} | _json_object(part, name, line, files.columns)


def page_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:
    """Yield the rows of documentation tables, stored as one JSON line per row of every revision of a page.

    Raises `SchemaError` if a line lacks its row, page, headings or dates.
    """
    for cells in jsonl_cells(text, name, files):
        if not {*_PAGE_FIELDS, "row"} <= cells.keys():
            raise SchemaError("", f"must have {', '.join(_PAGE_FIELDS)} and row", name, cells["@line"])
        yield (
            {"@line": cells["@line"]} | {ours: cells[theirs] for theirs, ours in _PAGE_FIELDS.items()} | cells["row"]
        )


def markdown_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:
    """Yield the rows of all tables, with the headings above them, the outermost first, as ``@headings``.

    Columns of the same name keep the last cell.

    Raises `SchemaError` if a row has more or fewer cells than the header. Of a loose file it has no cells.
    """
    headings: dict[int, str] = {}
    header: list[str] = []
    lines = [line.strip() for line in text.splitlines()]
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), start=1):
        heading = _HEADING.fullmatch(line)
        if heading:
            level = len(heading[1])
            headings = {n: title for n, title in headings.items() if n < level} | {level: heading[2].strip()}
        if _RULE.fullmatch(following):
            header = _bar_cells(line)
        elif not line.startswith("|"):
            header = []
        elif header and not _RULE.fullmatch(line):
            cells = _bar_cells(line)
            if len(cells) != len(header) and not files.is_loose:
                raise SchemaError(
                    "", f"must have {len(header)} cells as the header has, got {len(cells)}", name, number
                )
            row = dict(zip(header, cells, strict=True)) if len(cells) == len(header) else {}
            titles = tuple(headings[n] for n in sorted(headings))
            yield {"@line": number, "@headings": titles, "@heading": titles[-1] if titles else ""} | row


def _bar_cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def html_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:  # noqa: ARG001 (one signature)
    """Yield the rows of all tables: ``@table`` counted from 0, ``@cells``, and the cells by column.

    Columns are numbers from 0, or titles. Cells that span rows repeat.
    """
    reader = _HtmlReader()
    reader.feed(text)
    titles: dict[int, tuple[str, ...]] = {}
    for row in reader.rows:
        if not files.is_titled:
            yield row | {str(number): cell for number, cell in enumerate(row["@cells"])}
        elif row["@table"] in titles:
            yield row | dict(zip(titles[row["@table"]], row["@cells"], strict=False))
        else:
            titles[row["@table"]] = row["@cells"]


@dataclass
class _HtmlReader(HTMLParser):
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._table = -1
        self._cells: list[str] = []
        self._spans: dict[int, tuple[int, str]] = {}
        self._span = 0
        self._line = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._table += 1
            self._spans = {}
        elif tag == "tr":
            self._line, self._cells = self.getpos()[0], []
        elif tag in {"td", "th"}:
            self._repeat_spanning()
            self._cells.append("")
            self._span = int(dict(attrs).get("rowspan") or 1)

    def handle_data(self, data: str) -> None:
        if self._span:
            self._cells[-1] = f"{self._cells[-1]} {data}".strip()

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            if self._span > 1:
                self._spans[len(self._cells) - 1] = (self._span - 1, self._cells[-1])
            self._span = 0
        elif tag == "tr":
            self._repeat_spanning()
            self.rows.append({"@line": self._line, "@table": self._table, "@cells": tuple(self._cells)})

    def _repeat_spanning(self) -> None:
        while len(self._cells) in self._spans:
            n_left, text = self._spans[len(self._cells)]
            if n_left > 1:
                self._spans[len(self._cells)] = (n_left - 1, text)
            else:
                del self._spans[len(self._cells)]
            self._cells.append(text)


def text_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:  # noqa: ARG001 (one signature)
    """Yield the text of a page or log as ``@text``, with the matches of `FileSet.fields`."""
    found = re.findall(files.fields, text, re.MULTILINE) if files.fields else []
    yield {"@text": text} | dict(found)


def line_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:  # noqa: ARG001 (one signature)
    """Yield the named groups of `FileSet.fields` for each line that it matches, below the last Markdown heading."""
    heading = ""
    for number, line in enumerate(text.splitlines(), start=1):
        heading = line.strip("# ") if line.startswith("#") else heading
        if found := re.search(files.fields, line):
            yield {"@line": number, "@heading": heading, "@text": line, **found.groupdict()}


def path_cells(text: str, name: str, files: FileSet) -> Iterator[dict[str, Any]]:  # noqa: ARG001 (one signature)
    """Yield the place of the file alone: a hook reads it."""
    yield {}


FORMATS: Final[Mapping[str, Callable[[str, str, FileSet], Iterator[dict[str, Any]]]]] = {
    "csv": csv_cells, "json": json_cells, "jsonl": jsonl_cells, "pages": page_cells, "markdown": markdown_cells,
    "html": html_cells, "text": text_cells, "lines": line_cells, "path": path_cells,
}  # fmt: skip
"""Reader by format: takes text, file name and options, yields the cells of each record."""
