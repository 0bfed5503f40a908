"""Writer of Parquet, one row group per chunk."""

# ruff: noqa: PLC0415  (importing pyarrow takes a quarter of a second and 40 MB; requests without Parquet skip it)

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from roofcast.data.measurements.cells import Table, with_short_names
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.http.bulk.chunks import Chunk
from roofcast.serving.predict.row_answers import TEXT_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class ParquetWriter:
    """Writer of one row group per chunk.

    `version` and `level`: predictor version and interval level, for the file's metadata.
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
