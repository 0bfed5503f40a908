"""Chunk of rows of a bulk prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from roofcast.data.measurements.cells import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from roofcast.serving.http.bulk.inline import InlineModels

N_ROW: Final = 5_000
"""Rows per chunk: enough to amortise the cost of a call, few enough for some megabytes."""

MAX_TEXT: Final = 1_000
"""Longest text in a row, in characters, as in a JSON request."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that are answered together.

    - `columns`: Input columns; a row that could not be read is blank.
    - `unit`: Name of a row in messages, such as ``line``; empty to leave reasons without a row number.
    - `numbers`: Number of each row in the request.
    - `errors`: Messages of the rows that could not be read, by their index.
    - `echoes`: Rows as they were sent, JSON objects without their closing brace; None if they were not sent as JSON.
    - `batch`: Rows as they were sent in Parquet; None if they were not.
    - `models`: Models that rows bring along; None if they cannot.
    """

    columns: Table
    unit: str
    numbers: Sequence[int]
    errors: Mapping[int, str] = field(default_factory=dict)
    echoes: Sequence[bytes] | None = None
    batch: pa.RecordBatch | None = None
    models: InlineModels | None = None
