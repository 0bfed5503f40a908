"""NDJSON reader, and writers of NDJSON and JSON; a line that cannot be read becomes a row with an error."""

import codecs
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import IO, Any, Final

from pydantic_core import from_json, to_json

from roofcast.data.errors import MAX_PROBLEM, InputError, join_errors
from roofcast.data.measurements.cells import ColumnArray, Table
from roofcast.serving.http.body import read_object
from roofcast.serving.http.bulk.chunks import MAX_TEXT, N_ROW, Chunk, InlineModels
from roofcast.serving.predict.question_rows import (
    REQUIRED_COLUMNS,
    ROW_NAMES,
    Problem,
    columns_from_rows,
    unknown_column_error,
)
from roofcast.serving.request_fields import StackResponse

MAX_LINE_BYTE: Final = 65_536
"""Longest line: enough for each column with its longest text, escaped, or a model's configuration."""

_BLOCK_BYTE: Final = 1_000_000
_BLANK: Final[Mapping[str, Any]] = dict.fromkeys(REQUIRED_COLUMNS)


def check_lines(body: IO[bytes], max_row: int) -> None:
    """Check the number of lines. Raises `InputError` if there is none, or there are more than `max_row`."""
    n_row = 0
    while block := body.read(_BLOCK_BYTE):
        n_row += block.count(b"\n")
    body.seek(0)
    if n_row > max_row:
        raise InputError("body", f"must be at most {max_row} lines, got {n_row}; send them in parts")
    if next(_lines(body), None) is None:
        raise InputError("body", "there is no line; send one JSON object per line")
    body.seek(0)


def read_lines(body: IO[bytes], models: InlineModels) -> Iterator[Chunk]:
    """Yield the rows of the lines in chunks, in order; blank lines are skipped.

    `models`: inline models of the rows are added to it.
    """
    lines = _lines(body)
    while part := list(islice(lines, N_ROW)):
        rows: list[Mapping[str, Any]] = []
        echoes: list[bytes] = []
        errors: dict[int, str] = {}
        for i, (_, line) in enumerate(part):
            try:
                rows.append(read_row(line, models))
                echoes.append(_echo(line, rows[i], models))
            except InputError as error:
                errors[i] = Problem.from_error(error).text  # without the source, which is the line here
                rows.append(_BLANK)
                echoes.append(b"{")
        columns = {name: cells[1:] for name, cells in columns_from_rows([_BLANK, *rows]).items()}
        yield Chunk(columns, "line", [number for number, _ in part], errors, echoes, models=models)


def _echo(line: bytes, row: Mapping[str, Any], models: InlineModels) -> bytes:
    name = models.names.get(row.get("model", ""))
    return to_json({**row, "model": name})[:-1] if name else line[:-1].rstrip().replace(b"\r", b" ")


def _lines(body: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := body.readline(MAX_LINE_BYTE + 1):
        number += 1
        rest = line
        while len(rest) > MAX_LINE_BYTE and not rest.endswith(b"\n"):
            rest = body.readline(MAX_LINE_BYTE + 1)
        if text := line.strip().removeprefix(codecs.BOM_UTF8):
            yield number, text


def read_row(line: bytes, models: InlineModels) -> Mapping[str, Any]:
    """Return the fields of one row; an inline model is added to `models` and replaced by its id.

    The fast parser reads most lines. It is safe where the line has one brace, so no field is an object, and no more
    colons than fields, so no field is given twice.

    Raises `InputError` if it is no JSON object of input columns, each a number, a text, true, false or null, or its
    model is not the configuration of a language model.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> models = InlineModels(load_catalog())
    >>> read_row(b'{"model": "llama-7b", "tp": 2}', models)
    {'model': 'llama-7b', 'tp': 2}
    >>> read_row(b'{"tp": 1, "tp": 2}', models)
    Traceback (most recent call last):
    ...
    roofcast.data.errors.SchemaError: body: tp: is given twice; keep one
    """
    fields: Mapping[str, Any] | None = None
    if len(line) <= MAX_TEXT and b"\\" not in line and b"[" not in line and line.count(b"{") == 1:
        try:
            fields = from_json(line, allow_inf_nan=False)
        except ValueError:
            fields = None
    if not isinstance(fields, dict) or len(fields) != line.count(b":"):
        fields = _read_row_strictly(line)
    if not fields.keys() <= ROW_NAMES.keys():
        unknown = (name for name in fields if name not in ROW_NAMES)
        raise join_errors([unknown_column_error(name) for name in islice(unknown, MAX_PROBLEM + 1)])
    model = fields.get("model")
    return {**fields, "model": models.add(model)} if isinstance(model, dict) else fields


def _read_row_strictly(line: bytes) -> Mapping[str, Any]:
    if len(line) > MAX_LINE_BYTE:
        raise InputError("", f"must be at most {MAX_LINE_BYTE} bytes")
    fields = read_object(line)
    for name, value in fields.items():
        if isinstance(value, list | dict) and not (name == "model" and isinstance(value, dict)):
            raise InputError(name, "must be a number, a text, true, false or null")
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise InputError(name, f"must be at most {MAX_TEXT} characters long")
    return fields


def _objects(chunk: Chunk, answers: Table) -> list[bytes]:
    echoes = [text[:-1] for text in _json_rows(chunk.columns)] if chunk.echoes is None else chunk.echoes
    texts = _json_rows(answers)
    return [echo + (b"," if len(echo) > 1 else b"") + text[1:] for echo, text in zip(echoes, texts, strict=True)]


def _json_rows(columns: Table) -> Iterator[bytes]:
    template = b"{" + b",".join(to_json(name) + b":%b" for name in columns) + b"}"
    return (template % row for row in zip(*map(_json_cells, columns.values()), strict=True))


def _json_cells(cells: ColumnArray) -> list[bytes]:
    values = cells.tolist()
    if cells.dtype != object:
        return to_json(values, inf_nan_mode="null")[1:-1].split(b",")
    if {*map(type, values)} == {str}:
        texts = {value: to_json(value) for value in dict.fromkeys(values)}
        return [*map(texts.__getitem__, values)]
    return [to_json(value, inf_nan_mode="null") for value in values]


class NdjsonWriter:
    """Writer of one line per row."""

    def write(self, chunk: Chunk, answers: Table) -> bytes:
        """Return the lines of a chunk."""
        return b"\n".join([*_objects(chunk, answers), b""])

    def end(self) -> bytes:
        """Return nothing: lines need no end."""
        return b""


class JsonWriter:
    """Writer of one object, the same as the answer to a JSON request.

    `version` and `level`: predictor version and interval level; they stand before the rows. `stack`: what the
    request's stack is; it stands after them.
    """

    def __init__(self, version: str, level: float, stack: StackResponse | None = None) -> None:
        head = to_json({"predictor_version": version, "level": level})
        self._before = head[:-1] + b',"rows":['
        self._after = b'],"stack":' + to_json(stack) + b"}"

    def write(self, chunk: Chunk, answers: Table) -> bytes:
        """Return the rows of a chunk, after the head or a comma."""
        before, self._before = self._before, b","
        return before + b",".join(_objects(chunk, answers))

    def end(self) -> bytes:
        """Return what follows the rows."""
        return self._after
