"""DGX Spark benchmarks: vLLM on one GB10, open-loop loads (vllm bench serve) and fixed concurrency (llama-benchy)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of, rows_by_statistic
from roofcast.data.specs import STATISTICS
from roofcast.data.units import s_from_ms

RAW: Final = Path("raw") / "dgx_spark"
SERVE: Final = "vllm_bench_serve_rows.csv"
BENCHY: Final = "llama_benchy_rows.csv"
ACCELERATOR: Final = "nvidia-gb10-dgx-spark"

PRECISIONS: Final = {"bf16": "bf16", "fp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4"}
"""Weight precision by the first part of the run's profile name, before the hyphen."""

CHECKPOINTS: Final = {
    "mistralai/Ministral-3-3B-Instruct-2512": "fp8",
    "mistralai/Ministral-3-8B-Instruct-2512": "fp8",
}
"""Precision of checkpoints that differs from the run's profile."""

CACHES: Final = {"fp8": "fp8", "fp8_e4m3": "fp8"}
SPECULATIONS: Final = {"mtp": "mtp", "dflash": "draft"}

_LATENCIES: Final = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "e2e_s"}


def build_dgx_spark(root: Path) -> BuildResult:
    """Build the campaign from its two tables under `root`.

    Raises
    ------
    SchemaError
        If a file is missing.
    """
    builder = CampaignBuilder("dgx_spark")
    speculations: dict[str, Row] = {}
    for _, cells in records_of(root / RAW / SERVE):
        folder, _, name = cells["_path"].rpartition("/")
        speculations[folder] = _speculation(cells["meta.server_config.extra_vllm_args"])
        builder.add(cells["_path"], _serve_rows(cells, name, speculations[folder]))
    _add_benchy(builder, records_of(root / RAW / BENCHY), speculations)
    return builder.build()


def _common(model: str, profile: str, version: str) -> Row:
    return {
        "model": model, "accelerator": ACCELERATOR, "n_accelerator": 1, "tp": 1, "pp": 1, "dp": 1, "n_node": 1,
        "engine": "vllm", "engine_version": version,
        "weight_precision": CHECKPOINTS.get(model) or PRECISIONS[profile.partition("-")[0]],
    }  # fmt: skip


def _serve_rows(cells: dict[str, str], name: str, speculation: Row) -> list[Row]:
    n_done = number_of(cells["completed"])
    n_failed = number_of(cells["failed"])
    limit = number_of(cells["max_concurrency"])
    common = _common(cells["model_id"], cells["meta.profile"], cells["meta.vllm_version_reported"]) | {
        "kv_precision": CACHES.get(cells["meta.server_config.kv_cache_dtype"], ""),
        "prefix_caching": "on" if cells["meta.server_config.enable_prefix_caching"] == "True" else "off",
        "n_input_token": number_of(cells["total_input_tokens"]) / n_done,
        "n_output_token": number_of(cells["total_output_tokens"]) / n_done,
        "load": "open_loop", "request_rate": number_of(cells["request_rate"]), "concurrency": limit,
        "duration_s": number_of(cells["duration"]), "n_request": n_done + n_failed, "n_failed": n_failed,
        "date": re.sub(r"^(\d{4})(\d\d)(\d\d).*", r"\1-\2-\3", cells["date"]),
        "software": f"{cells['meta.vllm_image']}, driver {cells['meta.driver_version']}",
        "note": _note(cells, name, limit), **speculation,
    }  # fmt: skip
    outcomes = {
        statistic: {
            ours: s_from_ms(number_of(cells[f"{statistic}_{theirs}_ms"])) for theirs, ours in _LATENCIES.items()
        }
        for statistic in STATISTICS
    }
    throughputs = {
        "output_throughput_token_per_s": number_of(cells["output_throughput"]),
        "total_throughput_token_per_s": number_of(cells["total_token_throughput"]),
        "request_throughput_per_s": number_of(cells["request_throughput"]),
    }
    outcomes["mean"] |= throughputs
    return rows_by_statistic(common, {name: dict(cells) for name, cells in outcomes.items()})


def _note(cells: dict[str, str], name: str, limit: float) -> str:
    cap = "" if math.isnan(limit) else f"; at most {limit:g} requests in flight"
    return f"{name.removesuffix('.json')}, {cells['meta.profile']}; burstiness {cells['burstiness']}{cap}"


def _speculation(arguments: str) -> Row:
    """Return the speculative decoding settings in the server's arguments."""
    match = re.search(r"--speculative[-_]config\s+(\{.*?\})", arguments)
    if not match:
        return {}
    config = json.loads(match[1])
    return {
        "speculation": SPECULATIONS[config["method"]],
        "n_speculative_token": float(config["num_speculative_tokens"]),
    }


def _add_benchy(
    builder: CampaignBuilder, records: Iterable[tuple[str, dict[str, str]]], speculations: dict[str, Row]
) -> None:
    """Add the rows in pairs: prompt speed (pp) and the following generation speed (tg)."""
    prompt: dict[str, str] | None = None
    for reference, cells in records:
        if cells["phase"] == "pp":
            if prompt is not None:
                builder.reject(_reference(prompt), "no_partner", "a prompt's speed without that of its tokens")
            prompt = cells
        elif prompt is None or (prompt["_path"], prompt["conc"]) != (cells["_path"], cells["conc"]):
            builder.reject(reference, "no_partner", "speed of tokens without that of their prompt")
        else:
            folder = cells["_path"].rpartition("/")[0]
            builder.add(_reference(prompt), [_benchy_row(prompt, cells, speculations.get(folder, {}))], n_published=2)
            prompt = None


def _reference(prompt: dict[str, str]) -> str:
    return f"{prompt['_path']} {prompt['test']}"


def _benchy_row(prompt: dict[str, str], tokens: dict[str, str], speculation: Row) -> Row:
    depth = number_of(prompt["depth"])
    row = _common(prompt["hf_model"], prompt["profile"], prompt["vllm"]) | {
        "n_input_token": number_of(prompt["n_tok"]) + (0.0 if math.isnan(depth) else depth),
        "n_output_token": number_of(tokens["n_tok"]),
        "load": "static_batch", "concurrency": number_of(prompt["conc"]), "statistic": "mean",
        "ttft_s": s_from_ms(number_of(prompt["e2e_ttft_ms"])),
        "tpot_s": 1 / number_of(tokens["tps_req"]),
        "derived": "ttft_s tpot_s", "date": "2026",
        "note": f"llama-benchy {prompt['_path'].rpartition('/')[2].removesuffix('.md')}, {prompt['profile']}",
    }  # fmt: skip
    return row | speculation
