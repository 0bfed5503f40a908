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
from roofcast.client.requests import ModelConfig

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

PATH: Final = "/v1/predictions"
NDJSON: Final = "application/x-ndjson"
PARQUET: Final = "application/vnd.apache.parquet"

MAX_JSON_ROW: Final = 500
"""Most rows per JSON request; every service admits as many, whatever its limit."""

MAX_BULK_ROW: Final = 50_000
"""Most rows per bulk request: a quarter of what a service admits by default, so that long rows fit into its bytes."""

MIN_PARQUET_ROW: Final = 5_000
"""Fewest rows of a table that are sent as Parquet if pyarrow is installed; unpacking costs the service a moment."""


def prediction_calls(
    rows: Sequence[Row],
    models: Sequence[ModelConfig],
    references: Sequence[Row],
    **options: Any,
) -> Iterator[Call[PredictionResponse]]:
    """Yield the calls that predict rows: of `MAX_BULK_ROW` each, or of `MAX_JSON_ROW` with models or references.

    `options` are fields of the request that all its rows share, None where left to the service.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if len(rows) > MAX_JSON_ROW and not models and not references:
        for start in range(0, len(rows), MAX_BULK_ROW):
            part = rows[start : start + MAX_BULK_ROW]
            lines = b"".join(to_json(row, inf_nan_mode="null") + b"\n" for row in part)
            yield _bulk_call(lines, NDJSON, _read_response, given)
        return
    for start in range(0, len(rows) or 1, MAX_JSON_ROW):
        part = list(rows[start : start + MAX_JSON_ROW])
        yield post(PATH, {"rows": part, "models": list(models), "references": list(references), **given})


def join_responses(responses: Sequence[PredictionResponse]) -> PredictionResponse:
    """Return several responses as one; the predictor version is that of the last."""
    return {**responses[-1], "rows": [row for response in responses for row in response["rows"]]}


def table_calls(table: pd.DataFrame, **options: Any) -> Iterator[Call[pd.DataFrame]]:
    """Yield the calls that predict the rows of a table, in parts of `MAX_BULK_ROW`; `options` as of rows.

    Raises `ValueError` if it has no row, or two columns of one name.
    """
    if table.empty:
        raise ValueError("there is no row to predict; the table is empty")
    if not table.columns.is_unique:
        raise ValueError("a column is given twice; keep one")
    table = table.astype(dict.fromkeys(table.columns[table.isna().all()], object))
    given = {name: value for name, value in options.items() if value is not None}
    is_parquet = len(table) > MIN_PARQUET_ROW and importlib.util.find_spec("pyarrow") is not None
    for start in range(0, len(table), MAX_BULK_ROW):
        part = table.iloc[start : start + MAX_BULK_ROW]
        yield _parquet_call(part, given) if is_parquet else _lines_call(part, given)


def join_tables(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of several responses as one."""
    import pandas as pd  # noqa: PLC0415  (pandas is optional)

    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def _parquet_call(table: pd.DataFrame, given: dict[str, Any]) -> Call[pd.DataFrame]:
    content = io.BytesIO()
    table.to_parquet(content, index=False, engine="pyarrow")
    return _bulk_call(content.getvalue(), PARQUET, _read_parquet, given)


def _lines_call(table: pd.DataFrame, given: dict[str, Any]) -> Call[pd.DataFrame]:
    plain = table.astype(object).where(table.notna(), None)
    lines = b"".join(
        to_json(row, inf_nan_mode="null", fallback=_plain_number) + b"\n" for row in plain.to_dict("records")
    )
    return _bulk_call(lines, NDJSON, lambda response: _table(_read_rows(response), table), given)


def _bulk_call(content: bytes, kind: str, read: Callable[[httpx.Response], T], given: dict[str, Any]) -> Call[T]:
    return Call("POST", PATH, read, given, content, kind, accept=kind)


def _plain_number(value: Any) -> Any:
    return value.item()


def _read_rows(response: httpx.Response) -> list[Row]:
    rows = [from_json(line) for line in response.content.split(b"\n")[:-1]]
    for number, row in enumerate(rows, start=1):
        row["reason"] = row["reason"].removeprefix(f"line {number}: ")  # of the request, not of the caller's rows
    return rows


def _read_response(response: httpx.Response) -> PredictionResponse:
    version, level = (response.headers[name] for name in ("x-predictor-version", "x-prediction-level"))
    return {"predictor_version": version, "level": float(level), "rows": _read_rows(response)}


def _table(rows: list[Row], sent: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (pandas is optional)

    answers = pd.DataFrame(rows)
    return answers[[*sent.columns, *answers.columns.difference(sent.columns, sort=False)]]


def _read_parquet(response: httpx.Response) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (pandas is optional)

    table = pd.read_parquet(io.BytesIO(response.content), engine="pyarrow")
    reasons = enumerate(table["reason"], start=1)
    return table.assign(reason=[reason.removeprefix(f"row {number}: ") for number, reason in reasons])
