"""LLM-Pilot's raw files: one CSV a run, one line a request, with the latency of every token.

``latency_ms_per_token`` of a request is ``[connect, first token, gap, gap, ...]``. TTFT is its second entry, as in
LLM-Pilot's own medians; the first, the time to connect, is part of the end-to-end latency only.

Throughput counts the tokens that arrived within the experiment's duration. LLM-Pilot divides the tokens of all
completed requests by that duration, although requests may end up to 10 s after it: over its campaign its figure is
2 % higher in the median and 36 % at most.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run, run_reader
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.format import Format
from roofcast.data.importers.request_samples import length_cells, request_samples, statistics_of
from roofcast.data.importers.sources import Source, header_of
from roofcast.data.measurements.schema import NUMBER_COLUMNS
from roofcast.data.units import s_from_ms

REQUEST_COLUMNS: Final = (
    "status", "model", "num_users", "n_gpus", "gpu_type", "start_timestamp", "experiment_duration_s",
    "n_input_tokens", "n_output_tokens", "latency_ms_per_token",
)  # fmt: skip
_STATUS_OK: Final = 200
_LATENCIES: Final = "latency_ms_per_token"


# The completed requests of one run, those with a second entry. `entry_ms` concatenates the entries of all of them,
# `n_entry` for each request; `n_request` counts failed requests too; times are in milliseconds since 1970.
@dataclass(frozen=True)
class _RequestLog:
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
        return np.cumsum(self.n_entry) - self.n_entry

    @classmethod
    def read(cls, source: Source) -> Self:
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


_WORDS: Final = fact_table("tool_words")["llm_pilot"]
ACCELERATORS: Final[dict[str, str]] = _WORDS["accelerators"]
MODELS: Final[dict[str, str]] = _WORDS["models"]
FLASH_ATTENTION: Final[dict[str, bool]] = _WORDS["flash_attention"]

N_DIGIT: Final = 6
"""Significant digits of the rows: the clients' clock counts milliseconds."""

Floats = NDArray[np.float64]


def _samples(log: _RequestLog) -> dict[str, Floats]:
    entry_s = s_from_ms(1.0) * log.entry_ms
    starts = log.entry_starts
    is_gap = np.ones(len(entry_s), dtype=bool)
    is_gap[starts] = is_gap[starts + 1] = False
    n_gap = log.n_entry - 2
    decode_s = np.add.reduceat(np.where(is_gap, entry_s, 0.0), starts)
    ttft_s = entry_s[starts + 1]
    tpot_s, e2e_s = decode_s[n_gap > 0] / n_gap[n_gap > 0], np.add.reduceat(entry_s, starts)
    return request_samples(ttft_s, tpot_s, e2e_s, log.n_input_token, log.n_output_token, gap_s=entry_s[is_gap])


def _runs(source: Source) -> Iterator[Run]:
    log = _RequestLog.read(source)
    if log.gpu_type not in ACCELERATORS:
        problem = f"must be one of {', '.join(ACCELERATORS)}, got {log.gpu_type!r}"
        raise SchemaError("gpu_type", problem, source.name, 2)
    samples = _samples(log)
    cells = {
        "model": MODELS.get(log.model, log.model),
        "accelerator": ACCELERATORS[log.gpu_type],
        "n_accelerator": log.n_gpu,
        "engine": "tgis",
        "weight_precision": "fp16",
        "kv_precision": "fp16",
        "tp": log.n_gpu,
        "pp": 1,
        "dp": 1,
        **length_cells(log.n_input_token, log.n_output_token),
        "concurrency": log.n_user,
        "flash_attention": FLASH_ATTENTION.get(log.model, True),
        "load": "closed_loop",
        "duration_s": log.duration_s,
        "n_request": log.n_request,
        "n_failed": log.n_request - len(log.n_entry),
        "date": dt.datetime.fromtimestamp(s_from_ms(log.began_ms), dt.UTC).date().isoformat(),
    }
    statistics = statistics_of(samples)
    statistics["mean"] |= _throughputs(log)
    rounded = {name: _rounded(outcomes) for name, outcomes in statistics.items()}
    yield Run(source.name, 0, _rounded(cells), rounded)


def _rounded(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.{N_DIGIT}g}") if name in NUMBER_COLUMNS else value for name, value in cells.items()}


def _throughputs(log: _RequestLog) -> dict[str, float]:
    elapsed_ms = np.cumsum(log.entry_ms)
    before_ms = elapsed_ms[log.entry_starts] - log.entry_ms[log.entry_starts]
    offset_ms = log.start_ms - log.began_ms - before_ms
    is_inside = elapsed_ms + np.repeat(offset_ms, log.n_entry) <= log.duration_s / s_from_ms(1.0)
    is_last_inside = is_inside[log.entry_starts + log.n_entry - 1]
    is_inside[log.entry_starts] = False
    inside_ratio = np.add.reduceat(is_inside.astype(float), log.entry_starts) / (log.n_entry - 1)
    n_token = float(inside_ratio @ log.n_output_token)
    return {
        "output_throughput_token_per_s": n_token / log.duration_s if n_token else float("nan"),
        "request_throughput_per_s": float(is_last_inside.sum()) / log.duration_s or float("nan"),
    }


FORMAT: Final = Format("llm_pilot", lambda start: set(REQUEST_COLUMNS) <= set(header_of(start)), run_reader(_runs))
