"""Result files of ``vllm bench serve`` in repositories of RTX PRO 6000, TPU v6e and A100, and RTX 5070 Ti."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row
from roofcast.data.errors import SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.overrides import is_blank
from roofcast.data.measurements.schema import OUTCOME_COLUMNS

RAW: Final = Path("campaigns_2026_11") / "raw"

ONE: Final[Row] = {"n_accelerator": 1, "n_node": 1, "tp": 1, "pp": 1, "dp": 1, "engine": "vllm"}
RANDOM_NOTE: Final = "random prompts"

PRO6000: Final[dict[str, Row]] = {
    "maxq": {"accelerator": "nvidia-rtx-pro-6000-blackwell-maxq", "power_limit_w": 300},
    "ws": {"accelerator": "nvidia-rtx-pro-6000-blackwell-workstation", "power_limit_w": 600},
}
"""Card and power limit by the last part of the result folder's name, as the README states them."""

GEMMA_SERVERS: Final[dict[str, Row]] = {
    "tpu": {
        "accelerator": "google-tpu-v6e", "n_accelerator": 4, "tp": 4, "kv_precision": "fp8",
        "software": "vllm/vllm-tpu:gemma4", "stack": "tsho/tpu",
    },
    "gpu": {
        "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": 2, "tp": 2, "kv_precision": "fp8",
        "software": "vllm/vllm-openai:latest of 2026-04-27", "stack": "tsho/gpu",
    },
}  # fmt: skip
"""Deployment by the end of the result folder's name: launch scripts of the repository."""


def build_hikarioyama_pro6000(root: Path) -> BuildResult:
    """Build the campaign of two power limits of the RTX PRO 6000 from its files under `root`."""
    builder = CampaignBuilder("hikarioyama_pro6000", {"unsloth/Qwen3.8-27B-NVFP4": "Qwen/Qwen3.8-27B"})
    for file in result_files(root / RAW / "hikarioyama_pro6000", "random-*.json"):
        part = file.parent.name.rpartition("-")[2]
        set_cells: Row = {
            **ONE, **PRO6000[part], "stack": f"hikarioyama/{part}", "engine_version": "0.27.1",
            "model:qwen38-nvfp4": "unsloth/Qwen3.8-27B-NVFP4", "model:qwen38-nvfp4-ws": "unsloth/Qwen3.8-27B-NVFP4",
            "weight_precision": "fp4", "kv_precision": "bf16", "max_num_seqs": 8, "max_context_token": 8192,
            "length_variation": 0, "note": RANDOM_NOTE,
        }  # fmt: skip
        reference = f"{file.parent.name}/{file.name}"
        if "-run3" not in file.name:
            builder.reject(reference, "repeated_run", "the last of three runs of a configuration stands for them")
        else:
            add_file(builder, file, reference, set_cells)
    return builder.build()


def build_tsho_gemma4_tpu_a100(root: Path) -> BuildResult:
    """Build the campaign of Gemma 4 31B on TPU v6e and A100 from its files under `root`."""
    builder = CampaignBuilder("tsho_gemma4_tpu_a100")
    for file in result_files(root / RAW / "tsho_gemma4_tpu_a100", "result-*.json"):
        set_cells: Row = {
            **ONE, "weight_precision": "bf16", **GEMMA_SERVERS[file.parent.name.rpartition("-")[2]],
            "max_context_token": 16384, "length_variation": 0, "note": RANDOM_NOTE,
        }  # fmt: skip
        add_file(builder, file, f"{file.parent.name}/{file.name}", set_cells)
    return builder.build()


def build_pillaiharish_5070ti(root: Path) -> BuildResult:
    """Build the campaign of one GeForce RTX 5070 Ti from its files under `root`."""
    builder = CampaignBuilder("pillaiharish_5070ti", stack="pillaiharish")
    for file in result_files(root / RAW / "pillaiharish_5070ti", "day*.json"):
        set_cells: Row = {
            **ONE, "model": "Qwen/Qwen2.5-0.5B-Instruct", "accelerator": "nvidia-rtx-5070-ti-16gb",
            "engine_version": "0.22.0", "weight_precision": "bf16", "max_context_token": 4096, "length_variation": 0,
        }  # fmt: skip
        add_file(builder, file, file.name, set_cells)
    return builder.build()


def result_files(folder: Path, pattern: str) -> Sequence[Path]:
    """Return the result files of a campaign in the order of their paths.

    Raises
    ------
    SchemaError
        If there are none.
    """
    files = sorted(folder.rglob(pattern))
    if not files:
        raise SchemaError("", f"no file {pattern}", folder.name)
    return files


def add_file(builder: CampaignBuilder, file: Path, reference: str, set_cells: Row) -> None:
    """Add the run of a result file with the cells that it leaves blank, or reject it if it contradicts itself.

    Parameters
    ----------
    set_cells
        Columns that the file does not state; ``stack``, ``software`` and ``note`` replace the importer's.
    """
    names = {"stack", "software", "note"}
    overrides = {name: value for name, value in set_cells.items() if name not in names}
    try:
        table = read_measurements("vllm_bench", [file], builder.campaign, overrides=overrides)
    except SchemaError as error:
        builder.reject(reference, "implausible", re.sub(r"; .*", "", error.problem))
        return
    own = {name: set_cells[name] for name in names if name in set_cells}
    rows = ({str(n): v for n, v in row.items() if not is_blank(v)} | own for row in table.to_dict("records"))
    builder.add(reference, offline_throughput(rows))


def offline_throughput(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a run; of an offline run its throughput alone, for its latencies count from the start.

    Examples
    --------
    >>> offline_throughput([{"load": "offline", "statistic": "mean", "ttft_s": 9.0, "request_throughput_per_s": 2.0}])
    [{'load': 'offline', 'statistic': 'mean', 'request_throughput_per_s': 2.0}]
    >>> offline_throughput([{"load": "offline", "statistic": "p50", "ttft_s": 9.0}])
    []
    """
    run = []
    for row in rows:
        is_offline = row.get("load") == "offline"
        cells = {n: v for n, v in row.items() if not (is_offline and n in OUTCOME_COLUMNS and "throughput" not in n)}
        if OUTCOME_COLUMNS.keys() & cells.keys():
            run.append(cells)
    return run
