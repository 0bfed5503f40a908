from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from builders.campaigns.silicon.geometry import Geometry
from builders.campaigns.silicon.scripts import SCRIPTS
from builders.campaigns.silicon.settings import COLUMNS, Settings, script_of, settings_of
from builders.campaigns.silicon.source import SourceRow
from builders.campaigns.silicon.speculation import Mtp
from roofcast.data.campaigns import load_campaigns
from roofcast.data.measurements.schema import CONTEXT_COLUMNS, WHOLE_COLUMNS

MODELS = {
    "deepseek": "deepseek-ai/DeepSeek-R1", "gpt-oss": "openai/gpt-oss-120b", "glm-5": "zhipuai/GLM-5",
    "kimi": "moonshotai/Kimi-K2.5", "minimax": "MiniMaxAI/MiniMax-M2.5", "qwen3.5": "Qwen/Qwen3.5-397B-A17B",
    "llama": "meta-llama/Llama-3.1-70B",
}  # fmt: skip


def a_source_row(scenario: str, day: str, concurrency: int = 64, lengths: str = "1024 1024") -> SourceRow:
    model, system, engine, precision = scenario.split()
    n_input, n_output = lengths.split()
    source = f"source_file=2026-04-06.csv; silicon_concurrency={concurrency}; measured={day}T00:00:00Z"
    cells = {
        "model_path": MODELS[model], "system": f"{system}_sxm", "backend": engine, "precision": precision,
        "isl": n_input, "osl": n_output, "mode": "agg", "silicon_data_source": source, "id": "x",
    }  # fmt: skip
    return SourceRow(1, "2026-04-06.csv", cells)


def settings(scenario: str, day: str, n: int = 8, mtp: Mtp = "no", *, dp: bool = False, **load: Any) -> Settings:
    geometry = Geometry(n, tp=1 if dp else n, dp=n if dp else 1)
    row = a_source_row(scenario, day, **load)
    return {name: value for name, value in settings_of(row, geometry, mtp).items() if value not in (None, "")}


def test_sglang_polls_less_often_from_16_requests() -> None:
    for concurrency, step in ((8, 10), (16, 30)):
        assert settings("deepseek b200 sglang fp4", "2026-03-25", concurrency=concurrency) == {
            "kv_precision": "fp8", "poll_interval_step": step, "stream_interval_token": 10, "chunk_size_token": 16384,
        }  # fmt: skip


def test_four_devices_have_smaller_chunks() -> None:
    row = settings("deepseek b200 sglang fp8", "2026-03-25", n=4)
    assert (row["poll_interval_step"], row["chunk_size_token"]) == (10, 8192)


@pytest.mark.parametrize(
    ("scenario", "day", "kv"),
    [
        ("gpt-oss b200 vllm fp4", "2025-11-02", "bf16"),  # the FP8 cache came with vLLM 0.11.2
        ("gpt-oss b200 vllm fp4", "2026-02-25", "fp8"),
        ("gpt-oss h200 trtllm fp4", "2025-11-02", "bf16"),
        ("gpt-oss b200 trtllm fp4", "2025-11-02", "fp8"),
        ("deepseek h200 sglang fp8", "2026-03-25", "bf16"),
        ("kimi b200 vllm fp4", "2026-03-11", "fp8"),  # left at auto: the checkpoint says so
        ("kimi b300 vllm fp4", "2026-04-03", "fp8"),  # no script of that day
        ("kimi h200 vllm int4", "2026-03-27", "bf16"),
        ("minimax b200 vllm fp8", "2026-03-11", "bf16"),
        ("minimax b200 vllm fp8", "2026-04-21", "fp8"),
        ("minimax b200 vllm fp8", "2026-04-03", None),  # between two versions of the script
        ("llama h100 vllm fp8", "2025-10-29", "fp8"),
    ],
)
def test_cache_precision_comes_from_script_of_the_day(scenario: str, day: str, kv: str | None) -> None:
    assert settings(scenario, day).get("kv_precision") == kv


@pytest.mark.parametrize(
    ("scenario", "day", "how", "chunk"),
    [
        ("deepseek b200 trtllm fp4", "2025-11-02", {}, 1152),
        ("deepseek b200 trtllm fp4", "2026-02-03", {}, 8192),
        ("deepseek b200 trtllm fp4", "2026-02-03", {"lengths": "8192 1024"}, 8320),
        ("deepseek h200 trtllm fp8", "2026-01-14", {"dp": True, "mtp": "yes"}, 1984),
        ("deepseek b200 trtllm fp4", "2026-02-06", {"dp": True, "mtp": "yes"}, 1152),
        ("deepseek b200 trtllm fp8", "2026-02-05", {"mtp": "yes"}, 1344),
        ("minimax b300 vllm fp4", "2026-04-21", {"lengths": "8192 1024"}, 16384),
    ],
)
def test_chunk_size_depends_on_load(scenario: str, day: str, how: dict[str, Any], chunk: int) -> None:
    assert settings(scenario, day, **how)["chunk_size_token"] == chunk


def test_trtllm_waits_only_with_data_parallel_attention() -> None:
    scenario = "deepseek b200 trtllm fp4"
    assert settings(scenario, "2026-02-03", dp=True)["attention_dp_wait_step"] == 60
    assert "attention_dp_wait_step" not in settings(scenario, "2026-02-03")
    assert settings("gpt-oss b200 trtllm fp4", "2026-02-05", dp=True)["attention_dp_wait_step"] == 50


def test_delayed_batching_only_for_short_prompts() -> None:
    scenario = "deepseek b200 trtllm fp8"
    assert settings(scenario, "2026-01-29", concurrency=64)["batch_wait_step"] == 40
    assert "batch_wait_step" not in settings(scenario, "2026-01-29", concurrency=32)
    assert settings("llama h200 trtllm fp8", "2025-10-29", n=4)["batch_wait_step"] == 20
    assert "batch_wait_step" not in settings("llama h200 trtllm fp8", "2025-10-29", n=8)


def test_settings_that_depend_on_unsure_speculation_are_blank() -> None:
    sure = settings("deepseek b200 sglang fp8", "2026-03-25", mtp="yes")
    unsure = settings("deepseek b200 sglang fp8", "2026-03-25", mtp="unsure")
    assert (sure["n_speculative_token"], sure["chunk_size_token"]) == (2, 16384)
    assert unsure == {"kv_precision": "fp8", "poll_interval_step": 30, "stream_interval_token": 30}


def test_laboratory_runs_have_no_script() -> None:
    row = a_source_row("deepseek b200 sglang fp8", "2026-03-25")
    assert script_of(SourceRow(1, "lab", row.cells), mtp=False) is None


def test_scripts_name_known_columns_and_days() -> None:
    assert set(COLUMNS) <= set(CONTEXT_COLUMNS)
    assert set(COLUMNS) - {"n_speculative_token"} <= set(WHOLE_COLUMNS)
    for script in SCRIPTS:
        assert all(dt.date.fromisoformat(day) for day in (script.since, script.until) if day)


def test_shipped_rows_of_inferencex_have_settings() -> None:
    rows = load_campaigns(["silicon"])
    is_inferencex = (rows["n_input_token"] % 100 != 0) & (rows["date"] != "") & (rows["n_accelerator"] <= 8)
    told = rows[is_inferencex & rows["n_prefill_accelerator"].isna()]
    assert (told["kv_precision"] != "").mean() > 0.9
    assert told["stream_interval_token"].notna().mean() > 0.8
    polled = told.loc[told["engine"] == "sglang", "poll_interval_step"]
    assert polled.notna().mean() > 0.8
