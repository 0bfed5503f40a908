"""LLM-Pilot's raw file: the requests of one run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roofcast.data.errors import SchemaError
from roofcast.data.importers.sources import Source

REQUEST_COLUMNS: Final = (
    "status",
    "model",
    "num_users",
    "n_gpus",
    "gpu_type",
    "start_timestamp",
    "experiment_duration_s",
    "n_input_tokens",
    "n_output_tokens",
    "latency_ms_per_token",
)
_STATUS_OK: Final = 200
_LATENCIES: Final = "latency_ms_per_token"


@dataclass(frozen=True)
class RequestLog:
    """Completed requests of one run: those with a second entry, which is the first token.

    `entry_ms` is the concatenation of all requests' entries, `n_entry` for each request. `n_request` counts failed
    requests too. `began_ms` and `start_ms` are in milliseconds since 1970.
    """

    model: str
    gpu_type: str
    n_gpu: int
    n_user: int
    duration_s: float
    began_ms: float
    n_request: int
    start_ms: NDArray[np.float64]
    n_input_token: NDArray[np.float64]
    n_output_token: NDArray[np.float64]
    n_entry: NDArray[np.int64]
    entry_ms: NDArray[np.float64]

    @property
    def entry_starts(self) -> NDArray[np.int64]:
        """Indices in `entry_ms` of the first entry of each request."""
        return np.cumsum(self.n_entry) - self.n_entry

    @classmethod
    def read(cls, source: Source) -> Self:
        """Return the requests of a file.

        Raises
        ------
        SchemaError
            If the file is empty, truncated, binary or of another format, or none of its requests completed.
        """
        table = _read_table(source)
        place = source.name
        all_starts = _numbers(table, "start_timestamp", place)
        is_ok = _numbers(table, "status", place) == _STATUS_OK
        n_user, n_gpu = (int(_constant(table, name, place, low=1)) for name in ("num_users", "n_gpus"))
        duration_s = float(_constant(table, "experiment_duration_s", place, low=1))
        model, gpu_type = (str(_constant(table, name, place)) for name in ("model", "gpu_type"))
        lists = _lists(table.loc[is_ok, _LATENCIES], place)
        done = table.loc[is_ok][[len(entries) > 1 for entries in lists]]
        if done.empty:
            raise SchemaError("status", "no request completed; leave this run out", place)
        lists = [entries for entries in lists if len(entries) > 1]
        return cls(
            model=model,
            gpu_type=gpu_type,
            n_gpu=n_gpu,
            n_user=n_user,
            duration_s=duration_s,
            began_ms=float(all_starts.min()),
            n_request=len(table),
            start_ms=_numbers(done, "start_timestamp", place),
            n_input_token=_numbers(done, "n_input_tokens", place, low=1),
            n_output_token=_numbers(done, "n_output_tokens", place, low=1),
            n_entry=np.fromiter(map(len, lists), np.int64, len(lists)),
            entry_ms=np.fromiter(chain.from_iterable(lists), np.float64),
        )


def _read_table(source: Source) -> pd.DataFrame:
    try:
        table = pd.read_csv(source.stream, usecols=lambda name: name in REQUEST_COLUMNS, low_memory=False)
    except pd.errors.EmptyDataError as error:
        raise SchemaError("", "is empty", source.name) from error
    except UnicodeDecodeError as error:
        raise SchemaError("", "must be UTF-8; is the file binary?", source.name) from error
    except pd.errors.ParserError as error:
        raise _parser_error(error, source.name) from error
    missing = [name for name in REQUEST_COLUMNS if name not in table.columns]
    if missing:
        raise SchemaError(missing[0], "no such column: this is no raw file of LLM-Pilot", source.name, 1)
    if not isinstance(table.index, pd.RangeIndex):
        raise SchemaError("", "has more cells than the header", source.name, 2)
    if table.empty:
        raise SchemaError("", "holds no request below its header", source.name, 2)
    return table


def _parser_error(error: pd.errors.ParserError, place: str) -> SchemaError:
    unclosed = re.search(r"EOF inside string starting at row (\d+)", str(error))
    uneven = re.search(r"in line (\d+)", str(error))
    if unclosed:
        return SchemaError("", "ends within a cell: the file is truncated", place, int(unclosed[1]) + 1)
    problem = "has another number of cells than the header" if uneven else "is not valid CSV"
    return SchemaError("", problem, place, int(uneven[1]) if uneven else 0)


def _constant(table: pd.DataFrame, name: str, place: str, low: float | None = None) -> Any:
    column = table[name] if low is None else pd.Series(_numbers(table, name, place, low), table.index)
    differs = (column != column.iloc[0]).to_numpy()
    if differs.any():
        line = int(differs.argmax()) + 2
        raise SchemaError(name, "must be given and the same for every request of a run", place, line)
    return column.iloc[0]


def _numbers(table: pd.DataFrame, name: str, place: str, low: float = 0) -> NDArray[np.float64]:
    numbers = pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=float)
    is_wrong = ~(np.isfinite(numbers) & (numbers >= low))
    if is_wrong.any():
        position = int(is_wrong.argmax())
        problem = f"must be a number of at least {low:g}, got {str(table[name].iloc[position])[:60]!r}"
        raise SchemaError(name, problem, place, _line_of(table, position))
    return numbers


def _lists(cells: pd.Series, place: str) -> list[list[float]]:
    texts = cells.tolist()
    try:
        lists: list[list[float]] = json.loads(f"[{','.join(texts)}]")
        if len(lists) == len(texts) and all(map(_are_latencies, lists)):
            return lists
    except (TypeError, ValueError, RecursionError):
        pass
    position = next(i for i, text in enumerate(texts) if not _is_list_text(text))
    problem = f"must be a list of latencies, got {str(texts[position])[:60]!r}"
    raise SchemaError(_LATENCIES, problem, place, int(cells.index[position]) + 2)


def _is_list_text(text: object) -> bool:
    try:
        return _are_latencies(json.loads(str(text)))
    except (ValueError, RecursionError):
        return False


def _are_latencies(entries: object) -> bool:
    return isinstance(entries, list) and all(
        type(entry) in {int, float} and 0 <= entry < float("inf") for entry in entries
    )


def _line_of(table: pd.DataFrame, position: int) -> int:
    return int(table.index[position]) + 2
