"""dstack's benchmarks: Llama 3.1 405B on H100 and MI300X, gpt-oss-120b on disaggregated H200."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import (
    CampaignBuilder,
    Row,
    number_of,
    records_of,
    round_figure,
    rows_by_statistic,
)
from roofcast.data.units import s_from_ms

RAW: Final = Path("raw") / "dstack_benchmarks"
RATIO: Final = "comparison__pd_ratio__csv_data__results.csv"
JSON: Final = "raw_json_rows.csv"
RATES: Final = (
    "comparison__h100sxm5_vs_mi300x__csv_data__qps_comparison.csv",
    "nvidia__8xh100__charts__qps_output.csv",
)
BATCHES: Final = "comparison__h100sxm5_vs_mi300x__csv_data__throughput_comparsion.csv"
BLOCKS: Final = "serving_blocks.csv"
"""Reading order: the first copy of a run wins. The other files repeat these, except curves that join runs of
different kinds and throughputs of prompts of 91,680 tokens and more, which their authors doubt."""

MODEL: Final = "meta-llama/Llama-3.1-405B"
ACCELERATORS: Final = {"h100": "nvidia-h100-sxm-80gb", "mi300x": "amd-mi300x-192gb"}
N_WORKER_ACCELERATOR: Final = 2
"""Tensor parallelism of every prefill and decode worker."""

Run = tuple[Row, dict[str, Row]]
"""Cells shared by all rows of a run, and its outcomes by statistic."""

_SYSTEM: Final = re.compile(r"(\d)x(h100|mi300x)", re.IGNORECASE)
_LENGTHS: Final = re.compile(r"_(?:req(?P<n>\d+)_)?(?:in|ip)(?P<i>\d+)_(?:out|op)(?P<o>\d+)_(?:np(?P<b>\d+))?")
_STATISTICS: Final = {"mean": "mean", "median": "p50", "p99": "p99"}
_LATENCIES: Final = ("ttft", "tpot", "itl")
_REPEATS: Final = ("repeats_other_file", "the same run, kept from an earlier file")


def build_dstack(root: Path) -> BuildResult:
    """Build the campaign from its tables under `root`.

    Raises
    ------
    SchemaError
        If a file is missing.
    """
    folder = root / RAW
    runs = _RunBuilder(CampaignBuilder("dstack"))
    for reference, cells in records_of(folder / RATIO):
        runs.add(reference, _ratio_run(cells), cells)
    for reference, cells in records_of(folder / JSON):
        runs.add(f"{reference} {Path(cells['_path']).name}", _json_run(cells), cells)
    for name in RATES:
        for reference, cells in records_of(folder / name):
            system = cells.get("gpu") or "8xH100 1FP8-meta"
            runs.add(reference, _rate_run(system, cells), cells, system)
    for reference, cells in records_of(folder / BATCHES):
        n_input, n_output, n_request = (number_of(cells[name]) for name in ("input_len", "output_len", "batch_size"))
        run = _offline_run(cells["gpu"], n_input, n_output, n_request, cells)
        runs.add(reference, run, cells, cells["gpu"])
    for reference, cells in records_of(folder / BLOCKS):
        runs.add(reference, _block_run(cells), cells)
    return runs.campaign.build()


class _RunBuilder:
    def __init__(self, campaign: CampaignBuilder) -> None:
        self.campaign = campaign

    def add(self, reference: str, run: Run | None, cells: dict[str, str], system: str = "") -> None:
        """Add a run; its duration identifies repeats."""
        duration_s = round_figure(number_of(cells.get("duration") or cells.get("elapsed_time") or ""))
        if "2FP8" in system:
            self.campaign.reject(reference, "aggregated", "two deployments of half the accelerators, summed up")
        elif run is None or not self.campaign.is_new(duration_s):
            self.campaign.reject(reference, *_REPEATS)
        elif cells.get("mean_ttft_ms") in ("0", "0.0"):
            self.campaign.reject(reference, "no_outcome", "a time to first token of 0: no request was answered")
        else:
            self.campaign.add(reference, rows_by_statistic(*run))


def _serving_outcomes(cells: dict[str, str]) -> dict[str, Row]:
    """Return latencies and throughputs of vLLM's serving benchmark by statistic."""
    outcomes: dict[str, Row] = {
        ours: {
            f"{latency}_s": s_from_ms(number_of(cells.get(f"{theirs}_{latency}_ms", ""))) for latency in _LATENCIES
        }
        for theirs, ours in _STATISTICS.items()
    }
    outcomes["mean"] |= {
        "output_throughput_token_per_s": number_of(cells["output_throughput"]),
        "total_throughput_token_per_s": number_of(cells["total_token_throughput"]),
        "request_throughput_per_s": number_of(cells["request_throughput"]),
    }
    return outcomes


def _counts(cells: dict[str, str]) -> Row:
    n_done, n_sent = number_of(cells["completed"]), number_of(cells["num_prompts"])
    return {
        "n_input_token": number_of(cells["total_input_tokens"]) / n_done,
        "n_output_token": number_of(cells["total_output_tokens"]) / n_done,
        "n_request": n_sent, "n_failed": n_sent - n_done, "duration_s": number_of(cells["duration"]),
    }  # fmt: skip


def _ratio_run(cells: dict[str, str]) -> Run:
    n_prefill, n_decode = (int(cells[name]) * N_WORKER_ACCELERATOR for name in ("prefill", "decode"))
    common: Row = {
        "model": "openai/gpt-oss-120b", "accelerator": "nvidia-h200-sxm-141gb", "engine": "sglang",
        "weight_precision": "fp4", "n_accelerator": n_prefill + n_decode, "n_node": 1,
        "n_prefill_accelerator": n_prefill, "n_decode_accelerator": n_decode, "tp": N_WORKER_ACCELERATOR, "pp": 1,
        "load": "closed_loop", "concurrency": number_of(cells["conc"]), **_counts(cells),
        "date": _date(cells["date"]), "note": f"{cells['prefill']} prefill and {cells['decode']} decode workers",
    }  # fmt: skip
    return common, _serving_outcomes(cells)


def _json_run(cells: dict[str, str]) -> Run | None:
    path = cells["_path"]
    if "/pd_ratio/" in path:
        return None
    system = "8xH100" if "8xH100" in path or "nvidia" in path else ("4xMi300x" if "/4Mi300x" in path else "8xMi300x")
    match = _LENGTHS.search(path)
    if match is None:
        return _rate_run(system, cells)
    n_input, n_output = float(match["i"]), float(match["o"])
    n_request = float(match["n"] or match["b"])
    if not cells["avg_latency"]:
        return _offline_run(system, n_input, n_output, n_request, cells)
    outcomes: dict[str, Row] = {
        name: {"e2e_s": number_of(cells[f"percentiles.{name[1:]}"])} for name in ("p50", "p90", "p99")
    }
    outcomes["mean"] = {"e2e_s": number_of(cells["avg_latency"])}
    common = _llama(system) | {
        "n_input_token": n_input, "n_output_token": n_output, "load": "static_batch", "concurrency": n_request,
        "length_variation": 0.0, "date": "2024-11",
    }  # fmt: skip
    return common, outcomes


def _llama(system: str) -> Row:
    match = _SYSTEM.match(system)
    n_accelerator = int(match[1]) if match else 0
    return {
        "model": MODEL, "accelerator": ACCELERATORS[match[2].lower()] if match else "",
        "n_accelerator": n_accelerator, "n_node": 1, "tp": n_accelerator, "pp": 1, "engine": "vllm",
        "weight_precision": "fp8",
    }  # fmt: skip


def _rate_run(system: str, cells: dict[str, str]) -> Run:
    chunked = {"TRUE": "on", "FALSE": "off"}.get(cells.get("enable-chunked-prefill", "").upper(), "")
    cached = {"TRUE": "on", "FALSE": "off"}.get(cells.get("enable-prefix-caching", "").upper(), "")
    steps = cells.get("num-scheduler-step", "")
    name = cells.get("filename") or Path(cells.get("_path", "")).name
    common = _llama(system) | _counts(cells) | {
        "load": "open_loop", "request_rate": number_of(cells["request_rate"]), "chunked_prefill": chunked,
        "prefix_caching": cached, "date": _date(name) or "2024-11",
        "note": "; ".join(filter(None, [system, f"{steps} scheduler steps" if steps else "", name])),
    }  # fmt: skip
    return common, _serving_outcomes(cells)


def _offline_run(system: str, n_input: float, n_output: float, n_request: float, cells: dict[str, str]) -> Run:
    duration_s = number_of(cells["elapsed_time"])
    common = _llama(system) | {
        "n_input_token": n_input, "n_output_token": n_output, "load": "offline", "concurrency": n_request,
        "n_request": n_request, "duration_s": duration_s, "date": "2024-11",
        "note": f"{system}; all requests at once",
        "derived": "output_throughput_token_per_s", "length_variation": 0.0,
    }  # fmt: skip
    throughputs: Row = {
        "output_throughput_token_per_s": n_request * n_output / duration_s,
        "total_throughput_token_per_s": number_of(cells["tokens_per_second"]),
        "request_throughput_per_s": number_of(cells["requests_per_second"]),
    }
    return common, {"mean": throughputs}


def _block_run(cells: dict[str, str]) -> Run:
    n_request = number_of(cells["n_ok"])
    outcomes: dict[str, Row] = {
        ours: {f"{latency}_s": s_from_ms(number_of(cells[f"{theirs}_{latency}_ms"])) for latency in _LATENCIES}
        for theirs, ours in _STATISTICS.items()
    }
    outcomes["mean"] |= {
        "output_throughput_token_per_s": number_of(cells["out_tok_s"]),
        "total_throughput_token_per_s": number_of(cells["total_tok_s"]),
        "request_throughput_per_s": n_request / number_of(cells["duration_s"]),
    }
    common = _llama("8xMi300x") | {
        "engine": Path(cells["path"]).name.partition("_")[0], "weight_precision": "bf16",
        "n_input_token": number_of(cells["in_tokens"]) / n_request,
        "n_output_token": number_of(cells["out_tokens"]) / n_request,
        "load": "offline", "concurrency": n_request, "n_request": n_request,
        "duration_s": number_of(cells["duration_s"]), "date": "2024-10", "note": "all requests at once",
    }  # fmt: skip
    return common, outcomes


def _date(text: str) -> str:
    """Return the ISO date of the first eight-digit date in a text; blank if there is none."""
    match = re.search(r"(20\d\d)(\d\d)(\d\d)-", text)
    return "-".join(match.groups()) if match else ""
