"""PegaInfer's benchmarks: its in-process snapshots, and its server against vLLM on an RTX 5090."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, rows_by_statistic
from builders.campaigns.markdown import MarkdownRow, read_markdown_rows
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.specs import STATISTICS
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "pegainfer"
JULY: Final = "docs__benchmarks__qwen35-4b-serving-vllm-rtx5090-2026-07.md"
JUNE: Final = "docs__benchmarks__qwen35-4b-serving-vllm-rtx5090.md"

MODELS: Final = {"Qwen3-4B": "Qwen/Qwen3-4B", "Qwen3.5-4B": "Qwen/Qwen3.5-4B", "Kimi-K2.6": "moonshotai/Kimi-K2.6"}
ACCELERATORS: Final = {
    "NVIDIA A100-SXM4-80GB": "nvidia-a100-sxm-80gb",
    "NVIDIA H200": "nvidia-h200-sxm-141gb",
    "NVIDIA GeForce RTX 4090": "nvidia-rtx-4090-24gb",
    "NVIDIA GeForce RTX 5070 Ti": "nvidia-rtx-5070-ti-16gb",
    "NVIDIA GeForce RTX 5090": "nvidia-rtx-5090-32gb",
}
SPLITS: Final[dict[str, Row]] = {
    "": {"n_accelerator": 1, "tp": 1, "pp": 1, "dp": 1},
    "tp1-dp8-pplx": {"n_accelerator": 8, "tp": 1, "pp": 1, "dp": 8, "ep": 8},
}
PRECISIONS: Final = {"Kimi-K2.6": "int4"}
"""Weight precision of models that are not published in BF16."""

N_RUN: Final = 3
"""Runs of a cell of the page of July; its counts of requests are of all of them."""


def build_pegainfer(root: Path) -> BuildResult:
    """Build the campaign from its snapshots and pages under `root`.

    Raises
    ------
    SchemaError
        If a page or the snapshots are missing.
    """
    builder = CampaignBuilder("pegainfer", MODELS, ACCELERATORS)
    snapshots = sorted((root / RAW).glob("bench_snapshots__*.json"))
    if not snapshots:
        raise SchemaError("", "holds no snapshot", RAW.name)
    for file in snapshots:
        _add_snapshot(builder, file.name.partition("__")[2], json.loads(file.read_text(encoding="utf-8")))
    for row in read_markdown_rows(root / RAW / JUNE):
        _add_june(builder, row)
    for row in read_markdown_rows(root / RAW / JULY):
        _add_july(builder, row)
    return builder.build()


def _add_snapshot(builder: CampaignBuilder, name: str, document: Mapping[str, Any]) -> None:
    if "model" not in document:
        builder.reject(name, "comparison", "medians of pairs of builds, without latencies")
        return
    common: Row = SPLITS[document.get("parallel", "")] | {
        "model": document["model"], "accelerator": document["gpu"], "n_node": 1, "engine": "pegainfer",
        "engine_version": document["commit"], "weight_precision": PRECISIONS.get(document["model"], "bf16"),
        "load": "closed_loop", "length_variation": 0.0, "date": document["date"],
        "stack": f"pegainfer/{name.partition('__')[0]}",
    }  # fmt: skip
    for part in ("prefill_heavy", "decode_heavy"):
        run = document[part]
        metrics = run["metrics"]
        cells = common | {
            "n_input_token": run["prompt_len"], "n_output_token": run["output_len"], "concurrency": 1,
            "n_request": metrics["ttft_ms"]["samples"],
        }  # fmt: skip
        is_cached = _is_cached(cells, metrics["ttft_ms"]["p50_ms"])
        if is_cached:
            cells["prefix_caching"] = "on"
        if is_cached and metrics["steady_tpot_ms"] is None:
            builder.reject(
                f"{name} {part}", "cached_prompt", "the first token comes sooner than the prompt is computed"
            )
        else:
            builder.add(f"{name} {part}", rows_by_statistic(cells, _snapshot_outcomes(metrics, is_cached=is_cached)))
    if "mixed_itl" in document:
        builder.reject(f"{name} mixed_itl", "mixed_load", "requests of two kinds at once")
        _add_background(builder, f"{name} mixed_itl baseline", common, document["mixed_itl"])


def _add_background(builder: CampaignBuilder, reference: str, common: Row, mixed: Mapping[str, Any]) -> None:
    """Add the background streams before other requests join them."""
    if mixed.get("warnings"):
        builder.reject(reference, "uneven_load", "a stream ended before the run")
        return
    config = mixed["config"]
    cells = common | {
        "n_input_token": config["bg_prompt_len"], "n_output_token": config["bg_output_len"],
        "concurrency": config["bg_concurrency"],
    }  # fmt: skip
    outcomes: dict[str, Row] = {name: {"itl_s": _of(mixed["baseline_itl"], name)} for name in STATISTICS}
    builder.add(reference, rows_by_statistic(cells, outcomes))


def _of(values: Mapping[str, float] | None, statistic: str) -> float:
    """Return a statistic in seconds; nan where it is not published."""
    name = "avg_ms" if statistic == "mean" else f"{statistic}_ms"
    return s_from_ms((values or {}).get(name, math.nan))


def _snapshot_outcomes(metrics: Mapping[str, Any], *, is_cached: bool) -> dict[str, Row]:
    """Return TTFT, E2E and the gaps, whose mean is that of TPOT, since all answers have the same length."""
    outcomes: dict[str, Row] = {}
    for name in STATISTICS:
        latencies = {} if is_cached else {ours: _of(metrics[f"{ours[:-2]}_ms"], name) for ours in ("ttft_s", "e2e_s")}
        outcomes[name] = {**latencies, "itl_s": _of(metrics["steady_tpot_ms"], name)}
    outcomes["mean"]["tpot_s"] = outcomes["mean"]["itl_s"]
    return outcomes


def _is_cached(cells: Row, ttft_ms: float) -> bool:
    """Return whether the first token comes sooner than the weights' operations on the prompt at peak."""
    catalog = load_catalog()
    model = catalog.model(MODELS[str(cells["model"])])
    peak = catalog.accelerator(ACCELERATORS[str(cells["accelerator"])]).peak_flop_per_s["bf16"]
    n_flop = 2.0 * model.n_param_active * float(str(cells["n_input_token"]))
    return n_flop / (peak * float(str(cells["n_accelerator"]))) > s_from_ms(ttft_ms)


def _server(engine: str, date: str, n_input: float, n_output: float) -> Row:
    return SPLITS[""] | {
        "model": "Qwen3.5-4B", "accelerator": "NVIDIA GeForce RTX 5090", "n_node": 1, "engine": engine,
        "weight_precision": "bf16", "n_input_token": n_input, "n_output_token": n_output, "length_variation": 0.0,
        "prefix_caching": "off", "date": date, "stack": f"pegainfer/rtx-5090_{engine}",
    }  # fmt: skip


def _ms(text: str) -> float:
    return s_from_ms(number_of(text.replace("*", "").removesuffix("ms")))


def _add_june(builder: CampaignBuilder, row: MarkdownRow) -> None:
    """Add the concurrency sweep, 64 requests each, and the fixed shapes' first tokens and long answers."""
    heading = row.headings[-1]
    if heading != "HTTP Concurrency Sweep":
        if heading in {"HTTP Fixed Shapes", "PegaInfer Direct A/B"}:
            builder.reject(row.reference, "metric_by_row", f"one metric a row: {row.cells['Metric']}")
        return
    concurrency = number_of(row.cells["Max concurrency"])
    for engine, version, n_input in (("pegainfer", "a1846ca", 63459 / 64), ("vllm", "0.23.0", 1024.0)):
        name = "vLLM" if engine == "vllm" else engine
        cells = _server(engine, "2026-06", n_input, 256.0) | {
            "engine_version": version, "load": "closed_loop", "concurrency": concurrency, "n_request": 64,
            "graphs": "on" if engine == "pegainfer" else "",
            "max_context_token": 8192 if engine == "vllm" else math.nan,
            "statistic": "mean", "ttft_s": _ms(row.cells[f"{name} TTFT mean"]),
            "tpot_s": _ms(row.cells[f"{name} TPOT mean"]),
            "output_throughput_token_per_s": number_of(row.cells[f"{name} output tok/s"].replace("*", "")),
        }  # fmt: skip
        builder.add(f"{row.reference} {name}", [cells])


def _add_july(builder: CampaignBuilder, row: MarkdownRow) -> None:
    """Add the cells of the matrix and of the sweep of rates, of two engines each."""
    heading = row.headings[-1]
    if (
        heading not in {"Fixed / Concurrency", "QPS Sweep", "Overload And Recovery"}
        or "TPOT ms OI/vLLM" not in row.cells
    ):
        if heading in {"Direct Diagnostic", "Overload And Recovery"}:
            builder.reject(row.reference, "diagnostic", "no measurement of serving")
        return
    pairs = {name: text.split("/") for name, text in row.cells.items() if name.endswith("OI/vLLM")}
    for position, (engine, version) in enumerate((("pegainfer", "e2de05d"), ("vllm", "0.25.1"))):
        cell = {name.removesuffix(" OI/vLLM"): number_of(texts[position]) for name, texts in pairs.items()}
        n_output = 128.0 if heading == "QPS Sweep" else number_of(row.cells["Cell"].split()[0].split("/")[1])
        common = _server(engine, "2026-07-15", cell.get("avg in", math.nan), n_output) | {
            "engine_version": version, "n_request": cell["ok"] / N_RUN, "n_failed": cell["fail"] / N_RUN,
            "max_context_token": 8192 if engine == "vllm" else math.nan, **_july_load(row.cells),
        }  # fmt: skip
        if math.isnan(cell.get("avg in", math.nan)):
            builder.reject(f"{row.reference} {engine}", "no_lengths", "the page has no input length")
            continue
        outcomes: dict[str, Row] = {
            "mean": {
                "tpot_s": s_from_ms(cell["TPOT ms"]) if n_output > 1 else math.nan,
                "output_throughput_token_per_s": cell["out tok/s"],
            },
            "p99": {"itl_s": s_from_ms(cell["ITL p99"]) if n_output > 1 else math.nan},
        }
        builder.add(f"{row.reference} {engine}", rows_by_statistic(common, outcomes))


def _july_load(cells: Mapping[str, str]) -> Row:
    if "QPS" in cells:
        return {"load": "open_loop", "request_rate": number_of(cells["QPS"])}
    return {"load": "closed_loop", "concurrency": number_of(cells["Cell"].split()[1].removeprefix("c"))}
