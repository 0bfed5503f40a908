"""IOG Foundation's benchmarks: vLLM on RTX 4090 and H100 PCIe, ShareGPT at request rates."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of, rows_by_statistic

FILE: Final = Path("campaigns_2026_11") / "rows" / "iog.csv"
"""Extraction of the published results, one row a statistic."""

ACCELERATORS: Final = {"H100 PCIe": "nvidia-h100-pcie-80gb", "GeForce RTX 4090": "nvidia-rtx-4090-24gb"}
NUMBERS: Final = ("n_input_token", "n_output_token", "request_rate", "n_request")
LATENCIES: Final = ("ttft_s", "tpot_s", "itl_s")
RUN: Final = ("model", "gpu", "n_accelerator", "request_rate")
"""Columns of a configuration under a load."""


def build_iog(root: Path) -> BuildResult:
    """Build the campaign from the extraction under `root`: one published row per run.

    Raises
    ------
    SchemaError
        If the file is missing.
    """
    builder = CampaignBuilder("iog", accelerators=ACCELERATORS)
    runs: list[dict[str, dict[str, str]]] = []
    for _, cells in records_of(root / FILE):
        if cells["statistic"] == "mean":
            runs.append({})
        runs[-1][cells["statistic"]] = cells
    for statistics in runs:
        cells = statistics["mean"]
        reference = cells["source_url"].rpartition("/")[2]
        if cells["doubt"]:
            builder.reject(reference, "doubtful", cells["doubt"])
        elif not builder.is_new(*(cells[name] for name in RUN)):
            builder.reject(reference, "repeated_run", "another run has the same configuration and rate")
        else:
            builder.add(reference, rows_by_statistic(_common(cells), _outcomes(statistics)))
    return builder.build()


def _common(cells: dict[str, str]) -> Row:
    n = number_of(cells["n_accelerator"])
    return {
        "model": cells["model"], "accelerator": cells["gpu"], "n_accelerator": n, "tp": n, "pp": 1, "dp": 1,
        "n_node": 1, "engine": cells["engine"], "engine_version": cells["engine_version"],
        "weight_precision": cells["weight_precision"], "load": "open_loop", "date": cells["date"],
        "stack": cells["stack"].replace("iog-", "iog/", 1), **{name: number_of(cells[name]) for name in NUMBERS},
    }  # fmt: skip


def _outcomes(statistics: dict[str, dict[str, str]]) -> dict[str, Row]:
    outcomes: dict[str, Row] = {
        name: {latency: number_of(cells[latency]) for latency in LATENCIES} for name, cells in statistics.items()
    }
    outcomes["mean"]["output_throughput_token_per_s"] = number_of(statistics["mean"]["output_throughput_token_per_s"])
    return outcomes
