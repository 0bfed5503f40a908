"""Rows as NDJSON, a JSON object a line, and as JSON; a line that cannot be read is a row that has no answer."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import IO, Any, Final

import pandas as pd
from pydantic_core import from_json, to_json

from roofcast.data.errors import InputError
from roofcast.data.measurements.schema import ASKED_COLUMNS
from roofcast.serving.http.body import read_object
from roofcast.serving.http.bulk.chunks import MAX_TEXT, N_ROW, Chunk
from roofcast.serving.http.bulk.inline import InlineModels
from roofcast.serving.predict.json_rows import table

MAX_LINE_BYTE: Final = 65_536
"""Longest line that is read: each column with its longest text, escaped, or a model's configuration."""

_BLOCK_BYTE: Final = 1_000_000
_BLANK: Final[Mapping[str, Any]] = dict.fromkeys(("model", "accelerator"))


def check_lines(body: IO[bytes], max_row: int) -> None:
    """Count the rows before any is answered.

    Raises
    ------
    InputError
        If there is none, or there are more than `max_row`.
    """
    n_row = 0
    while block := body.read(_BLOCK_BYTE):
        n_row += block.count(b"\n")
    body.seek(0)
    if n_row > max_row:
        raise InputError("body", f"must be at most {max_row} lines, got {n_row}; send them in parts")
    if next(_lines(body), None) is None:
        raise InputError("body", "there is no line; send a JSON object on each")
    body.seek(0)


def read_lines(body: IO[bytes], models: InlineModels) -> Iterator[Chunk]:
    """Return the rows of the lines, in order; lines that are blank are none.

    Parameters
    ----------
    body
        That `check_lines` has passed.
    models
        Where those go that rows bring along.
    """
    lines = _lines(body)
    while part := list(islice(lines, N_ROW)):
        rows: list[Mapping[str, Any]] = []
        refused: dict[int, str] = {}
        for position, (_, line) in enumerate(part):
            try:
                rows.append(read_row(line, models))
            except InputError as error:
                refused[position] = InputError.__str__(error)  # without the place, which is another here
                rows.append(_BLANK)
        echoes = [b"{" if i in refused else _echo(line, rows[i], models) for i, (_, line) in enumerate(part)]
        questions = table([_BLANK, *rows]).iloc[1:].reset_index(drop=True)
        yield Chunk(questions, "line", [number for number, _ in part], refused, echoes, models=models)


def _echo(line: bytes, row: Mapping[str, Any], models: InlineModels) -> bytes:
    """Return a row as it was written, without its end; of a model's configuration the name is left.

    A carriage return between two fields becomes a space: to some readers it ends a line.
    """
    name = models.names.get(row.get("model", ""))
    return to_json({**row, "model": name})[:-1] if name else line[:-1].rstrip().replace(b"\r", b" ")


def _lines(body: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Return the lines that are not blank and their numbers; of one that is too long the start."""
    number = 0
    while line := body.readline(MAX_LINE_BYTE + 1):
        number += 1
        rest = line
        while len(rest) > MAX_LINE_BYTE and not rest.endswith(b"\n"):
            rest = body.readline(MAX_LINE_BYTE + 1)
        if text := line.strip().removeprefix(codecs.BOM_UTF8):
            yield number, text


def read_row(line: bytes, models: InlineModels) -> Mapping[str, Any]:
    """Return the fields of one question; a model that comes with its configuration goes to `models`, which names it.

    Most lines are plain: one brace means that no field is an object, and no more colons than fields that none is
    given twice.

    Raises
    ------
    InputError
        If it is no JSON object of columns of questions, each a number, a text, true, false or null, or its model's
        configuration is no language model's.

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
        fields = _read_with_care(line)
    if not fields.keys() <= ASKED_COLUMNS.keys():
        name = next(iter(fields.keys() - ASKED_COLUMNS.keys()))
        raise InputError(name, f"is not a column of questions; they are {', '.join(ASKED_COLUMNS)}")
    model = fields.get("model")
    return {**fields, "model": models.read(model)} if isinstance(model, dict) else fields


def _read_with_care(line: bytes) -> Mapping[str, Any]:
    if len(line) > MAX_LINE_BYTE:
        raise InputError("", f"must be at most {MAX_LINE_BYTE} bytes")
    fields = read_object(line)
    for name, value in fields.items():
        if isinstance(value, list | dict) and not (name == "model" and isinstance(value, dict)):
            raise InputError(name, "must be a number, a text, true, false or null")
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise InputError(name, f"must be at most {MAX_TEXT} characters long")
    return fields


def objects(chunk: Chunk, answers: pd.DataFrame) -> list[bytes]:
    """Return each row with its answers as a JSON object; what was sent as JSON comes back as it was written."""
    echoes = _echoes(chunk.questions) if chunk.echoes is None else chunk.echoes
    names = list(answers.columns)
    values = zip(*(answers[name].tolist() for name in names), strict=True)
    texts = (to_json(dict(zip(names, row, strict=True)), inf_nan_mode="null") for row in values)
    return [echo + (b"," if len(echo) > 1 else b"") + text[1:] for echo, text in zip(echoes, texts, strict=True)]


def _echoes(questions: pd.DataFrame) -> list[bytes]:
    names = list(questions.columns)
    values = zip(*(questions[name].tolist() for name in names), strict=True)
    return [to_json(dict(zip(names, row, strict=True)), inf_nan_mode="null")[:-1] for row in values]


class NdjsonWriter:
    """Writes a line a row."""

    def rows(self, chunk: Chunk, answers: pd.DataFrame) -> bytes:
        """Return the lines of some rows."""
        return b"\n".join([*objects(chunk, answers), b""])

    def end(self) -> bytes:
        """Return what follows the last row."""
        return b""


class JsonWriter:
    """Writes one object, as a JSON request is answered with.

    Parameters
    ----------
    version, level
        What stands before the rows.
    """

    def __init__(self, version: str, level: float) -> None:
        head = to_json({"predictor_version": version, "level": level})
        self._before = head[:-1] + b',"rows":['

    def rows(self, chunk: Chunk, answers: pd.DataFrame) -> bytes:
        """Return the text of some rows, with what stands before them."""
        before, self._before = self._before, b","
        return before + b",".join(objects(chunk, answers))

    def end(self) -> bytes:
        """Return what follows the last row."""
        return b"]}"
