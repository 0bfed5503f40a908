"""InferenceMAX's results of November 2025, from faradawn's copy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import contradiction_of, round_figure
from builders.rejected_rows import REJECTED_COLUMNS
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.importers.inferencemax.vocabulary import (
    LATENCIES,
    LENGTH_VARIATION,
    MEAN_LENGTH_RATIO,
    MODELS,
    REQUESTS_PER_SLOT,
    engine_of,
    n_decode_accelerator,
    streams_tokens,
)
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.units import S_PER_MS

FOLDER: Final = "raw/inferencemax_faradawn"
STATISTICS: Final = {"mean": "mean", "p50": "median", "p99": "p99"}
_NOMINAL: Final = {"1k": 1024, "8k": 8192}
_RUN_NAME: Final = re.compile(
    r"\w+?_(?P<isl>\dk)(?P<osl>\dk)_(?P<precision>fp\d)_(?P<framework>\w+)_tp(?P<tp>\d+)_ep(?P<ep>\d+)"
    r"_dpa_(?P<dp_attention>true|false)_conc(?P<conc>\d+)_(?P<hw>[\w-]+)\.json"
)


def build_inferencemax(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`: three rows per plausible published result.

    Raises
    ------
    SchemaError
        If a file is not a list of results, or its name does not contain the request lengths.
    """
    folder = root / FOLDER
    results = [*_official(folder), *_logged(folder / "raw_runs_summary.jsonl")]
    records: list[dict[str, Any]] = []
    rejected: list[tuple[str, str, str]] = []
    for result in results:
        rows_of_result = list(_records(result))
        contradiction = contradiction_of(rows_of_result)
        if contradiction:
            rejected.append((result["note"], "implausible", contradiction))
        else:
            records += rows_of_result
    rows = validate_measurements(pd.DataFrame(records), folder.name)
    return BuildResult(rows, len(results), pd.DataFrame(rejected, columns=list(REJECTED_COLUMNS), dtype=str))


def _official(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("official_data_agg_*.json")):
        lengths = re.search(r"_(\dk)(\dk)\.json$", file.name)
        results = json.loads(file.read_text(encoding="utf-8"))
        if lengths is None or not isinstance(results, list):
            raise SchemaError("results", "must be a list, in a file named after its lengths such as 1k8k", file.name)
        for result in results:
            nominal = {"n_input_token": _NOMINAL[lengths[1]], "n_output_token": _NOMINAL[lengths[2]]}
            true = {name: round(value * MEAN_LENGTH_RATIO, 1) for name, value in nominal.items()}
            yield {**result, **true, "date": "2025-11", "note": file.name}


def _logged(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the runs whose log is available, with true lengths, date, duration and counts."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for number, line in enumerate(lines, start=1):
        run = json.loads(line)
        name = _RUN_NAME.fullmatch(run["file"])
        if name is None:
            raise SchemaError("file", f"does not contain the configuration, got {run['file']!r}", file.name, number)
        n = int(name["tp"])
        latencies = {k.removesuffix("_ms"): v * S_PER_MS for k, v in run.items() if k.endswith("_ms")}
        day = run["date"]
        yield {
            **latencies,
            **{key: name[key] for key in ("hw", "framework", "precision", "dp_attention")},
            **{key: int(name[key]) for key in ("tp", "ep", "conc")},
            "model": run["model_id"],
            "output_tput_per_gpu": run["output_throughput"] / n,
            "tput_per_gpu": run["total_token_throughput"] / n,
            "request_throughput": run["request_throughput"],
            "n_input_token": run["total_input_tokens"] / run["completed"],
            "n_output_token": run["total_output_tokens"] / run["completed"],
            "counts": {
                "duration_s": round_figure(run["duration"]),
                "n_request": run["num_prompts"],
                "n_failed": run["num_prompts"] - run["completed"],
            },
            "date": f"{day[:4]}-{day[4:6]}-{day[6:8]}",
            "note": f"{file.name}, line {number}",
        }


def _records(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    shared = _configuration(result)
    is_token = streams_tokens(shared["engine"], shared["accelerator"])
    for statistic, name in STATISTICS.items():
        latencies = {
            ours: round_figure(result[f"{name}_{theirs}"])
            for ours, theirs in LATENCIES.items()
            if theirs != "itl" or is_token
        }
        yield {**shared, **latencies, "statistic": statistic, **(_throughputs(result) if statistic == "mean" else {})}


def _configuration(result: Mapping[str, Any]) -> dict[str, Any]:
    catalog = load_catalog()
    framework, n = result["framework"], int(result["tp"])
    is_disaggregated = framework.startswith("dynamo-")
    has_dp = result["dp_attention"] == "true"
    n_decode = n_decode_accelerator(result, n) if is_disaggregated else None
    return {
        "model": catalog.model(MODELS.get(result["model"], result["model"])).id,
        "accelerator": catalog.accelerator(result["hw"].removesuffix("-trt")).id,
        "n_accelerator": n,
        "engine": engine_of(framework),
        "weight_precision": result["precision"],
        **({} if is_disaggregated else {"tp": 1 if has_dp else n, "pp": 1, "dp": n if has_dp else 1}),
        **({} if is_disaggregated else {"ep": result["ep"], "moe_tp": n // int(result["ep"])}),
        "n_input_token": round_figure(result["n_input_token"]),
        "n_output_token": round_figure(result["n_output_token"]),
        "concurrency": result["conc"],
        "load": "closed_loop",
        "length_variation": LENGTH_VARIATION,
        "n_prefill_accelerator": n - n_decode if n_decode else None,
        "n_decode_accelerator": n_decode,
        "speculation": "mtp" if result.get("mtp") == "on" else "",
        **({} if is_disaggregated else {"n_request": REQUESTS_PER_SLOT * result["conc"]}),
        **result.get("counts", {}),
        "date": result["date"],
        "software": "NVIDIA Dynamo" if is_disaggregated else "",
        "campaign": "inferencemax",
        "stack": "inferencex",
        "note": result["note"],
    }


def _throughputs(result: Mapping[str, Any]) -> dict[str, float | None]:
    n = int(result["tp"])
    n_output = n_decode_accelerator(result, n) if result["framework"].startswith("dynamo-") else n
    request = result.get("request_throughput")
    return {
        "output_throughput_token_per_s": round_figure(result["output_tput_per_gpu"] * n_output),
        "total_throughput_token_per_s": round_figure(result["tput_per_gpu"] * n),
        "request_throughput_per_s": None if request is None else round_figure(request),
    }
