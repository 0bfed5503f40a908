"""Rows of a CSV file with the lines on which they start, at the cost of its bytes."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from roofcast.data.errors import SchemaError

MAX_BLANK_LINE: Final = 10_000


def iter_csv(lines: Iterable[str], place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row of a CSV file starts, and its cells; blank lines are no rows.

    Raises `SchemaError` if it is no CSV, or has more than `MAX_BLANK_LINE` blank lines; names the line.
    """
    reader = csv.reader(lines, strict=True)
    line, n_blank = 1, 0
    try:
        for row in reader:
            if row:
                yield line, row
            elif (n_blank := n_blank + 1) > MAX_BLANK_LINE:
                raise SchemaError("", f"has more than {MAX_BLANK_LINE:,} blank lines; remove them", place, line)
            line = reader.line_num + 1  # a quoted line break makes a row longer than a line
    except csv.Error as error:
        raise SchemaError("", f"is not valid CSV, or truncated: {error}", place, line) from error


def check_width(row: Sequence[object], header: Sequence[object], place: str, line: int) -> None:
    """Refuse a row of a CSV file with more or fewer cells than its header.

    Raises `SchemaError` if the numbers of cells differ.
    """
    if len(row) != len(header):
        problem = f"must have {len(header)} cells as the header has, got {len(row)}; is the file truncated?"
        raise SchemaError("", problem, place, line)
