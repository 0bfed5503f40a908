"""Reader of HTML tables in Markdown files: cells that span rows repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from roofcast.data.errors import SchemaError


@dataclass(frozen=True)
class HtmlRow:
    """Row of a table: ``file:line``, number of its table from 0, and texts of its cells."""

    reference: str
    table: int
    cells: tuple[str, ...]


def read_html_rows(file: Path) -> list[HtmlRow]:
    """Return the rows of all tables of a file.

    Raises
    ------
    SchemaError
        If the file cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise SchemaError("", f"cannot be read: {error.strerror}", file.name) from error
    reader = _Reader(file.name)
    reader.feed(text)
    return reader.rows


@dataclass
class _Reader(HTMLParser):
    name: str
    rows: list[HtmlRow] = field(default_factory=list)

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
            self.rows.append(HtmlRow(f"{self.name}:{self._line}", self._table, tuple(self._cells)))

    def _repeat_spanning(self) -> None:
        while len(self._cells) in self._spans:
            n_left, text = self._spans[len(self._cells)]
            if n_left > 1:
                self._spans[len(self._cells)] = (n_left - 1, text)
            else:
                del self._spans[len(self._cells)]
            self._cells.append(text)
