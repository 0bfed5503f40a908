"""roofcast's own CSV: columns of the measurement table, one measurement a line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO, Final

import numpy as np
import pandas as pd

from roofcast.data.csv_rows import check_width, iter_csv
from roofcast.data.errors import SchemaError
from roofcast.data.importers.format import Format
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.overrides import EXAMPLES, Overrides, check_required, fill_table
from roofcast.data.importers.run_plausibility import validate_plausible
from roofcast.data.importers.sources import Source, header_of
from roofcast.data.measurements.schema import MEASUREMENT_COLUMNS, OUTCOME_COLUMNS, QUESTION_COLUMNS

MAX_LINE_BYTE: Final = 64 * 2**10
_CHUNK_ROW: Final = 5_000
_REQUIRED: Final = (*EXAMPLES, "request_rate", "load")
_OTHER_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}


def _recognises(start: bytes) -> bool:
    header = header_of(start)
    split = re.split(f"[{''.join(_OTHER_SEPARATORS)}]", header[0]) if len(header) == 1 else header
    names = {name.strip() for name in split}
    n_question = len(names & QUESTION_COLUMNS.keys())
    return {"model", "accelerator"} <= names or bool(n_question and names & OUTCOME_COLUMNS.keys()) or n_question > 2


def _read(sources: Iterable[Source], campaign: str, overrides: Overrides, names: NameCheck) -> pd.DataFrame:
    chunks = [chunk for source in sources for chunk in _iter_chunks(source, campaign, overrides, names)]
    return pd.concat(chunks, ignore_index=True)


def _iter_chunks(source: Source, campaign: str, overrides: Overrides, names: NameCheck) -> Iterator[pd.DataFrame]:
    rows = iter_rows(source)
    header = next(rows, (0, []))[1]
    if not any(header):
        raise SchemaError("", "is empty; the first line must name the columns", source.name, 1)
    separator = next((name for mark, name in _OTHER_SEPARATORS.items() if mark in header[0]), "")
    if len(header) == 1 and separator:
        raise SchemaError("", f"has cells separated by {separator}; save it with commas between them", source.name, 1)
    is_empty = True
    while chunk := list(islice(rows, _CHUNK_ROW)):
        is_empty = False
        lines = [line for line, _ in chunk]
        for line, row in chunk:
            check_width(row, header, source.name, line)
        table = pd.DataFrame([row for _, row in chunk], columns=header, dtype=object)
        if "campaign" not in table.columns:
            table["campaign"] = campaign
        table["campaign"] = table["campaign"].where(table["campaign"] != "", campaign)
        filled = fill_table(table, overrides, source.name, lines)
        if not filled.columns.duplicated().any():
            names.check(filled, source.name, lines)
        _check_required(filled, source.name, lines)
        yield validate_plausible(filled, source.name, lines)
    if is_empty:
        raise SchemaError("", "holds no row below its header", source.name, 2)


def _check_required(table: pd.DataFrame, name: str, lines: Sequence[int]) -> None:
    if table.columns.duplicated().any() or not set(table.columns) <= set(MEASUREMENT_COLUMNS):
        return  # validation refuses the columns
    cells = table.reindex(columns=_REQUIRED)
    required = cells[list(EXAMPLES)]
    positions = np.flatnonzero((required.isna() | (required == "")).any(axis=1))
    rows: list[dict[Any, Any]] = cells.iloc[positions].to_dict("records")
    for position, row in zip(positions.tolist(), rows, strict=True):
        check_required(row, name, lines[position])


def iter_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank with the line on which it starts; a quoted line break becomes a space."""
    for line, row in iter_csv(_iter_lines(source.stream, source.name), source.name):
        cells = [" ".join(cell.splitlines()).strip() for cell in row]
        if any(cells) or len(cells) > 1:
            yield line, cells


def _iter_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    line = 0
    while content := stream.readline(MAX_LINE_BYTE + 1):
        line += 1
        if len(content) > MAX_LINE_BYTE:
            raise SchemaError("", f"a line must be at most {MAX_LINE_BYTE} bytes long", name, line)
        if b"\0" in content:
            raise SchemaError("", "holds a NUL byte; is the file binary?", name, line)
        try:
            yield content.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise SchemaError("", f"must be UTF-8: {error.reason}", name, line) from error


FORMAT: Final = Format("roofcast_csv", also=_recognises, read=_read)
