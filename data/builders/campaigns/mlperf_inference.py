"""MLPerf Inference's language models: logs of v4.1 and v5.1, result tables of v5.0 and v6.0."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of, rows_by_statistic
from roofcast.data.importers.client_runs import variation_of
from roofcast.data.importers.json_input import Floats
from roofcast.data.units import S_PER_NS

RAW: Final = Path("raw") / "mlperf_inference"
LOGS: Final = "mlperf_inference_llm_logs_v4.1_v5.1.csv"
TABLES: Final = "mlperf_llm_summary_5.0_5.1_6.0_tidy.csv"

MODELS: Final = {
    "llama2-70b": "meta-llama/Llama-2-70b-hf",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "llama3.1-405b": "meta-llama/Llama-3.1-405B",
    "llama3.1-8b": "meta-llama/Llama-3.1-8B",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "gptj": "EleutherAI/gpt-j-6b",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "whisper": "openai/whisper-large-v3",
}
"""Model by benchmark name without accuracy target (99, 99.9) and scenario."""

LENGTHS: Final = {
    "llama2-70b": "llama2-70b-99.csv",
    "mixtral-8x7b": "mixtral-8x7b.csv",
    "llama3.1-405b": "llama3-1-405b.csv",
    "llama3.1-8b": "llama3-1-8b-datacenter.csv",
    "deepseek-r1": "deepseek-r1.csv",
}
"""Files of the data sets' token lengths. GPT-J has none; gpt-oss has no output lengths."""

ACCELERATORS: Final = {
    "[MAXSUN] MS-Intel Arc Pro B60 Dual 48G Turbo": "intel-arc-pro-b60-24gb",
    "MS-Intel Arc Pro B60 Dual 48G Turbo": "intel-arc-pro-b60-24gb",
    "Intel(R) Arc Pro(R) B50": "intel-arc-pro-b50-16gb",
    "Intel(R) Arc Pro(R) B60": "intel-arc-pro-b60-24gb",
    "Intel(R) Arc Pro(R) B70": "intel-arc-pro-b70-32gb",
    "NVIDIA H200-SXM-141GB-CTS": "nvidia-h200-sxm-141gb",
    "Virtualized NVIDIA H100-SXM-80GB": "nvidia-h100-sxm-80gb",
    "Virtualized NVIDIA H200-SXM-141GB": "nvidia-h200-sxm-141gb",
    "AMD Instinct MI355X 288GB HBM3e (x87)": "amd-mi355x-288gb",
    "AMD Instinct MI355X 288GB HBM3e (x94)": "amd-mi355x-288gb",
}
"""Mixed clusters, power-capped cards, Jetson boards and CPUs are not in the catalogue."""

DATES: Final = {"v4.1": "2024-08", "v5.0": "2025-04", "v5.1": "2025-09", "v6.0": "2026"}
"""Publication date by round."""

UNIT_DOUBTED: Final = ("v6.0-0058", "v6.0-0059", "v6.0-0060", "v6.0-0101")
"""Intel Arc systems: their llama3.1-8b results are labelled tokens/s but have the size of samples/s."""

PRECISIONS: Final = {"uint4": "int4", "mxfp4": "fp4", "unset": ""}
ENGINES: Final = (
    ("llmboost", "llmboost"), ("tensorrt", "trtllm"), ("vllm", "vllm"), ("sglang", "sglang"), ("pytorch", "pytorch"),
)  # fmt: skip


def build_mlperf_inference(root: Path) -> BuildResult:
    """Build the campaign from its tables under `root`.

    Raises
    ------
    SchemaError
        If a file is missing.
    """
    logs = [(cells["path"], cells) for _, cells in records_of(root / RAW / LOGS)]
    files = {name: root / RAW / "dataset_token_lengths" / file for name, file in LENGTHS.items()}
    runs = _RunBuilder(
        CampaignBuilder("mlperf_inference", accelerators=ACCELERATORS),
        n_input_token={name: float(lengths_of(file, "input_length").mean()) for name, file in files.items()},
        variations={name: variation_of(lengths_of(file, "output_length")) for name, file in files.items()},
        n_output_token=_measured_lengths([cells for _, cells in logs]),
        precisions=_logged_precisions([cells for _, cells in logs]),
    )
    for reference, cells in logs:
        runs.add_log(reference, cells)
    for reference, cells in records_of(root / RAW / TABLES):
        runs.add_result(f"{reference} {cells['id']}", cells)
    return runs.campaign.build()


def stack_of(submitter: str) -> str:
    """Return the stack of a submitter.

    Examples
    --------
    >>> stack_of("Red Hat")
    'mlperf/red_hat'
    """
    return f"mlperf/{re.sub(r'[^a-z0-9]+', '_', submitter.lower()).strip('_')}"


def lengths_of(file: Path, column: str) -> Floats:
    """Return the token lengths in a column of a data set's file."""
    return np.array([number_of(cells[column]) for _, cells in records_of(file)])


def _measured_lengths(logs: list[dict[str, str]]) -> dict[str, float]:
    """Return output tokens per sample by benchmark: the mean over valid logs of the closed division."""
    ratios_by_benchmark = defaultdict(list)
    for cells in logs:
        ratio = _n_output_token(cells)
        if cells["division"] == "closed" and cells["result"] == "VALID" and not math.isnan(ratio):
            ratios_by_benchmark[benchmark_of(cells["model"])].append(ratio)
    return {name: sum(ratios) / len(ratios) for name, ratios in ratios_by_benchmark.items()}


def _logged_precisions(logs: list[dict[str, str]]) -> dict[tuple[str, str, str], str]:
    """Return the weight precision by accelerator, benchmark and engine, where all logs that state one agree."""
    precisions_by_run = defaultdict(set)
    for cells in logs:
        precision = _weight_precision(cells)
        if cells["division"] == "closed" and precision:
            key = (cells["accelerator_model_name"], benchmark_of(cells["model"]), _engine(cells["framework"]))
            precisions_by_run[key].add(precision)
    return {key: precisions.pop() for key, precisions in precisions_by_run.items() if len(precisions) == 1}


def _engine(text: str) -> str:
    return next((name for mark, name in ENGINES if mark in text.lower()), "")


def _weight_precision(cells: Mapping[str, str]) -> str:
    """Return the precision in a log; blank if it quantises 16-bit weights without stating the target."""
    precision = (cells["precision_cfg"].strip('"') or cells["weight_data_types"]).lower()
    is_quantised = not cells["precision_cfg"] and precision == "fp16" and "quant" in cells["weight_transformations"]
    return "" if is_quantised else PRECISIONS.get(precision, precision)


def _n_output_token(cells: Mapping[str, str]) -> float:
    return _tokens_per_s(cells) / number_of(cells["samples_per_s"])


def _tokens_per_s(cells: Mapping[str, str]) -> float:
    tokens = number_of(cells["tokens_per_s"])
    return number_of(cells["tokens_per_s_off"]) if math.isnan(tokens) else tokens


def benchmark_of(name: str) -> str:
    """Return the name of a benchmark without accuracy target and scenario.

    Examples
    --------
    >>> benchmark_of("llama2-70b-99.9"), benchmark_of("llama3_1-8b-datacenter")
    ('llama2-70b', 'llama3.1-8b')
    """
    return re.sub(r"-(99|99\.9|edge|datacenter|interactive-99|interactive-99\.9)$", "", name.replace("3_1", "3.1"))


@dataclass
class _RunBuilder:
    campaign: CampaignBuilder
    n_input_token: dict[str, float]
    variations: dict[str, float]
    n_output_token: dict[str, float]
    precisions: dict[tuple[str, str, str], str]

    def add_log(self, reference: str, cells: dict[str, str]) -> None:
        benchmark = benchmark_of(cells["model"])
        run = (cells["round"], cells["submitter"], cells["system"], cells["scenario"], cells["lat_mean_ns"])
        rejection = self._rejection(benchmark, (benchmark, *run))
        if cells["division"] == "open":
            rejection = ("open_division", f"another model, data or accuracy: {cells['model']}")
        elif cells["result"] != "VALID":
            rejection = ("invalid_result", cells["result"])
        if rejection is not None:
            self.campaign.reject(reference, *rejection)
            return
        n_output = _n_output_token(cells)
        lengths = {
            "n_input_token": self.n_input_token[benchmark],
            "n_output_token": self.n_output_token[benchmark] if math.isnan(n_output) else n_output,
            "length_variation": self.variations[benchmark],
        }
        logged = (cells["accelerator_model_name"], benchmark, _engine(cells["framework"]))
        precision = _weight_precision(cells) or self.precisions.get(logged, "")
        common = {"model": MODELS[benchmark], "weight_precision": precision, **lengths, **_deployment(cells)} | _load(
            cells
        )
        self.campaign.add(reference, rows_by_statistic(common, _outcomes(cells)))

    def add_result(self, reference: str, cells: dict[str, str]) -> None:
        benchmark = benchmark_of(cells["model"])
        run = (cells["round"], cells["id"], cells["system"], cells["scenario"], cells["result"])
        rejection = self._rejection(benchmark, (benchmark, *run))
        if cells["round"] == "v5.1":
            rejection = ("covered_by_logs", "the logs of this round tell more")
        elif cells["id"] in UNIT_DOUBTED and benchmark == "llama3.1-8b":
            rejection = ("unit_doubtful", f"{cells['result']} {cells['units']}")
        if rejection is not None:
            self.campaign.reject(reference, *rejection)
            return
        tokens_per_s = number_of(cells["result"])
        n_output = self.n_output_token[benchmark]
        is_offline = cells["scenario"] == "Offline"
        per_node = int(number_of(cells["n_accel"]) or 1)
        n_node = int(number_of(cells["nodes"]))
        engine = _engine(cells["system"])
        n_accelerator = per_node if cells["round"] == "v6.0" else per_node * n_node
        row: Row = {
            "model": MODELS[benchmark], "accelerator": cells["accel"],
            "n_accelerator": n_accelerator * n_chip(cells["accel"]), "n_node": n_node,
            "engine": engine, "weight_precision": self.precisions.get((cells["accel"], benchmark, engine), ""),
            "n_input_token": self.n_input_token[benchmark], "n_output_token": n_output, "statistic": "mean",
            "length_variation": self.variations[benchmark],
            "load": "offline" if is_offline else "open_loop",
            "output_throughput_token_per_s": tokens_per_s,
            "date": DATES[cells["round"]], "note": f"{cells['round']} {cells['org']}, {cells['scenario']}",
            "stack": stack_of(cells["org"]),
        }  # fmt: skip
        if not is_offline:
            row |= {"request_rate": tokens_per_s / n_output, "note": f"{row['note']}; rate from tokens/s"}
        self.campaign.add(reference, [row])

    def _rejection(self, benchmark: str, run: tuple[str, ...]) -> tuple[str, str] | None:
        if benchmark == "whisper":
            return "no_language_model", benchmark
        if benchmark not in self.n_input_token or benchmark not in self.n_output_token:
            return "no_lengths", f"request lengths of {benchmark} are not published"
        if not self.campaign.is_new(*run):
            return "same_run_twice", "entered for both accuracy targets"
        return None


def n_chip(accelerator: str) -> int:
    """Return the number of accelerators on a card."""
    return 2 if "B60 Dual" in accelerator else 1


def _deployment(cells: dict[str, str]) -> Row:
    n_node = int(number_of(cells["number_of_nodes"]))
    per_node = number_of(cells["accelerators_per_node"])
    card = cells["accelerator_model_name"]
    n_accelerator = n_node * (1 if math.isnan(per_node) else max(int(per_node), 1)) * n_chip(card)
    framework = cells["framework"]
    tp, pp = (number_of(cells[name]) for name in ("tp", "pp"))
    row: Row = {
        "accelerator": card, "n_accelerator": n_accelerator, "n_node": n_node,
        "engine": _engine(framework),
        "kv_precision": cells["kv_cache_dtype"].lower(),
        "software": framework, "date": DATES[cells["round"]],
        "stack": stack_of(cells["submitter"]),
        "note": f"{cells['round']} {cells['submitter']}, {cells['system']}, {cells['scenario']}"[:400],
    }  # fmt: skip
    if not math.isnan(tp):
        pp = 1.0 if math.isnan(pp) else pp
        dp = n_accelerator / (tp * pp)
        row |= {"tp": tp, "pp": pp, "dp": dp if dp >= 1 and dp.is_integer() else math.nan}
    return row


def _load(cells: dict[str, str]) -> Row:
    scenario = cells["scenario"].lower()
    if scenario == "offline":
        return {"load": "offline"}
    if scenario == "singlestream":
        return {"load": "closed_loop", "concurrency": 1.0}
    scheduled = number_of(cells["scheduled_sps"])
    rate = number_of(cells["target_qps"]) if math.isnan(scheduled) else scheduled
    return {"load": "open_loop", "request_rate": rate}


def _outcomes(cells: dict[str, str]) -> dict[str, Row]:
    """Return the outcomes by statistic. Offline latency counts from the start of the run and is excluded."""
    outcomes: dict[str, Row] = {
        "mean": {
            "output_throughput_token_per_s": _tokens_per_s(cells),
            "request_throughput_per_s": number_of(cells["samples_per_s"]),
        }
    }
    is_offline = cells["scenario"].lower() == "offline"
    for statistic in ("mean", "p50", "p90", "p99"):
        cells_of_statistic = outcomes.setdefault(statistic, {})
        for theirs, ours in (("ttft", "ttft_s"), ("tpot", "tpot_s"), ("lat", "e2e_s")):
            text = cells.get(f"{theirs}_{statistic}_ns", "")
            if not is_offline and text:
                cells_of_statistic[ours] = number_of(text) * S_PER_NS
    return outcomes
