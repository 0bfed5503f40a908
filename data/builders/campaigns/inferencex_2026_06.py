"""InferenceX's nightly of June 2026 on H200, and a rerun of it on Nebius."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, rows_by_statistic
from roofcast.data.errors import SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.inferencemax.vocabulary import (
    LENGTH_VARIATION,
    MEAN_LENGTH_RATIO,
    REQUESTS_PER_SLOT,
    streams_tokens,
)

NAME: Final = "inferencex_2026_06"
RAW: Final = Path("campaigns_2026_11") / "raw" / NAME
ACCELERATOR: Final = "nvidia-h200-sxm-141gb"
MODELS: Final = {"gpt-oss-120b": "openai/gpt-oss-120b", "DeepSeek-R1-0528": "deepseek-ai/DeepSeek-R1-0528"}
STATISTICS: Final = {"mean": "Mean", "p50": "Median", "p99": "P99"}
LATENCIES: Final = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL", "e2e_s": "E2E Latency"}

RERUNS: Final[dict[str, Row]] = {
    "results__gptoss_h200_vllm22.0": {
        "model": "openai/gpt-oss-120b", "engine": "vllm", "engine_version": "0.22.0", "weight_precision": "fp4",
    },
    "results__deepseekr1_h200_sglang5.12": {
        "model": "deepseek-ai/DeepSeek-R1", "engine": "sglang", "engine_version": "0.5.12", "weight_precision": "fp8",
    },
}  # fmt: skip
"""Deployment by the beginning of a rerun's file name."""


def build_inferencex_2026_06(root: Path) -> BuildResult:
    """Build the campaign from its files under `root`.

    Raises
    ------
    SchemaError
        If a file is missing, or a rerun's name does not hold its deployment.
    """
    builder = CampaignBuilder(NAME)
    for model in MODELS:
        file = root / RAW / f"results__InferenceX_results_snapshot__InferenceX_{model}_e2e.csv"
        for reference, cells in _records(file):
            builder.add(reference, _nightly_rows(cells))
    for file in sorted((root / RAW).glob("*.json")):
        builder.add(file.name.rpartition("__")[2], _rerun_rows(file))
    return builder.build()


def _records(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a CSV file that begins with lines of comment."""
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    lines = [line for line in file.read_text(encoding="utf-8-sig").splitlines() if not line.startswith("#")]
    for number, cells in enumerate(csv.DictReader(lines), start=1):
        yield f"{file.name.rpartition('__')[2]}, row {number}", cells


def _nightly_rows(cells: dict[str, str]) -> list[Row]:
    n, concurrency = number_of(cells["TP"]), number_of(cells["Concurrency"])
    engine = cells["Framework"]
    common = {
        "model": MODELS[cells["Model"]], "accelerator": ACCELERATOR, "n_accelerator": n, "n_node": 1,
        "tp": n, "pp": 1, "dp": 1, "ep": number_of(cells["EP"]), "moe_tp": n / number_of(cells["EP"]),
        "engine": engine, "weight_precision": cells["Precision"],
        "n_input_token": MEAN_LENGTH_RATIO * number_of(cells["ISL"]),
        "n_output_token": MEAN_LENGTH_RATIO * number_of(cells["OSL"]),
        "load": "closed_loop", "concurrency": concurrency, "length_variation": LENGTH_VARIATION,
        "n_request": REQUESTS_PER_SLOT * concurrency, "date": cells["Date"], "stack": "inferencex",
    }  # fmt: skip
    outcomes: dict[str, Row] = {
        statistic: {
            ours: number_of(cells[f"{name} {theirs} (ms)"])
            for ours, theirs in LATENCIES.items()
            if ours != "itl_s" or streams_tokens(engine, ACCELERATOR)
        }
        for statistic, name in STATISTICS.items()
    }
    outcomes["mean"] |= {
        "output_throughput_token_per_s": n * number_of(cells["Output Throughput/GPU (tok/s)"]),
        "total_throughput_token_per_s": n * number_of(cells["Throughput/GPU (tok/s)"]),
    }
    return rows_by_statistic(common, outcomes)


def _rerun_rows(file: Path) -> list[Row]:
    deployment = next((row for start, row in RERUNS.items() if file.name.startswith(start)), None)
    match = re.search(r"_tp(\d)_", file.name)
    if deployment is None or match is None:
        raise SchemaError("", "must be named after its deployment", file.name)
    n = int(match[1])
    overrides = {**deployment, "accelerator": ACCELERATOR, "n_accelerator": n, "tp": n, "n_node": 1}
    table = read_measurements("vllm_bench", [file], NAME, overrides=overrides)
    if not streams_tokens(str(deployment["engine"]), ACCELERATOR):
        table["itl_s"] = float("nan")
    table = table.assign(stack="heyram74/nebius", length_variation=LENGTH_VARIATION, note="")
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
