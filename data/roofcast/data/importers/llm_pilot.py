"""LLM-Pilot's raw files: one CSV a run, one line a request, with the latency of every token.

``latency_ms_per_token`` of a request is ``[connect, first token, gap, gap, ...]``. TTFT is its second entry, as in
LLM-Pilot's own medians; the first, the time to connect, is part of the end-to-end latency only.

Throughput counts the tokens that arrived within the experiment's duration. LLM-Pilot divides the tokens of all
completed requests by that duration, although requests may end up to 10 s after it: over its campaign its figure is
2 % higher in the median and 36 % at most.
"""

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from roofcast.data.csv_rows import check_width
from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Floats, Node, cell_node, csv_rows
from roofcast.data.importers.request_samples import length_cells, request_samples, statistics_of
from roofcast.data.importers.sources import Source, header_of
from roofcast.data.measurements.schema import NUMBER_COLUMNS
from roofcast.data.units import s_from_ms

REQUEST_COLUMNS: Final = (
    "status", "model", "num_users", "n_gpus", "gpu_type", "start_timestamp", "experiment_duration_s",
    "n_input_tokens", "n_output_tokens", "latency_ms_per_token",
)  # fmt: skip
_OF_RUN: Final = ("model", "num_users", "n_gpus", "gpu_type", "experiment_duration_s")
_STATUS_OK: Final = 200
_LATENCIES: Final = REQUEST_COLUMNS[-1]


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
    start_ms: Floats
    n_input_token: Floats
    n_output_token: Floats
    n_entry: NDArray[np.int64]
    entry_ms: Floats

    @property
    def entry_starts(self) -> NDArray[np.int64]:
        return np.cumsum(self.n_entry) - self.n_entry

    @classmethod
    def read(cls, source: Source) -> Self:
        requests = list(_requests(source))
        first = requests[0]
        for request in requests:
            for name in _OF_RUN:
                if request[name].is_blank or request[name].value != first[name].value:
                    raise request[name].error("must be given and the same for every request of a run")
        begun = [request["start_timestamp"].required_number() for request in requests]
        is_ok = [request["status"].required_number() == _STATUS_OK for request in requests]
        lists = [(request, _entries(request)) for request, ok in zip(requests, is_ok, strict=True) if ok]
        done = [(request, entries) for request, entries in lists if len(entries) > 1]
        if not done:
            raise SchemaError("status", "no request completed; leave this run out", source.name)
        return cls(
            model=str(first["model"].value),
            gpu_type=str(first["gpu_type"].value),
            n_gpu=int(_at_least_1(first["n_gpus"])),
            n_user=int(_at_least_1(first["num_users"])),
            duration_s=_at_least_1(first["experiment_duration_s"]),
            began_ms=min(begun),
            n_request=len(requests),
            start_ms=np.array([request["start_timestamp"].number() for request, _ in done]),
            n_input_token=np.array([_at_least_1(request["n_input_tokens"]) for request, _ in done]),
            n_output_token=np.array([_at_least_1(request["n_output_tokens"]) for request, _ in done]),
            n_entry=np.array([len(entries) for _, entries in done]),
            entry_ms=np.concatenate([entries for _, entries in done]),
        )


def _requests(source: Source) -> Iterator[Node]:
    rows = csv_rows(source)
    first_line, header = next(rows)
    missing = [name for name in REQUEST_COLUMNS if name not in header]
    if missing:
        raise SchemaError(missing[0], "no such column: this is no raw file of LLM-Pilot", source.name, first_line)
    line = 0
    for line, row in rows:
        check_width(row, header, source.name, line)
        cells = dict(zip(header, row, strict=True))
        numbers = {name: cell_node(cells[name], name, source.name, line).value for name in REQUEST_COLUMNS[:-1]}
        yield Node({**numbers, _LATENCIES: cells[_LATENCIES]}, "", source.name, line)
    if not line:
        raise SchemaError("", "holds no request below its header", source.name, first_line + 1)


def _at_least_1(node: Node) -> float:
    if not (number := node.required_number()) >= 1:
        raise node.error(f"must be a number of at least 1, got {number:g}")
    return number


def _entries(request: Node) -> Floats:
    node = request[_LATENCIES]
    try:
        return Node(json.loads(node.text()), "", "").numbers()
    except (SchemaError, ValueError, RecursionError) as error:
        raise node.error(f"must be a list of latencies, got {node.text()[:60]!r}") from error


_WORDS: Final = fact_table("tool_words")["llm_pilot"]
ACCELERATORS: Final[dict[str, str]] = _WORDS["accelerators"]
MODELS: Final[dict[str, str]] = _WORDS["models"]
FLASH_ATTENTION: Final[dict[str, bool]] = _WORDS["flash_attention"]

N_DIGIT: Final = 6
"""Significant digits of the rows: the clients' clock counts milliseconds."""


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


FORMAT: Final = Format("llm_pilot", _runs, lambda start: set(REQUEST_COLUMNS) <= set(header_of(start)))
