"""TensorRT-LLM's performance pages: saturated offline throughput, and static batches in older revisions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import round_figure
from builders.rejected_rows import REJECTED_COLUMNS
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.units import s_from_ms

TIDY: Final = "raw/trtllm_perf_overview/perf_overview_tidy.csv"
OLD: Final = "raw/trtllm_perf_overview/old_tables.jsonl"

PER_DEPLOYMENT: Final = "total_output_tok_s"
PER_ACCELERATOR: Final = "output_tok_s_per_gpu"

_PRECISIONS: Final = {"FP16": "fp16", "FP8": "fp8", "FP4": "fp4"}
_MODELS: Final = {"GPT 175B": "openai/gpt3-175b"}
_HEAD: Final = re.compile(
    r"(?P<table>High Throughput|Peak Throughput|Low Latency).*> (?P<gpu>\w+) GPUs \((?P<p>FP\d+)\)"
)
_THROUGHPUTS: Final = ("Throughput (out tok/s)", "Throughput (out tok/s/GPU)")
_LATENCY: Final = "1st Token Latency (ms)"

Records = list[dict[str, Any]]


def build_trtllm_overview(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`."""
    tidy = pd.read_csv(root / TIDY, dtype=str, keep_default_na=False)
    new, new_rejected = _offline([{str(k): str(v) for k, v in row.items()} for row in tidy.to_dict("records")])
    lines = (root / OLD).read_text(encoding="utf-8").splitlines()
    old, old_rejected = _static([json.loads(line) for line in lines])
    rows = validate_measurements(pd.DataFrame([*new, *old]), "trtllm_perf_overview")
    rejected = pd.DataFrame([*new_rejected, *old_rejected], columns=list(REJECTED_COLUMNS))
    return BuildResult(rows, n_read=len(tidy) + len(lines), rejected=rejected)


def parallelism_of(text: str, pp: int) -> dict[str, int]:
    """Return accelerators and parallelism of a cell; a plain number is tensor parallelism.

    ``DEP4`` is data-parallel attention and expert parallelism on four accelerators.

    Raises
    ------
    SchemaError
        If the cell has neither form.

    Examples
    --------
    >>> parallelism_of("DEP4", 2)
    {'n_accelerator': 8, 'tp': 1, 'pp': 2, 'dp': 4, 'ep': 4}
    """
    match = re.fullmatch(r"(DEP)?(\d+)", text)
    if match is None:
        raise SchemaError("tp", f"must be a number or such as DEP4, got {text!r}", Path(TIDY).name)
    n = int(match[2])
    split = {"tp": 1, "pp": pp, "dp": n, "ep": n} if match[1] else {"tp": n, "pp": pp, "dp": 1}
    return {"n_accelerator": n * pp, **split}


def _offline(rows: list[dict[str, str]]) -> tuple[Records, list[tuple[str, str, str]]]:
    records: Records = []
    rejected: list[tuple[str, str, str]] = []
    seen: dict[tuple[str, ...], str] = {}
    by_precision = sorted(enumerate(rows, start=2), key=lambda item: item[1]["precision"] not in _PRECISIONS)
    for line, row in by_precision:
        reference = f"{Path(TIDY).name}, line {line}"
        run = tuple(row[name] for name in ("version", "model", "gpu", "tp", "pp", "isl", "osl", "value"))
        if run in seen:
            rejected.append((reference, "duplicate", f"the measurement of {seen[run]}"))
            continue
        seen[run] = reference
        records.append(_offline_record(row))
    return records, rejected


def _offline_record(row: Mapping[str, str]) -> dict[str, Any]:
    split = parallelism_of(row["tp"], int(row["pp"]))
    is_known = row["precision"] in _PRECISIONS
    factor = {PER_DEPLOYMENT: 1, PER_ACCELERATOR: split["n_accelerator"]}[row["metric"]]
    return {
        **_catalog_cells(row["model"], row["gpu"]),
        **split,
        "engine_version": row["version"],
        "weight_precision": _PRECISIONS.get(row["precision"], ""),
        "n_input_token": int(row["isl"]),
        "n_output_token": int(row["osl"]),
        "output_throughput_token_per_s": round_figure(float(row["value"]) * factor),
        "load": "offline",
        "date": row["date"],
        "note": "" if is_known else f"precision published as {row['precision']}",
    }


def _static(lines: list[dict[str, Any]]) -> tuple[Records, list[tuple[str, str, str]]]:
    records: Records = []
    rejected: list[tuple[str, str, str]] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        reference = f"{Path(OLD).name}, line {number}"
        head, cells = _HEAD.search(line["head"]), line["row"]
        if "/blogs/" in line["file"]:
            rejected.append((reference, "blog_table", "its rows do not name accelerator, precision and model each"))
        elif head is None:
            rejected.append((reference, "no_value", "the latency cells of this revision are empty"))
        else:
            record = _static_record(head, cells)
            content = json.dumps(record, sort_keys=True)
            if content in seen:
                rejected.append(
                    (reference, "duplicate", f"the measurement of line {seen[content]}, in a later revision")
                )
            else:
                seen[content] = number
                records.append({**record, "date": line["first"]})
    return records, rejected


def _static_record(head: re.Match[str], cells: Mapping[str, str]) -> dict[str, Any]:
    n = int(cells["TP (1)"])
    value = next((_number(cells[name]) for name in _THROUGHPUTS if name in cells), None)
    is_per_accelerator = head["table"] == "Peak Throughput"
    outcome = (
        {"ttft_s": round_figure(s_from_ms(_number(cells[_LATENCY])))}
        if value is None
        else {"output_throughput_token_per_s": round_figure(value * (n if is_per_accelerator else 1))}
    )
    return {
        **_catalog_cells(cells["Model"], head["gpu"]),
        "n_accelerator": n,
        "tp": n,
        "pp": 1,
        "dp": 1,
        "weight_precision": _PRECISIONS[head["p"]],
        "n_input_token": int(cells["Input Length"]),
        "n_output_token": int(cells.get("Output Length", 1)),
        "concurrency": int(cells["Batch Size"]),
        **outcome,
        "load": "static_batch",
    }


def _catalog_cells(model: str, gpu: str) -> dict[str, str | float]:
    catalog = load_catalog()
    accelerator = catalog.accelerator(_ACCELERATORS.get(gpu, gpu)).id
    return {
        "model": catalog.model(_MODELS.get(model, model)).id,
        "accelerator": accelerator,
        "engine": "trtllm",
        "statistic": "mean",
        "length_variation": 0.0,
        "campaign": "trtllm_overview",
        "stack": "trtllm_overview",
    }


_ACCELERATORS: Final = {"A100": "nvidia-a100-sxm-80gb"}


def _number(text: str) -> float:
    return float(text.replace(",", ""))
