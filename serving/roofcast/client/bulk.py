"""Rows in bulk: which kind they are sent in, and how the answers become rows again."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import httpx
from pydantic_core import from_json, to_json

from roofcast.client.answers import (
    PredictionResponse,
)
from roofcast.client.calls import Call, Row, predict, predict_bulk
from roofcast.client.requests import (
    ModelConfig,
    PredictionRequest,
)

if TYPE_CHECKING:
    import pandas as pd

NDJSON: Final = "application/x-ndjson"
PARQUET: Final = "application/vnd.apache.parquet"

FEW: Final = 500
"""Most rows that are sent as JSON, which every service of any limit takes, and in one part of more."""

MANY: Final = 5_000
"""Fewest rows of a table that are sent as Parquet, if pyarrow is installed; unpacking costs the service a moment."""


def prediction_calls(
    rows: Sequence[Row], models: Sequence[ModelConfig], references: Sequence[Row], level: float | None
) -> Iterator[Call[PredictionResponse]]:
    """Return the calls that predict rows: one, or several where each must say which models or references it means."""
    if len(rows) > FEW and not models and not references:
        lines = b"".join(to_json(row, inf_nan_mode="null") + b"\n" for row in rows)
        yield predict_bulk(lines, NDJSON, _response, level)
        return
    for start in range(0, len(rows) or 1, FEW):
        request: PredictionRequest = {
            "rows": list(rows[start : start + FEW]),
            "models": list(models),
            "references": list(references),
        }
        if level is not None:
            request["level"] = level
        yield predict(request)


def joined(answers: Sequence[PredictionResponse]) -> PredictionResponse:
    """Return the answers to the parts of one question as one; the version is that of the last."""
    return {**answers[-1], "rows": [row for answer in answers for row in answer["rows"]]}


def table_call(table: pd.DataFrame, level: float | None) -> Call[pd.DataFrame]:
    """Return the call that predicts the rows of a table.

    Raises
    ------
    ValueError
        If it has no row, or two columns of one name.
    """
    if table.empty:
        raise ValueError("there is no row to predict; the table is empty")
    if not table.columns.is_unique:
        raise ValueError("a column is given twice; keep one")
    table = table.astype(dict.fromkeys(table.columns[table.isna().all()], object))
    if len(table) > MANY and importlib.util.find_spec("pyarrow"):
        content = io.BytesIO()
        table.to_parquet(content, index=False, engine="pyarrow")
        return predict_bulk(content.getvalue(), PARQUET, _parquet_table, level)
    plain = table.astype(object).where(table.notna(), None)
    lines = b"".join(
        to_json(row, inf_nan_mode="null", fallback=_of_numpy) + b"\n" for row in plain.to_dict("records")
    )
    return predict_bulk(lines, NDJSON, lambda response: _table(_rows(response), table), level)


def _of_numpy(value: Any) -> Any:
    return value.item()


def _rows(response: httpx.Response) -> list[Row]:
    return [from_json(line) for line in response.content.split(b"\n")[:-1]]


def _response(response: httpx.Response) -> PredictionResponse:
    version, level = (response.headers[name] for name in ("x-predictor-version", "x-prediction-level"))
    return {"predictor_version": version, "level": float(level), "rows": _rows(response)}


def _table(rows: list[Row], asked: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (who has a table has pandas)

    answers = pd.DataFrame(rows)
    return answers[[*asked.columns, *answers.columns.difference(asked.columns, sort=False)]]


def _parquet_table(response: httpx.Response) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (who has a table has pandas)

    return pd.read_parquet(io.BytesIO(response.content), engine="pyarrow")
