"""The way of rows in bulk: read some thousand, answer them, write them, and go on."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Protocol

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import OutOfRangeError
from roofcast.serving.app_state.app_state import InService
from roofcast.serving.http.bulk.chunks import Chunk
from roofcast.serving.http.bulk.inline import InlineModels
from roofcast.serving.http.bulk.media import LEVEL_HEADER, VERSION_HEADER, Kind
from roofcast.serving.http.bulk.ndjson import JsonWriter, NdjsonWriter, check_lines, read_lines
from roofcast.serving.http.bulk.parquet import ParquetWriter, read_unpacked, unpacked
from roofcast.serving.http.telemetry.prometheus import count_answers
from roofcast.serving.predict.answers import ANSWER_METRICS, answer
from roofcast.training.learner.conditioning import narrowed
from roofcast.training.learner.predictor import References


@dataclass(frozen=True, slots=True)
class Asked:
    """What all rows of a request share."""

    loaded: InService
    catalog: Catalog
    level: float
    references: References | None

    @property
    def headers(self) -> dict[str, str]:
        """What the kinds of bodies that are rows alone have no place for."""
        return {VERSION_HEADER: self.loaded.champion.version, LEVEL_HEADER: repr(self.level)}


class Writer(Protocol):
    """Writes rows with their answers, one chunk after another."""

    def rows(self, chunk: Chunk, answers: pd.DataFrame) -> bytes:
        """Return what is to be sent of some rows."""

    def end(self) -> bytes:
        """Return what is to be sent at last."""


def has_parquet() -> bool:
    """Return whether Parquet can be read and written here."""
    return importlib.util.find_spec("pyarrow") is not None


def answers_to_body(
    body: SpooledTemporaryFile[bytes], kind: Kind, wanted: Kind, asked: Asked, max_row: int
) -> Iterator[bytes]:
    """Return the answers to a body as it is to be sent, part by part; what is wrong with all of it is raised first.

    Raises
    ------
    InputError
        If the body as a whole cannot be read.
    OutOfRangeError
        If the level is more than the measurements can promise.
    """
    if kind == Kind.PARQUET:
        chunks = read_unpacked(unpacked(body, max_row))
    else:
        check_lines(body, max_row)
        chunks = read_lines(body, InlineModels(asked.catalog))
    yield from answers_to_chunks(chunks, wanted, asked)


def answers_to_chunks(chunks: Iterator[Chunk], wanted: Kind, asked: Asked) -> Iterator[bytes]:
    """Return the answers to rows that were read; raises as `answers_to_body` does."""
    highest = narrowed(asked.loaded.bundle.predictor, ANSWER_METRICS).highest_level
    if asked.level > highest:
        problem = f"level {asked.level:g} is more than the measurements can promise; ask for at most {highest:.3f}"
        raise OutOfRangeError(problem)
    writer = _writer(wanted, asked)
    for chunk in chunks:
        yield writer.rows(chunk, answers_of(chunk, asked))
    yield writer.end()


def answers_of(chunk: Chunk, asked: Asked) -> pd.DataFrame:
    """Return the answers to some rows, without the questions; where one has none the reason says which it is."""
    catalog = chunk.models.known(asked.catalog) if chunk.models else asked.catalog
    known = answer(chunk.questions, asked.loaded.bundle, catalog, asked.level, asked.references)
    answers = known.iloc[:, chunk.questions.shape[1] :]
    count_answers(answers)
    if not chunk.place:
        return answers
    reasons, statuses = answers["reason"].tolist(), answers["status"].tolist()
    for i, status in enumerate(statuses):
        if status != "ok":
            reasons[i] = f"{chunk.place} {chunk.numbers[i]}: {chunk.refused.get(i, reasons[i])}"
    return answers.assign(reason=pd.Series(reasons, answers.index, dtype=object))


def _writer(kind: Kind, asked: Asked) -> Writer:
    if kind == Kind.NDJSON:
        return NdjsonWriter()
    written = JsonWriter if kind == Kind.JSON else ParquetWriter
    return written(asked.loaded.champion.version, asked.level)
