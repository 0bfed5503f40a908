"""Rows as Parquet: unpacked by another process, see `unpacking`, and written a row group a chunk."""

# ruff: noqa: PLC0415  (pyarrow takes a quarter of a second and 40 MB; who sends no Parquet does not wait for it)

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, TYPE_CHECKING, Final

import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.measurements.schema import ASKED_COLUMNS, NUMBER_COLUMNS
from roofcast.serving.http.bulk import WRONG_FILE
from roofcast.serving.http.bulk.chunks import MAX_TEXT, N_ROW, Chunk

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_UNPACKED_BYTE: Final = 256_000_000
"""Most that a file may hold when unpacked, texts that are repeated counted once."""

_MAX_MEMORY_BYTE: Final = 1_500_000_000
"""Address space of the process that unpacks, of which libraries take the half."""

_MAX_S: Final = 30
_TEXTS: Final = [name for name in ASKED_COLUMNS if name not in NUMBER_COLUMNS]
_NUMBERS: Final = [name for name in ASKED_COLUMNS if name in NUMBER_COLUMNS]
_ENVIRONMENT: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}


def unpacked(body: SpooledTemporaryFile[bytes], max_row: int) -> IO[bytes]:
    """Return what a file of questions holds, for `read_unpacked`; all of it has been read without a fault.

    Raises
    ------
    InputError
        If it is no Parquet of questions, cut, damaged, or larger unpacked than can be read.
    """
    body.rollover()
    body.seek(0)
    limits = {
        "texts": _TEXTS, "numbers": _NUMBERS, "required": ["model", "accelerator"], "n_row": max_row, "chunk": N_ROW,
        "text": MAX_TEXT, "memory_byte": _MAX_MEMORY_BYTE, "unpacked_byte": MAX_UNPACKED_BYTE, "cpu_s": _MAX_S,
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "roofcast.serving.http.bulk.unpacking", json.dumps(limits)]
    found = TemporaryFile()  # noqa: SIM115  (who reads it closes it)
    environment = {**os.environ, **_ENVIRONMENT}
    done = subprocess.run(command, stdin=body, stdout=found, stderr=subprocess.PIPE, env=environment, check=False)  # noqa: S603  (our own)
    if done.returncode:
        found.close()
        is_told = done.returncode == WRONG_FILE
        told = json.loads(done.stderr.splitlines()[-1]) if is_told else ("body", "is no Parquet that can be read")
        raise InputError(*told)
    found.seek(0)
    return found


def read_unpacked(found: IO[bytes]) -> Iterator[Chunk]:
    """Return the rows, in order, and close the file."""
    import pyarrow as pa

    start = 1
    with found, pa.ipc.open_stream(found) as batches:
        for coded in batches:
            arrays = [_plain(column) for column in coded.columns]
            batch = pa.RecordBatch.from_arrays(arrays, names=coded.schema.names)
            questions = coded.to_pandas().astype(object)
            yield Chunk(questions, "row", range(start, start + len(questions)), batch=batch)
            start += len(questions)


def _plain(column: pa.Array) -> pa.Array:
    from pyarrow import types

    return column.dictionary_decode() if types.is_dictionary(column.type) else column


class ParquetWriter:
    """Writes a row group a chunk.

    Parameters
    ----------
    version, level
        What the file's metadata says of the answers.
    """

    def __init__(self, version: str, level: float) -> None:
        self._metadata = {"roofcast.predictor_version": version, "roofcast.level": repr(level)}
        self._pipe = _Pipe()
        self._writer: pq.ParquetWriter | None = None

    def rows(self, chunk: Chunk, answers: pd.DataFrame) -> bytes:
        """Return what the file has of some rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        asked = chunk.batch or _batch(chunk)
        told = pa.RecordBatch.from_pandas(answers, schema=_answer_schema(answers), preserve_index=False)
        names = [*asked.schema.names, *told.schema.names]
        both = pa.RecordBatch.from_arrays([*asked.columns, *told.columns], names=names)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._pipe, both.schema.with_metadata(self._metadata))
        self._writer.write_batch(both.replace_schema_metadata(self._metadata))
        return self._pipe.drain()

    def end(self) -> bytes:
        """Return what follows the last row."""
        if self._writer is not None:
            self._writer.close()
        return self._pipe.drain()


def _batch(chunk: Chunk) -> pa.RecordBatch:
    """Return questions that were sent as JSON, each column of one type; a number that is none becomes null.

    Of a model that came with its configuration the name is left.
    """
    import pyarrow as pa

    questions = chunk.questions
    if chunk.models:
        questions = questions.assign(model=questions["model"].replace(chunk.models.names))
    columns = {}
    for name in ASKED_COLUMNS:
        given = questions[name] if name in questions else pd.Series(None, questions.index, dtype=object)
        if name in NUMBER_COLUMNS:
            columns[name] = pa.array(
                pd.to_numeric(given, errors="coerce").astype(float), pa.float64(), from_pandas=True
            )
        else:
            columns[name] = pa.array([None if value is None else str(value) for value in given], pa.string())
    return pa.RecordBatch.from_pydict(columns)


def _answer_schema(answers: pd.DataFrame) -> pa.Schema:
    import pyarrow as pa

    kinds = {"status": pa.string(), "reason": pa.string(), "outside": pa.bool_()}
    return pa.schema([(str(name), kinds.get(str(name), pa.float64())) for name in answers.columns])


class _Pipe(io.RawIOBase):
    """A file that is only written to, and handed on as it grows."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = bytearray()
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: memoryview | bytes) -> int:  # type: ignore[override]  # of what pyarrow hands over
        part = bytes(data)
        self._waiting += part
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def drain(self) -> bytes:
        """Return what was written since the last call."""
        waiting, self._waiting = self._waiting, bytearray()
        return bytes(waiting)
