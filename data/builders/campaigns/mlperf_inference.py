"""Lengths, machines and precisions of MLPerf Inference's logs and result tables, joined over all rows."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from builders.figures import number_of
from builders.published import Cells, Record
from roofcast.data.importers.request_samples import variation_of

LENGTHS: Final = {
    "llama2-70b": "llama2-70b-99.csv",
    "mixtral-8x7b": "mixtral-8x7b.csv",
    "llama3.1-405b": "llama3-1-405b.csv",
    "llama3.1-8b": "llama3-1-8b-datacenter.csv",
    "deepseek-r1": "deepseek-r1.csv",
}
"""Files of the data sets' token lengths by benchmark."""

PRECISIONS: Final = {"uint4": "int4", "mxfp4": "fp4", "unset": ""}
ENGINES: Final = (
    ("llmboost", "llmboost"), ("tensorrt", "trtllm"), ("vllm", "vllm"), ("sglang", "sglang"), ("pytorch", "pytorch"),
)  # fmt: skip


@dataclass(frozen=True)
class _Known:
    n_input: Mapping[str, float]
    variations: Mapping[str, float]
    n_output: Mapping[str, float]
    precisions: Mapping[tuple[str, str, str], str]


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield logs and results with the lengths of their benchmark."""
    every = list(published)
    lengths = [record.cells for record in every if "/" in record.cells["@path"]]
    rest = [record for record in every if "/" not in record.cells["@path"]]
    logs = [record.cells for record in rest if "path" in record.cells]
    n_input, variations = data_set_lengths(lengths, LENGTHS)
    known = _Known(n_input, variations, _measured_lengths(logs), _logged_precisions(logs))
    seen: set[tuple[object, ...]] = set()
    for record in rest:
        cells, benchmark = record.cells, benchmark_of(record.cells["model"])
        is_log = "path" in cells
        has_lengths = benchmark in known.n_input and benchmark in known.n_output
        named = {"benchmark": benchmark, "has_lengths": has_lengths, "is_repeat": False}
        if has_lengths:
            names = (
                ("submitter", "system", "scenario", "lat_mean_ns")
                if is_log
                else ("id", "system", "scenario", "result")
            )
            run = (benchmark, cells["round"], *(cells[name] for name in names))
            named["is_repeat"] = run in seen
            seen.add(run)
            named |= _known_cells(cells, benchmark, known)
        yield Record(cells["path"] if is_log else f"{record.reference} {cells['id']}", {**cells, **named})


def data_set_lengths(samples: Iterable[Cells], files: Mapping[str, str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return mean input length and variation of the output length by benchmark; the latter where it is known."""
    by_file: dict[str, list[Cells]] = defaultdict(list)
    for cells in samples:
        by_file[cells["@file"]].append(cells)
    lengths = {
        column: {
            name: np.array([number_of(cells[column]) for cells in by_file[file]])
            for name, file in files.items()
            if column in by_file[file][0]
        }
        for column in ("input_length", "output_length")
    }
    means = {name: float(values.mean()) for name, values in lengths["input_length"].items()}
    return means, {name: variation_of(values) for name, values in lengths["output_length"].items()}


def stack_of(submitter: str) -> str:
    """Return the stack of a submitter.

    Examples
    --------
    >>> stack_of("Red Hat")
    'mlperf/red_hat'
    """
    return f"mlperf/{re.sub(r'[^a-z0-9]+', '_', submitter.lower()).strip('_')}"


def benchmark_of(name: str) -> str:
    """Return the name of a benchmark without accuracy target and scenario.

    Examples
    --------
    >>> benchmark_of("llama2-70b-99.9"), benchmark_of("llama3_1-8b-datacenter")
    ('llama2-70b', 'llama3.1-8b')
    """
    return re.sub(r"-(99|99\.9|edge|datacenter|interactive-99|interactive-99\.9)$", "", name.replace("3_1", "3.1"))


def n_chip(accelerator: str) -> int:
    """Return the number of accelerators on a card."""
    return 2 if "B60 Dual" in accelerator else 1


def _measured_lengths(logs: list[Cells]) -> dict[str, float]:
    ratios_by_benchmark = defaultdict(list)
    for cells in logs:
        ratio = _n_output_token(cells)
        if cells["division"] == "closed" and cells["result"] == "VALID" and not math.isnan(ratio):
            ratios_by_benchmark[benchmark_of(cells["model"])].append(ratio)
    return {name: sum(ratios) / len(ratios) for name, ratios in ratios_by_benchmark.items()}


def _logged_precisions(logs: list[Cells]) -> dict[tuple[str, str, str], str]:
    precisions_by_run = defaultdict(set)
    for cells in logs:
        precision = _weight_precision(cells)
        if cells["division"] == "closed" and precision:
            key = (cells["accelerator_model_name"], benchmark_of(cells["model"]), _engine(cells["framework"]))
            precisions_by_run[key].add(precision)
    return {key: precisions.pop() for key, precisions in precisions_by_run.items() if len(precisions) == 1}


def _engine(text: str) -> str:
    return next((name for mark, name in ENGINES if mark in text.lower()), "")


def _weight_precision(cells: Cells) -> str:
    precision = (cells["precision_cfg"].strip('"') or cells["weight_data_types"]).lower()
    is_quantised = not cells["precision_cfg"] and precision == "fp16" and "quant" in cells["weight_transformations"]
    return "" if is_quantised else PRECISIONS.get(precision, precision)


def _n_output_token(cells: Cells) -> float:
    tokens_per_s = number_of(cells["tokens_per_s"])
    tokens_per_s = number_of(cells["tokens_per_s_off"]) if math.isnan(tokens_per_s) else tokens_per_s
    return tokens_per_s / number_of(cells["samples_per_s"])


def _known_cells(cells: Cells, benchmark: str, known: _Known) -> dict[str, Any]:
    is_log = "path" in cells
    engine = _engine(cells["framework" if is_log else "system"])
    card = cells["accelerator_model_name" if is_log else "accel"]
    return {
        "engine": engine,
        "precision": (is_log and _weight_precision(cells)) or known.precisions.get((card, benchmark, engine)),
        "n_input": known.n_input[benchmark],
        "variation": known.variations[benchmark],
        "n_output": known.n_output[benchmark],
    }
