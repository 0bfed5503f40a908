"""CSV tables of users: names of columns, cells as written, and the lines that messages name."""

from __future__ import annotations

import io
from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from roofcast.data.csv_rows import check_width, iter_csv
from roofcast.data.errors import SchemaError

if TYPE_CHECKING:
    import pandas as pd


class CsvTable(NamedTuple):
    """A CSV file: names of its columns, cells as written, and the line on which each row starts."""

    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def frame(self) -> pd.DataFrame:
        """Return the cells as a data frame of texts, indexed by line."""
        import pandas as pd  # noqa: PLC0415  (a request to a service does without)

        return pd.DataFrame(self.rows, pd.Index(self.lines, dtype="int64"), self.header, dtype=object)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries. Raises `SchemaError` if two columns have the same name."""
        for name in self.header:
            if self.header.count(name) > 1:
                raise SchemaError(name, "is given twice as a column; keep one")
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]

    def inputs(self, outcomes: Collection[str] = ()) -> CsvTable:
        """Return the table without what was measured and its provenance, but for `outcomes`."""
        from roofcast.data.measurements.schema import OUTCOME_COLUMNS, RESULT_COLUMNS  # noqa: PLC0415  (see `frame`)

        ignored = {*OUTCOME_COLUMNS, *RESULT_COLUMNS} - {*outcomes}
        places = [i for i, name in enumerate(self.header) if name not in ignored]
        rows = [[row[i] for i in places] for row in self.rows]
        return CsvTable([self.header[i] for i in places], rows, self.lines)


def parse_table(content: bytes, name: str, max_row: int | None = None) -> CsvTable:
    """Return the table of a CSV file's content; blank lines are no rows.

    `name`: of the file, for messages. `max_row`: most rows that the table may have; the rows after these are not
    read. Raises `SchemaError` if it is not CSV in UTF-8, a row has more or fewer cells than the header, or there are
    too many rows.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError("", "cannot be read: it is not UTF-8 text", name) from error
    n_most = None if max_row is None else max_row + 2
    rows = list(islice(iter_csv(io.StringIO(text, newline=""), name), n_most))
    if not rows:
        raise SchemaError("", "is empty; the first line must name the columns", name, 1)
    (_, header), *body = rows
    if max_row is not None and len(body) > max_row:
        raise SchemaError("", f"has more than {max_row:,} rows; send it in parts", name)
    for line, row in body:
        check_width(row, header, name, line)
    return CsvTable([name.strip() for name in header], [row for _, row in body], [line for line, _ in body])
