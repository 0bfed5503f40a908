"""Bulk predictions: media type of the request, and rows or a table from the response."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx
from pydantic_core import from_json, to_json

from roofcast.client.answers import PredictionResponse
from roofcast.client.calls import Call, Row, post
from roofcast.client.requests import ModelConfig, PredictionRequest

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

PATH: Final = "/v1/predictions"
NDJSON: Final = "application/x-ndjson"
PARQUET: Final = "application/vnd.apache.parquet"

MAX_JSON_ROW: Final = 500
"""Most rows per JSON request; every service admits as many, whatever its limit."""

MIN_PARQUET_ROW: Final = 5_000
"""Fewest rows of a table that are sent as Parquet if pyarrow is installed; unpacking costs the service a moment."""


def prediction_calls(
    rows: Sequence[Row], models: Sequence[ModelConfig], references: Sequence[Row], level: float | None
) -> Iterator[Call[PredictionResponse]]:
    """Yield the calls that predict rows: several only if many rows come with models or references."""
    if len(rows) > MAX_JSON_ROW and not models and not references:
        lines = b"".join(to_json(row, inf_nan_mode="null") + b"\n" for row in rows)
        yield _bulk_call(lines, NDJSON, _read_response, level)
        return
    for start in range(0, len(rows) or 1, MAX_JSON_ROW):
        request: PredictionRequest = {
            "rows": list(rows[start : start + MAX_JSON_ROW]),
            "models": list(models),
            "references": list(references),
        }
        if level is not None:
            request["level"] = level
        yield post(PATH, request)


def join_responses(responses: Sequence[PredictionResponse]) -> PredictionResponse:
    """Return several responses as one; the predictor version is that of the last."""
    return {**responses[-1], "rows": [row for response in responses for row in response["rows"]]}


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
    if len(table) > MIN_PARQUET_ROW and importlib.util.find_spec("pyarrow"):
        content = io.BytesIO()
        table.to_parquet(content, index=False, engine="pyarrow")
        return _bulk_call(content.getvalue(), PARQUET, _read_parquet, level)
    plain = table.astype(object).where(table.notna(), None)
    lines = b"".join(
        to_json(row, inf_nan_mode="null", fallback=_plain_number) + b"\n" for row in plain.to_dict("records")
    )
    return _bulk_call(lines, NDJSON, lambda response: _table(_read_rows(response), table), level)


def _bulk_call(content: bytes, kind: str, read: Callable[[httpx.Response], T], level: float | None) -> Call[T]:
    params = {} if level is None else {"level": level}
    return Call("POST", PATH, read, params, content, kind, accept=kind)


def _plain_number(value: Any) -> Any:
    return value.item()


def _read_rows(response: httpx.Response) -> list[Row]:
    return [from_json(line) for line in response.content.split(b"\n")[:-1]]


def _read_response(response: httpx.Response) -> PredictionResponse:
    version, level = (response.headers[name] for name in ("x-predictor-version", "x-prediction-level"))
    return {"predictor_version": version, "level": float(level), "rows": _read_rows(response)}


def _table(rows: list[Row], sent: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (pandas is optional)

    answers = pd.DataFrame(rows)
    return answers[[*sent.columns, *answers.columns.difference(sent.columns, sort=False)]]


def _read_parquet(response: httpx.Response) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (pandas is optional)

    return pd.read_parquet(io.BytesIO(response.content), engine="pyarrow")
