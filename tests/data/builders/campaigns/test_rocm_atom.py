from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.rocm_atom import RAW, acceptance_ratio, build_rocm_atom
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules

APRIL, MAY = 1_775_000_000_000, 1_778_000_000_000
EXTRA = (
    "Run: https://x/1 | GPU: AMD Instinct MI355X | VRAM: 288GB | ROCm: 7.2.3 | Docker: rocm/atom-dev:vllm-v0.19.0-n"
)


def a_run(
    name: str,
    backend: str = "ATOM",
    n: int = 8,
    *,
    lengths: tuple[int, int] = (1024, 512),
    figures: dict[str, float] | None = None,
    time_ms: int = MAY,
) -> list[object]:
    known = {"throughput (tok/s)": 1000.0, "Total Tput (tok/s)": 3000.0, "TTFT (ms)": 250.0, "TPOT (ms)": 3.5}
    extra = {"extra": EXTRA, "_gpu_count": n, "_tp": n}
    return [backend, name, "amd-mi355x-288gb", n, n, *lengths, 4, time_ms, known | extra | (figures or {}), "fced8b"]


def build(folder: Path, *runs: list[object]) -> BuildResult:
    (folder / RAW).parent.mkdir(parents=True)
    (folder / RAW).write_text("\n".join(map(json.dumps, runs)))
    return build_rocm_atom(folder)


def test_drawn_lengths_have_their_mean_and_variation(tmp_path: Path) -> None:
    row = one(build(tmp_path, a_run("DeepSeek-R1-0528")).rows, load="closed_loop")
    assert row["n_input_token"] == pytest.approx(0.9 * 1024)
    assert row["n_output_token"] == pytest.approx(0.9 * 512)
    assert row["length_variation"] == pytest.approx(0.2 / 12**0.5 / 0.9, rel=1e-5)
    assert (row["n_request"], row["concurrency"], row["kv_precision"]) == (40, 4, "fp8")
    assert (row["ttft_s"], row["tpot_s"], row["statistic"]) == (0.25, 0.0035, "mean")
    assert (row["date"], row["stack"], row["software"]) == (
        "2026-05-05",
        "rocm_vllm/atom",
        "rocm/atom-dev:vllm-v0.19.0-n ROCm 7.2.3",
    )


@pytest.mark.parametrize(("name", "n_request"), [("gpt-oss-120b-aw-tp8", 4.0), ("gpt-oss-120b", None)])
def test_fixed_lengths(tmp_path: Path, name: str, n_request: float | None) -> None:
    row = build(tmp_path, a_run(name, "ATOM-vLLM", lengths=(5000, 500))).rows.iloc[0]
    assert (row["n_input_token"], row["n_output_token"], row["length_variation"]) == (5000, 500, 0)
    assert pd.isna(row["n_request"]) if n_request is None else row["n_request"] == n_request


@pytest.mark.parametrize(
    ("name", "model", "precision", "split", "n_draft"),
    [
        ("DeepSeek-R1-0528 MTP3", "deepseek-ai/DeepSeek-R1-0528", "fp8", [8, 1, 0], 3),
        ("DeepSeek-R1-0528-MXFP4-MTP-MoEFP4", "deepseek-ai/DeepSeek-R1-0528", "fp4", [8, 1, 0], 0),
        ("DeepSeek-R1-0528-MXFP4-tp8-dp8-ep8", "deepseek-ai/DeepSeek-R1-0528", "fp4", [1, 8, 8], 0),
        ("GLM-5.2-FP8 DPA MTP1", "zai-org/GLM-5.2", "fp8", [1, 8, 0], 1),
        ("Qwen3.5-397B-A17B-tp8", "Qwen/Qwen3.5-397B-A17B", "bf16", [8, 1, 0], 0),
        ("gpt-oss-120b-aw-tp8", "openai/gpt-oss-120b", "fp4", [8, 1, 0], 0),
    ],
)
def test_name_states_settings(  # noqa: PLR0917
    tmp_path: Path, name: str, model: str, precision: str, split: list[int], n_draft: int
) -> None:
    row = build(tmp_path, a_run(name)).rows.iloc[0]
    assert (row["model"], row["weight_precision"]) == (model, precision)
    assert row[["tp", "dp", "ep"]].fillna(0).tolist() == split
    assert row["speculation"] == ("mtp" if n_draft else "")
    assert (0 if pd.isna(row["n_speculative_token"]) else row["n_speculative_token"]) == n_draft


def test_speculation_without_number_has_blank_tokens(tmp_path: Path) -> None:
    row = build(tmp_path, a_run("GLM-5.2-MXFP4-MTP-tp4", "ATOM-vLLM", n=4)).rows.iloc[0]
    assert (row["speculation"], row["engine"], row["engine_version"]) == ("mtp", "vllm", "0.19.0")
    assert pd.isna(row["n_speculative_token"])


def test_listed_settings_and_draft_tokens(tmp_path: Path) -> None:
    row = build(tmp_path, a_run("Qwen3-Next-80B-A3B-Instruct-FP8-mtp-tp1", "ATOM-vLLM", n=1)).rows.iloc[0]
    assert (row["n_speculative_token"], row["chunk_size_token"], row["max_context_token"]) == (1, 32768, 16384)
    assert row["kv_precision"] == ""


def test_acceptance_follows_from_tokens_per_step(tmp_path: Path) -> None:
    figures = {"Accept Length (tok/fwd)": 1.0 + 0.8 + 0.8**2 + 0.8**3}
    row = build(tmp_path, a_run("GLM-5.2-FP8 MTP3", figures=figures)).rows.iloc[0]
    assert row["acceptance_ratio"] == pytest.approx(0.8, abs=1e-4)
    assert acceptance_ratio(2.0, 1) == 1.0


def test_last_run_of_a_configuration_is_kept(tmp_path: Path) -> None:
    new = a_run("DeepSeek-R1-0528 MTP3", figures={"TPOT (ms)": 3.0})
    other = a_run("DeepSeek-V9")
    result = build(tmp_path, new, a_run("DeepSeek-R1-0528-mtp3", time_ms=APRIL), other)
    assert rules(result) == {"later_run": 1, "unknown_model": 1}
    assert result.rows["tpot_s"].tolist() == [0.003]
    assert result.n_read == 3


def test_malformed_line_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"dashboard_used.jsonl, line 2: must be a JSON list of backend"):
        build(tmp_path, a_run("gpt-oss-120b"), [1])


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        build_rocm_atom(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("rocm_atom", build_rocm_atom)
