"""Rows on their way through a bulk prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa

    from roofcast.serving.http.bulk.inline import InlineModels

N_ROW: Final = 5_000
"""Rows that are answered at once: enough that a call costs little beside them, and a few megabytes."""

MAX_TEXT: Final = 1_000
"""Most characters of a text in a row, as in a JSON request."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some thousand rows of questions.

    Parameters
    ----------
    questions
        A row each; one that was refused is blank.
    place
        What a row is called in messages, such as ``line``; blank to leave messages as they are.
    numbers
        Of the rows in what was sent.
    refused
        Position of each row that could not be read, and why.
    echoes
        The rows as they were sent, as JSON objects that are not closed yet; None if they were not sent as JSON.
    batch
        The rows as they were sent in Parquet; None if they were not.
    models
        That the rows bring along; None if they cannot.
    """

    questions: pd.DataFrame
    place: str
    numbers: Sequence[int]
    refused: Mapping[int, str] = field(default_factory=dict)
    echoes: Sequence[bytes] | None = None
    batch: pa.RecordBatch | None = None
    models: InlineModels | None = None
