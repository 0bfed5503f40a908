"""ROCm's vLLM development image: latency of static batches and offline throughput on eight MI300X, by revision."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of
from roofcast.data.units import s_from_ms

RAW: Final = Path("raw") / "rocm_vllm_dev_docker" / "mi300x_vllm_tidy.csv"

MODELS: Final = {
    "Llama 3.1 70B (amd/Llama-3.1-70B-Instruct-FP8-KV)": "meta-llama/Llama-3.1-70B",
    "Llama 3.1 405B (amd/Llama-3.1-405B-Instruct-FP8-KV)": "meta-llama/Llama-3.1-405B",
    "Llama 3.1 405B (amd/Llama-3.1-70B-Instruct-FP8-KV)": "meta-llama/Llama-3.1-405B",
}
"""The leading name is correct: early revisions repeat the 70B model's path after the 405B model's name."""

N_ACCELERATOR: Final = 8
_KEY_COLUMNS: Final = ("kind", "model", "batch", "isl", "osl", "num_prompts", "max_num_seqs")


def build_rocm_vllm(root: Path) -> BuildResult:
    """Build the campaign from its table under `root`.

    Raises
    ------
    SchemaError
        If the file is missing.
    """
    builder = CampaignBuilder("rocm_vllm", MODELS)
    records = list(records_of(root / RAW))
    n_in_revision = Counter((*_revision(cells), *_run_key(cells)) for _, cells in records)
    seen: set[tuple[str, ...]] = set()
    for reference, cells in records:
        run = _run_key(cells)
        n_value = n_in_revision[(*_revision(cells), *run)]
        rejection = _rejection(cells, n_value, (*run, cells["value"]) in seen)
        if rejection is not None:
            builder.reject(reference, *rejection)
            continue
        seen.add((*run, cells["value"]))
        builder.add(reference, [_row(cells)])
    return builder.build()


def _revision(cells: dict[str, str]) -> tuple[str, str]:
    return cells["first_seen"], cells["last_seen"]


def _run_key(cells: dict[str, str]) -> tuple[str, ...]:
    return tuple(MODELS.get(cells[name], cells[name]) for name in _KEY_COLUMNS)


def _rejection(cells: dict[str, str], n_in_revision: int, is_old: bool) -> tuple[str, str] | None:
    if n_in_revision > 1:
        return "asked_twice", f"this revision answers the question {n_in_revision} times: {cells['value']}"
    if not cells["value"] or cells["value"] == "TODO":
        return "no_outcome", cells["value"]
    if is_old:
        return "repeats_revision", f"{cells['value']} {cells['unit']} stands in an earlier revision"
    return None


def _row(cells: dict[str, str]) -> Row:
    value = number_of(cells["value"])
    row: Row = {
        "model": cells["model"], "accelerator": cells["gpu"], "n_accelerator": N_ACCELERATOR, "n_node": 1,
        "engine": "vllm", "weight_precision": cells["precision"].lower(), "tp": number_of(cells["tp"]), "pp": 1,
        "n_input_token": number_of(cells["isl"]), "n_output_token": number_of(cells["osl"]), "statistic": "mean",
        "length_variation": 0.0, "date": cells["first_seen"], "software": "ROCm vllm-dev image",
    }  # fmt: skip
    if cells["kind"] == "latency":
        latency_s = s_from_ms(value) if cells["unit"] == "ms" else value
        batch = number_of(cells["batch"])
        return row | {
            "load": "static_batch", "concurrency": batch, "e2e_s": latency_s,
            "output_throughput_token_per_s": batch * number_of(cells["osl"]) / latency_s,
            "derived": "output_throughput_token_per_s",
        }  # fmt: skip
    return row | {
        "load": "offline", "kv_precision": "fp8", "n_request": number_of(cells["num_prompts"]),
        "concurrency": number_of(cells["max_num_seqs"]), "output_throughput_token_per_s": value,
        "note": "concurrency is the engine's limit; tokens are taken to be output tokens",
    }  # fmt: skip
