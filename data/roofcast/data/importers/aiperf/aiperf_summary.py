"""AIPerf's and genai-perf's summary of a run: metrics by name, each with unit and statistics.

Their CSV files are read into the layout of the JSON summary; see `aiperf_csv`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.importers.client_runs import Run, join_cells, load_cells, model_cells
from roofcast.data.importers.json_input import Node, begins_json
from roofcast.data.importers.layout import (
    OWN_NAMES,
    Field,
    checked_unit,
    read_fields,
    read_statistics,
    s_per_unit,
)

RATE_UNITS: Final = ("tokens/sec", "tokens/s", "requests/sec", "requests/s", "per sec", "")
COUNT_UNITS: Final = ("tokens", "requests", "count", "")
UNKNOWN_UNIT: Final = "no unit"
NAMES: Final = {**OWN_NAMES, "mean": ("avg",)}


def _metric_unit(factor: Callable[[str], float]) -> Callable[[Node], float]:
    return lambda metric: checked_unit(metric["unit"], lambda: factor(metric["unit"].text() or UNKNOWN_UNIT))


def _one_of(units: tuple[str, ...]) -> Callable[[str], float]:
    def factor(unit: str) -> float:
        if unit not in units and unit != UNKNOWN_UNIT:
            raise InputError("unit", f"must be one of {', '.join(filter(None, units))}, got {unit[:60]!r}")
        return 1.0

    return factor


_TIME: Final = _metric_unit(s_per_unit)
_RATE: Final = _metric_unit(_one_of(RATE_UNITS))
_COUNT: Final = _metric_unit(_one_of(COUNT_UNITS))

LATENCIES: Final = (
    Field("ttft_s", "{}", "time_to_first_token", _TIME),
    Field("tpot_s", "{}", "inter_token_latency", _TIME),
    Field("itl_s", "{}", "inter_chunk_latency", _TIME),
    Field("e2e_s", "{}", "request_latency", _TIME),
    Field("n_input_token_at_statistic", "{}", "input_sequence_length", _COUNT),
    Field("n_output_token_at_statistic", "{}", "output_sequence_length", _COUNT),
)
MEANS: Final = (
    Field("n_input_token", "avg", "input_sequence_length", _COUNT),
    Field("n_output_token", "avg", "output_sequence_length", _COUNT),
)
TOTALS: Final = (
    Field("output_throughput_token_per_s", "avg", "output_token_throughput", _RATE),
    Field("total_throughput_token_per_s", "avg", "total_token_throughput", _RATE),
    Field("request_throughput_per_s", "avg", "request_throughput", _RATE),
)
DONE: Final = Field("n_request", "avg", "request_count", _COUNT)
FAILED: Final = Field("n_failed", "avg", "error_request_count", _COUNT)
DURATION: Final = Field("duration_s", "avg", "benchmark_duration", _TIME)
DEVIATION: Final = Field("length_variation", "std", "output_sequence_length", _COUNT)


def is_summary(start: bytes) -> bool:
    """Return whether the start of a file is that of a JSON summary."""
    is_one = b'"input_config"' in start or b'"aiperf_version"' in start
    return is_one and begins_json(start, "request_throughput") and b'"per_combination_metrics"' not in start


def run_of_summary(document: Node) -> Run:
    """Return the run of a JSON summary.

    Raises
    ------
    SchemaError
        If it is none, or a metric has a wrong value or unit.
    """
    if document["request_count"].is_blank and document["error_request_count"].is_blank:
        raise document["request_count"].error("no such field: this is no summary of AIPerf, or a truncated one")
    version = document["aiperf_version"].text()
    cells = join_cells(
        _model_cells(document["input_config"]),
        _load_cells(document["input_config"], document["run_info"]),
        {"software": f"aiperf {version}" if version else "genai-perf", "date": _day(document["start_time"])},
        {"note": "cancelled before its end" if document["was_cancelled"].value is True else ""},
    )
    return run_of_metrics(document, cells)


def run_of_metrics(document: Node, cells: dict[str, Any]) -> Run:
    """Return the run of metrics by name, with the columns of its context."""
    n_done, n_failed = (0.0 if math.isnan(n := field.read(document)) else n for field in (DONE, FAILED))
    lengths = read_fields(document, MEANS)
    cells = {**cells, "n_request": n_done + n_failed, "n_failed": n_failed, **lengths}
    if not n_done > 0:
        return Run(document.place, document.line, cells | {"status": "failed"}, {})
    cells |= read_fields(document, (DURATION,))
    if lengths["n_output_token"] > 0:
        cells["length_variation"] = DEVIATION.read(document) / lengths["n_output_token"]
    statistics = read_statistics(document, LATENCIES, NAMES)
    return Run(document.place, document.line, cells, statistics, read_fields(document, TOTALS))


def _model_cells(config: Node) -> dict[str, str]:
    if config["models"].keys:
        names = [item["name"].text() for item in config["models"]["items"].items()]
    else:
        lists = (config["models"], config["model_names"], config["endpoint"]["model_names"], config["model"])
        named = next((node for node in lists if node.is_array and node.value), None)
        names = [item.text() for item in named.items()] if named else []
    if len(set(names)) > 1:
        raise config["models"].error("must name one model: the run mixes several")
    return model_cells(names[0]) if names else {}


def _load_cells(config: Node, info: Node) -> dict[str, Any]:
    phases = config["phases"]
    measured = [phase for phase in phases.items() if phase["kind"].text() in ("profiling", "")]
    if measured:
        phase = measured[0]
        return _load(phase["concurrency"], phase["rate"])
    for place in (config["loadgen"], config.at("perf_analyzer", "stimulus"), config):
        if not (place["concurrency"].is_blank and place["request_rate"].is_blank):
            return _load(place["concurrency"], place["request_rate"])
    varied = info["variation_values"]
    last = {key.rpartition(".")[2]: varied[key] for key in varied.keys}
    return _load(*(last.get(name, varied[name]) for name in ("concurrency", "rate")))


def _load(concurrency: Node, rate: Node) -> dict[str, Any]:
    if concurrency.is_blank and rate.is_blank:
        return {}
    return load_cells(concurrency.number(), rate.number())


def _day(node: Node) -> str:
    text = node.text()
    if text and not re.match(r"\d{4}-\d\d-\d\dT", text, re.ASCII):
        raise node.error(f"must be a time such as 2025-11-20T04:56:13, got {text[:60]!r}")
    return text[:10]
