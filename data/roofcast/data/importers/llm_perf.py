"""optimum-benchmark's ``benchmark.json``, the format of llm-perf's leaderboard: one static batch, timed in phases.

All requests of a batch have one length and start together, so the times of a batch are those of each request:
prefill is TTFT, decode over the tokens after the first is TPOT, gaps between tokens are ITL. In some versions
`per_token` repeats the gaps of earlier batches and the pauses between batches: its count shows that, and ITL is then
left out. Throughputs are computed from latencies, since `generate.throughput` counts tokens in some versions and
samples in others. A report of an exception becomes a row of status `out_of_memory` or `failed`.
``benchmark_report.json`` lacks the configuration: it is read from ``benchmark_config.json`` in the same folder, if
both are among the paths; else overrides supply it.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.importers.client_runs import Run, join_cells, model_cells, table_of_runs
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, begins_json, read_document
from roofcast.data.importers.layout import first_known, layout
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.overrides import Overrides
from roofcast.data.importers.sources import Source, files_of, is_archive, iter_sources, start_of
from roofcast.data.precision_names import parse_precision
from roofcast.data.specs import STATISTICS
from roofcast.data.units import BYTE_PER_MB, S_PER_H, W_PER_KW

TASKS: Final = ("text-generation", "text2text-generation")
_WORDS: Final = fact_table("tool_words")["llm_perf"]
_BITS: Final = {4: "int4", 8: "int8"}


def _config_cells(config: Node) -> dict[str, Any]:
    backend, scenario = config["backend"], config["scenario"]
    if scenario["name"].text() not in ("", "inference"):
        raise scenario["name"].error(f"must be inference, got {scenario['name'].text()[:60]!r}")
    if backend["task"].text() not in ("", *TASKS):
        raise backend["task"].error(f"must be one of {', '.join(TASKS)}, got {backend['task'].text()[:60]!r}")
    if scenario.at("generate_kwargs", "num_beams").number() > 1:
        raise scenario.at("generate_kwargs", "num_beams").error("must be 1: a beam is no request of its own")
    shapes = scenario["input_shapes"]
    version = config.at("environment", "optimum_benchmark_version").text()
    return join_cells(
        model_cells(backend["model"].text()),
        {
            "concurrency": shapes["batch_size"].number(),
            "n_input_token": shapes["sequence_length"].number(),
            "software": f"optimum-benchmark {version}".strip(),
        },
        _engine(backend, config["environment"]),
        _precisions(backend),
        _hardware(backend, config["environment"]),
        {"flash_attention": False} if backend["attn_implementation"].text() == "eager" else {},
    )


def _n_output_token(config: Node) -> float:
    limit = config.at("scenario", "generate_kwargs", "max_new_tokens").number()
    return config.at("scenario", "new_tokens").number() if math.isnan(limit) else limit


def _engine(backend: Node, environment: Node) -> dict[str, str]:
    name = backend["name"].text()
    version = environment["transformers_version"] if name == "pytorch" else backend["version"]
    return {"engine": _WORDS["engines"].get(name, name), "engine_version": version.text()}


def _precisions(backend: Node) -> dict[str, str]:
    dtype = (backend["torch_dtype"].text() or backend["dtype"].text()).removeprefix("torch.")
    scheme = backend["quantization_scheme"].text() or backend["quantization"].text()
    plain = parse_precision(dtype)
    if not scheme:
        return {"weight_precision": plain, "activation_precision": plain}
    settings = backend["quantization_config"]
    bits = settings["bits"].number()
    marks = [scheme, *(key for key in settings.keys if settings[key].value is True)]
    marks += [settings[key].text() for key in ("quant_type", "weights", "weights_dtype") if key in settings.keys]
    marked = (precision for mark in marks for name, precision in _WORDS["quantised"].items() if name in mark.lower())
    weight = _BITS.get(int(bits), "") if bits < 64 else next(marked, "")
    return {"weight_precision": weight, "activation_precision": plain, "note": f"quantised by {scheme[:60]}"}


def _hardware(backend: Node, environment: Node) -> dict[str, Any]:
    device = backend["device"].text()
    if device == "cpu":
        name = environment["cpu"].text()
        return {"accelerator": _catalogue_id(name), "n_accelerator": 1.0 if name else math.nan, **_unsplit(1)}
    names = [node.text() for node in environment["gpu"].items()]
    ids = _device_ids(backend["device_ids"])
    chosen = [names[i] for i in ids if i < len(names)] or names
    kinds = list(dict.fromkeys(filter(None, chosen)))
    if len(kinds) > 1 and ids:
        raise environment["gpu"].error(f"must be of one kind, got {', '.join(kinds)[:100]}")
    n = len(ids) or environment["gpu_count"].number() or math.nan
    return {"accelerator": _catalogue_id(kinds[0]) if len(kinds) == 1 else "", "n_accelerator": n, **_unsplit(n)}


def _device_ids(node: Node) -> list[int]:
    text = str(node.value) if type(node.value) is int else node.text()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        raise node.error(f"must be numbers of devices such as 0,1, got {text[:60]!r}")
    return [int(part) for part in dict.fromkeys(parts)]


def _unsplit(n: float) -> dict[str, float]:
    return dict.fromkeys(("tp", "pp", "dp"), 1.0) if n == 1 else {}


def _catalogue_id(name: str) -> str:
    try:
        return load_catalog().accelerator(name).id
    except UnknownNameError:
        return name


VOLUME_TOLERANCE: Final = 0.02
"""Relative tolerance between decode throughput times its latency and the tokens of the batch."""

OUT_OF_MEMORY: Final = ("outofmemory", "out of memory")
_MARKS: Final = {
    "complete": ("config", "report", "backend"),
    "report": ("prefill", "decode", "latency"),
    "config": ("backend", "scenario", "launcher"),
}
"""Names in a file by its kind."""


@dataclass(frozen=True)
class _Opened(Source):
    config: Node | None = None


def _read(sources: Iterable[Source], campaign: str, overrides: Overrides, names: NameCheck) -> pd.DataFrame:
    runs = []
    for source in sources:
        config = source.config if isinstance(source, _Opened) else None
        runs.append(_run(read_document(source, _without_values), config, overrides))
    return table_of_runs(runs, campaign, overrides, names)


def _kind(start: bytes) -> str:
    return next((kind for kind, names in _MARKS.items() if begins_json(start, *names)), "")


def _open(paths: Sequence[Path], *suffixes: str) -> Generator[Source, None, None]:
    files = files_of(paths, *suffixes)
    kinds = {file: "archive" if is_archive(file) else _kind(start_of(file, *suffixes)) for file in files}
    for folder in dict.fromkeys(file.parent for file in files):
        here = {kind: [f for f in files if f.parent == folder and kinds[f] == kind] for kind in set(kinds.values())}
        complete, reports, configs = (here.get(kind, []) for kind in ("complete", "report", "config"))
        config = _config(configs[0], *suffixes) if len(configs) == 1 and reports and not complete else None
        rest = [] if complete or reports else configs
        for file in [*here.get("archive", []), *(complete or reports), *here.get("", []), *rest]:
            for source in iter_sources([file], *suffixes):
                yield _Opened(source.name, source.stream, config if kinds[file] == "report" else None)


def _config(file: Path, *suffixes: str) -> Node:
    return next(read_document(source) for source in iter_sources([file], *suffixes))


def _without_values(members: dict[str, Any]) -> dict[str, Any]:
    members.pop("values", None)
    return members


def _run(document: Node, config: Node | None, overrides: Overrides) -> Run:
    is_complete = not document["report"].is_blank
    report = document["report"] if is_complete else document
    config = document["config"] if is_complete else config or Node({}, "config", document.place)
    cells = {"load": "static_batch", "length_variation": 0.0} | _config_cells(config)
    failure = report["traceback"].text().lower()
    if failure:
        is_full = any(mark in failure for mark in OUT_OF_MEMORY)
        failed = {"n_output_token": _n_output_token(config), "status": "out_of_memory" if is_full else "failed"}
        return Run(document.place, 0, cells | failed, {})
    for phase in ("prefill", "decode"):
        if report[phase]["latency"].is_blank:
            problem = "no such field: this is no report of text by optimum-benchmark, or its latency was off"
            raise report[phase]["latency"].error(problem)
    return _timed(document, report, cells, _Lengths.of(report, config, cells, overrides))


@dataclass(frozen=True)
class _Lengths:
    n_batch: float
    n_input: float
    n_output: float

    @classmethod
    def of(cls, report: Node, config: Node, cells: dict[str, Any], overrides: Overrides) -> _Lengths:
        known = {**cells, "n_output_token": _n_output_token(config)}
        n_batch, n_input, n_output = (
            first_known(float(v) for v in (known.get(name), overrides.get(name)) if isinstance(v, int | float))
            for name in ("concurrency", "n_input_token", "n_output_token")
        )
        throughput = report.at("decode", "throughput", "value")
        _check_unit(report.at("decode", "throughput", "unit"), "tokens/s")
        volume = throughput.number() * _times(report, "mean")["tpot_s"]
        if math.isnan(n_output):
            n_output = float(round(volume / n_batch)) + 1 if n_batch > 0 and 0 <= volume < math.inf else math.nan
        expected = n_batch * (n_output - 1)
        if abs(volume - expected) > VOLUME_TOLERANCE * max(volume, expected):
            problem = f"gives {volume:.6g} tokens with its latency, where the batch has {expected:g} after the first"
            raise throughput.error(problem)
        return cls(n_batch, n_input, n_output)


def _timed(document: Node, report: Node, cells: dict[str, Any], lengths: _Lengths) -> Run:
    decode, n_batch = report["decode"]["latency"], lengths.n_batch
    statistics = {name: _latencies(report, name, lengths) for name in STATISTICS}
    mean = statistics["mean"]
    derived = ["output_throughput_token_per_s", "total_throughput_token_per_s", "request_throughput_per_s", "power_w"]
    derived += ["tpot_s"] if report["per_token"]["latency"].is_blank else []
    if report["generate"]["latency"].is_blank:
        mean["e2e_s"] = mean["ttft_s"] + _times(report, "mean")["tpot_s"]
        derived.append("e2e_s")
    e2e_s = mean["e2e_s"]
    if not e2e_s > 0:
        raise decode["mean"].error("must be above 0")
    totals = {
        "output_throughput_token_per_s": n_batch * lengths.n_output / e2e_s,
        "total_throughput_token_per_s": n_batch * (lengths.n_input + lengths.n_output) / e2e_s,
        "request_throughput_per_s": n_batch / e2e_s,
        "memory_byte": _memory_byte(report),
        "power_w": _energy_j(report) / e2e_s,
    }
    counts = {"n_output_token": lengths.n_output, "n_request": n_batch * decode["count"].number(), "n_failed": 0.0}
    return Run(document.place, 0, cells | counts, statistics, totals, tuple(derived))


def _times(report: Node, statistic: str) -> dict[str, float]:
    return layout("llm_perf").read(report, "latencies", statistic)


def _latencies(report: Node, statistic: str, lengths: _Lengths) -> dict[str, float]:
    decode, gaps = report["decode"]["latency"], report["per_token"]["latency"]
    n_gap = lengths.n_output - 1
    is_clean = gaps["count"].number() == decode["count"].number() * n_gap
    times = _times(report, statistic)
    return times | {
        "nttft_s_per_token": times["ttft_s"] / lengths.n_input if lengths.n_input > 0 else math.nan,
        "tpot_s": times["tpot_s"] / n_gap if n_gap > 0 else math.nan,
        "itl_s": times["itl_s"] if is_clean else math.nan,
    }


def _check_unit(node: Node, unit: str) -> None:
    if node.text() not in ("", unit):
        raise node.error(f"must be {unit}, got {node.text()[:60]!r}")


def _memory_byte(report: Node) -> float:
    peaks: list[float] = []
    for phase in ("prefill", "decode", "generate"):
        memory = report[phase]["memory"]
        _check_unit(memory["unit"], "MB")
        on_device = [memory[name].number() for name in ("max_global_vram", "max_process_vram")]
        resident = memory["max_ram"].number() if all(map(math.isnan, on_device)) else math.nan
        peaks += [value for value in (*on_device, resident) if value > 0]
    return max(peaks) * BYTE_PER_MB if peaks else math.nan


def _energy_j(report: Node) -> float:
    energy_kwh = 0.0
    for phase in ("prefill", "decode"):
        energy = report[phase]["energy"]
        _check_unit(energy["unit"], "kWh")
        energy_kwh += energy["gpu"].number()
    return energy_kwh * W_PER_KW * S_PER_H if energy_kwh > 0 else math.nan


FORMAT: Final = Format("llm_perf", also=lambda start: bool(_kind(start)), read=_read, opened=_open)
"""The entry of the registry."""
