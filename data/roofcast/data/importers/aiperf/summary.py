"""AIPerf's and genai-perf's JSON summary of a run: metrics by name, each with unit and statistics."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.importers.runs import Run, join_cells, load_cells, model_cells
from roofcast.data.json_input import Node, begins_json
from roofcast.data.measurements.quantities import s_from_unit
from roofcast.data.specs import STATISTICS

LATENCIES: Final = {
    "time_to_first_token": "ttft_s",
    "inter_token_latency": "tpot_s",
    "inter_chunk_latency": "itl_s",
    "request_latency": "e2e_s",
}
LENGTHS: Final = {
    "input_sequence_length": "n_input_token_at_statistic",
    "output_sequence_length": "n_output_token_at_statistic",
}
THROUGHPUTS: Final = {
    "output_token_throughput": "output_throughput_token_per_s",
    "total_token_throughput": "total_throughput_token_per_s",
    "request_throughput": "request_throughput_per_s",
}
RATE_UNITS: Final = ("tokens/sec", "tokens/s", "requests/sec", "requests/s", "per sec", "")
COUNT_UNITS: Final = ("tokens", "requests", "count", "")
UNKNOWN_UNIT: Final = "no unit"

Value = Callable[[str, str], float]
"""Returns the value of a metric and statistic (`avg`, `p50` ...) in our units; NaN where absent."""


def is_summary(start: bytes) -> bool:
    """Return whether the start of a file is that of a JSON summary."""
    is_one = b'"input_config"' in start or b'"aiperf_version"' in start
    return is_one and begins_json(start, b'"request_throughput"') and b'"per_combination_metrics"' not in start


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
    context = join_cells(
        _model_cells(document["input_config"]),
        _load_cells(document["input_config"], document["run_info"]),
        {"software": f"aiperf {version}" if version else "genai-perf", "date": _day(document["start_time"])},
        {"note": "cancelled before its end" if document["was_cancelled"].value is True else ""},
    )
    return run_of_values(document, context, lambda metric, statistic: _value(document[metric], statistic))


def run_of_values(where: Node, context: Mapping[str, Any], value: Value) -> Run:
    """Return the run whose metrics `value` looks up; `where` has file and line for messages."""
    n_done = value("request_count", "avg")
    n_failed = value("error_request_count", "avg")
    n_done, n_failed = (0.0 if math.isnan(n) else n for n in (n_done, n_failed))
    cells = dict(context) | {"n_request": n_done + n_failed, "n_failed": n_failed}
    lengths = {name.removesuffix("_at_statistic"): value(metric, "avg") for metric, name in LENGTHS.items()}
    if not n_done > 0:
        return Run(where.place, where.line, cells | lengths | {"status": "failed"}, {})
    totals = {column: value(metric, "avg") for metric, column in THROUGHPUTS.items()}
    cells |= {**lengths, "duration_s": value("benchmark_duration", "avg")}
    if lengths["n_output_token"] > 0:
        cells["length_variation"] = value("output_sequence_length", "std") / lengths["n_output_token"]
    statistics = {
        name: {
            column: value(metric, "avg" if name == "mean" else name)
            for metric, column in (LATENCIES | LENGTHS).items()
        }
        for name in STATISTICS
    }
    return Run(where.place, where.line, cells, statistics, totals)


def in_our_unit(metric: str, number: float, unit: str) -> float:
    """Return a metric's value in seconds, in tokens or requests, or in these per second.

    Raises
    ------
    InputError
        If the unit is not one of the metric's.
    """
    if metric in LATENCIES or metric == "benchmark_duration":
        return s_from_unit(number, unit)
    units = RATE_UNITS if metric in THROUGHPUTS else COUNT_UNITS
    if unit not in units and unit != UNKNOWN_UNIT:
        raise InputError("unit", f"must be one of {', '.join(filter(None, units))}, got {unit[:60]!r}")
    return number


def _value(metric: Node, statistic: str) -> float:
    number = metric[statistic].number()
    if math.isnan(number):
        return math.nan
    name = metric.path.rpartition(".")[2]
    unit = metric["unit"].text() or UNKNOWN_UNIT
    try:
        return in_our_unit(name, number, unit)
    except InputError as error:
        raise metric["unit"].error(error.problem) from error


def _model_cells(config: Node) -> dict[str, str]:
    """Return the columns of the model, which each version of the two tools names in another field."""
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
    """Return the columns of a load; none if the file states none, which does not mean offline."""
    if concurrency.is_blank and rate.is_blank:
        return {}
    return load_cells(concurrency.number(), rate.number())


def _day(node: Node) -> str:
    text = node.text()
    if text and not re.match(r"\d{4}-\d\d-\d\dT", text, re.ASCII):
        raise node.error(f"must be a time such as 2025-11-20T04:56:13, got {text[:60]!r}")
    return text[:10]
