"""Parquet reader, which unpacks in another process (see `parquet_process`), and writer of one row group per chunk."""

# ruff: noqa: PLC0415  (importing pyarrow takes a quarter of a second and 40 MB; requests without Parquet skip it)

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.measurements.cells import Table, with_short_names
from roofcast.data.measurements.column_names import LONG_NAMES
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.http.bulk import WRONG_FILE
from roofcast.serving.http.bulk.chunks import MAX_TEXT, N_ROW, Chunk
from roofcast.serving.predict.question_rows import REQUIRED_COLUMNS, ROW_NAMES
from roofcast.serving.predict.row_answers import TEXT_COLUMNS
from roofcast.serving.predict.row_checks import table_columns

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_UNPACKED_BYTE: Final = 256_000_000
"""Largest unpacked file; repeated texts count once."""

_MAX_MEMORY_BYTE: Final = 1_500_000_000
"""Address space of the unpacking process; libraries take half of it."""

_MAX_S: Final = 30
_KINDS: Final = {"texts": "str", "numbers": "float", "flags": "bool"}
_COLUMNS: Final = {
    kind: [name for name in ROW_NAMES if INPUT_COLUMNS[LONG_NAMES.get(name, name)].kind == its_kind]
    for kind, its_kind in _KINDS.items()
}
_ENVIRONMENT: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}


def unpack_file(body: SpooledTemporaryFile[bytes], max_row: int) -> IO[bytes]:
    """Return the Arrow stream of a Parquet file, for `read_unpacked`; the whole file has been validated.

    Raises
    ------
    InputError
        If it is no Parquet file of input columns, truncated, damaged, or too large when unpacked.
    """
    body.rollover()
    body.seek(0)
    limits = {
        **_COLUMNS, "required": REQUIRED_COLUMNS, "n_row": max_row, "chunk": N_ROW,
        "text": MAX_TEXT, "memory_byte": _MAX_MEMORY_BYTE, "unpacked_byte": MAX_UNPACKED_BYTE, "cpu_s": _MAX_S,
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "roofcast.serving.http.bulk.parquet_process", json.dumps(limits)]
    stream = TemporaryFile()  # noqa: SIM115  (`read_unpacked` closes it)
    environment = {**os.environ, **_ENVIRONMENT}
    process = subprocess.run(command, stdin=body, stdout=stream, stderr=subprocess.PIPE, env=environment, check=False)  # noqa: S603  (our own)
    if process.returncode:
        stream.close()
        has_reason = process.returncode == WRONG_FILE
        reason = (
            json.loads(process.stderr.splitlines()[-1]) if has_reason else ("body", "is no readable Parquet file")
        )
        raise InputError(*reason)
    stream.seek(0)
    return stream


def read_unpacked(stream: IO[bytes]) -> Iterator[Chunk]:
    """Yield the rows of an Arrow stream in chunks, and close it."""
    import pyarrow as pa

    start = 1
    with stream, pa.ipc.open_stream(stream) as batches:
        for coded in batches:
            arrays = [_decoded(column) for column in coded.columns]
            batch = pa.RecordBatch.from_arrays(arrays, names=coded.schema.names)
            columns = table_columns(coded.to_pandas().astype(object))
            yield Chunk(columns, "row", range(start, start + coded.num_rows), batch=batch)
            start += coded.num_rows


def _decoded(column: pa.Array) -> pa.Array:
    from pyarrow import types

    return column.dictionary_decode() if types.is_dictionary(column.type) else column


class ParquetWriter:
    """Writer of one row group per chunk.

    Parameters
    ----------
    version, level
        Predictor version and interval level, for the file's metadata.
    """

    def __init__(self, version: str, level: float) -> None:
        self._metadata = {"roofcast.predictor_version": version, "roofcast.level": repr(level)}
        self._pipe = _Pipe()
        self._writer: pq.ParquetWriter | None = None

    def write(self, chunk: Chunk, answers: Table) -> bytes:
        """Return the bytes of a row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {**dict.fromkeys(TEXT_COLUMNS, pa.string()), "outside": pa.bool_()}
        columns = {
            name: pa.array(cells, types.get(name, pa.float64()), from_pandas=True) for name, cells in answers.items()
        }
        rows = chunk.batch or pa.RecordBatch.from_pydict(_input_columns(chunk))
        names = [*rows.schema.names, *columns]
        batch = pa.RecordBatch.from_arrays([*rows.columns, *columns.values()], names=names)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._pipe, batch.schema.with_metadata(self._metadata))
        self._writer.write_batch(batch.replace_schema_metadata(self._metadata))
        return self._pipe.drain()

    def end(self) -> bytes:
        """Return the footer."""
        if self._writer is not None:
            self._writer.close()
        return self._pipe.drain()


def _input_columns(chunk: Chunk) -> dict[str, pa.Array]:
    """Return rows that were sent as JSON, each column of one type; a number or flag that cannot be read is null.

    An inline model is replaced by its name.
    """
    import pyarrow as pa

    n_row = len(chunk.numbers)
    names = chunk.models.names if chunk.models else {}
    given, _ = with_short_names(chunk.columns)
    columns = {}
    for name, column in INPUT_COLUMNS.items():
        cells = given.get(name, np.full(n_row, None, dtype=object))
        if column.kind == "float":
            columns[name] = pa.array(_numbers(cells), pa.float64(), from_pandas=True)
        elif column.kind == "bool":
            columns[name] = pa.array([cell if isinstance(cell, bool) else None for cell in cells], pa.bool_())
        else:
            texts = [None if value is None else names.get(str(value), str(value)) for value in cells]
            columns[name] = pa.array(texts, pa.string())
    return columns


def _numbers(cells: ColumnArray) -> ColumnArray:
    return np.asarray(pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce"), dtype=float)


class _Pipe(io.RawIOBase):
    """Write-only file whose content is drained as it grows."""

    def __init__(self) -> None:
        super().__init__()
        self._pending = bytearray()
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: memoryview | bytes) -> int:  # type: ignore[override]  # the types that pyarrow passes
        part = bytes(data)
        self._pending += part
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def drain(self) -> bytes:
        """Return the bytes written since the last call."""
        pending, self._pending = self._pending, bytearray()
        return bytes(pending)
