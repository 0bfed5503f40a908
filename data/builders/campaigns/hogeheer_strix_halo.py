"""llama.cpp on one Strix Halo (Beelink GTR9 Pro): llama-bench on Vulkan and ROCm, llama-server with 1 to 16 users."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, rows_by_statistic
from builders.campaigns.llama_bench import BATCH, generation_row, gguf_precision, prompt_row, unknown_precision
from roofcast.data.errors import SchemaError
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "hogeheer_strix_halo" / "data"
ACCELERATOR: Final = "amd-strix-halo-128gb"

MODELS: Final = {
    "Qwen3.6 35B-A3B": "Qwen/Qwen3.6-35B-A3B",
    "Qwen3.5 35B-A3B": "Qwen/Qwen3.5-35B-A3B",
    "Qwen3-Coder 30B-A3B": "Qwen/Qwen3-30B-A3B",
    "Qwen3-Next 80B-A3B": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Gemma 4 26B-A4B": "google/gemma-4-26B-A4B-it",
    "Llama 4 Scout 109B": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "Qwen3 0.6B": "Qwen/Qwen3-0.6B",
}
"""Qwen3-Coder 30B-A3B has the architecture of Qwen3 30B-A3B."""

N_PROMPT_TOKEN: Final = {"Qwen3.6 35B-A3B": 24.0, "Qwen3-Coder 30B-A3B": 41.0 / 3}
"""Mean prompt length of the multi-user runs: the server's log of one user counts 24 tokens, and 16, 13 and 12."""

N_GENERATED: Final = 128
"""Tokens that llama-bench generates by default."""

CACHES: Final = {"f16": "fp16", "q8_0": "int8", "q4_0": "int4"}


def build_hogeheer_strix_halo(root: Path) -> BuildResult:
    """Build the campaign from its four tables under `root`.

    Raises
    ------
    SchemaError
        If a file is missing.
    """
    builder = CampaignBuilder("hogeheer_strix_halo", MODELS)
    readers = {
        "multi_user.csv": _multi_user_rows,
        "filled_kv_decode.csv": _filled_cache_rows,
        "backend_crossover.csv": _crossover_rows,
        "benchmarks.csv": _headline_rows,
    }
    for name, read in readers.items():
        for reference, cells in _records(root / RAW / name):
            rejection = _rejection(cells)
            if rejection is not None:
                builder.reject(reference, *rejection)
            else:
                builder.add(reference, [_common(cells) | row for row in read(cells)])
    return builder.build()


def _records(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a table with their references; commas in the last column, the notes, are not quoted."""
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    with file.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream, restkey="more")
        for cells in reader:
            yield f"{file.name}:{reader.line_num}", cells


def _rejection(cells: dict[str, str]) -> tuple[str, str] | None:
    if cells["status"].startswith("failed"):
        return "no_outcome", "the run failed"
    if cells["tool"] == "Ollama":
        return "no_lengths", "the output length of the Ollama runs is not published"
    return unknown_precision(gguf_precision(cells["quant"]))


def _common(cells: dict[str, str]) -> Row:
    backend = "rocm" if "ROCm" in cells["backend"] else "vulkan"
    return {
        **BATCH, "model": cells["model"], "accelerator": ACCELERATOR, "tp": 1, "pp": 1, "dp": 1,
        "engine": "llama.cpp", "engine_version": cells["build_or_version"].partition(" ")[0],
        "weight_precision": gguf_precision(cells["quant"]), "date": cells["date"],
        "stack": f"hogeheer499/{backend}", "note": f"{cells['tool']}, {cells['quant']}",
    }  # fmt: skip


def _crossover_rows(cells: dict[str, str]) -> list[Row]:
    n_prompt, n_generated, speed = (number_of(cells[name]) for name in ("n_prompt", "n_gen", "tps"))
    return [prompt_row(n_prompt, speed) if n_prompt else generation_row(n_generated, speed)]


def _headline_rows(cells: dict[str, str]) -> list[Row]:
    prompt = prompt_row(number_of(cells["context_tokens"]), number_of(cells["pp_tps"]))
    return [prompt, generation_row(N_GENERATED, number_of(cells["tg_tps"]))]


def _filled_cache_rows(cells: dict[str, str]) -> list[Row]:
    n_input = number_of(cells["tokens_evaluated_mean"])
    return [
        {
            "n_input_token": n_input, "n_output_token": number_of(cells["n_predict"]), "length_variation": 0,
            "kv_precision": CACHES[cells["cache_type_k"]], "max_context_token": number_of(cells["ctx_size"]),
            "prefix_caching": "off", "load": "closed_loop", "n_request": number_of(cells["reps"]),
            "ttft_s": n_input / number_of(cells["prompt_eval_tps_mean"]),
            "tpot_s": 1 / number_of(cells["eval_tps_mean"]),
            "e2e_s": number_of(cells["request_wall_s_mean"]),
        }
    ]  # fmt: skip


def _multi_user_rows(cells: dict[str, str]) -> list[Row]:
    n_user, n_repeat = number_of(cells["parallel_slots"]), number_of(cells["reps"])
    common: Row = {
        "n_input_token": N_PROMPT_TOKEN[cells["model"]], "n_output_token": number_of(cells["tokens_per_request"]),
        "length_variation": 0, "concurrency": n_user, "n_request": n_user * n_repeat, "prefix_caching": "off",
        "max_num_seqs": n_user, "max_context_token": number_of(cells["context_per_slot"]), "chunk_size_token": 512,
        "n_failed": number_of(cells["errors"]), "note": _waves(cells),
    }  # fmt: skip
    mean = {
        "ttft_s": number_of(cells["mean_ttft_s"]),
        "itl_s": s_from_ms(number_of(cells["mean_itl_ms"])),
        "output_throughput_token_per_s": number_of(cells["aggregate_tps_mean"]),
    }
    p95 = {"ttft_s": number_of(cells["p95_ttft_s"]), "itl_s": s_from_ms(number_of(cells["p95_itl_ms"]))}
    return rows_by_statistic(common, {"mean": dict(mean), "p95": dict(p95)})


def _waves(cells: dict[str, str]) -> str:
    quant = re.sub(r"\s+", " ", cells["quant"])
    return f"llama-server, {quant}; {cells['reps']} waves"
