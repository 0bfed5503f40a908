from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.hogeheer_strix_halo import RAW, build_hogeheer_strix_halo
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules

TABLES = {
    "multi_user.csv": """\
date,status,backend,tool,build_or_version,model,quant,context_per_slot,parallel_slots,tokens_per_request,reps,\
aggregate_tps_mean,mean_ttft_s,p95_ttft_s,mean_itl_ms,p95_itl_ms,errors
2026-05-03,measured-local,Vulkan,llama-server,b9010 d05f,Qwen3.6 35B-A3B,Q4_K_M,4096,4,128,3,130.81,0.237,0.24,29,30,0
""",
    "filled_kv_decode.csv": """\
date,status,backend,tool,build_or_version,model,quant,cache_type_k,ctx_size,n_predict,reps,tokens_evaluated_mean,\
prompt_eval_tps_mean,eval_tps_mean,request_wall_s_mean
2026-05-03,measured-local,Vulkan,llama-server,b9010 d05f,Qwen3.6 35B-A3B,UD-Q4_K_M,q8_0,33920,128,2,32765,1000,50,35.3
""",
    "backend_crossover.csv": """\
date,status,backend,tool,build_or_version,model,quant,n_prompt,n_gen,tps
2026-05-07,measured-local,ROCm HIP,llama-bench,b8460 b1c7,Qwen3-Coder 30B-A3B,UD-Q4_K_XL,2048,0,1024
2026-05-07,failed-local,ROCm HIP,llama-bench,b8460 b1c7,Gemma 4 26B-A4B,UD-Q4_K_M,512,0,
""",
    "benchmarks.csv": """\
date,status,backend,tool,build_or_version,model,quant,prompt_tokens,context_tokens,pp_tps,tg_tps,notes
2026-05-07,measured-local,Vulkan,llama-bench,b9049 2496,gpt-oss-120b,MXFP4 MoE,,512,1024,50,clean, guarded
2026-05-07,measured-local,Ollama Vulkan,Ollama,0.23.1,Qwen3.6 35B-A3B,Q4_K_M,19,65536,158,50.5,warm
2026-05-07,measured-local,Vulkan,llama-bench,b9049 2496,Qwen3 0.6B,,,512,1024,50,
""",
}


@pytest.fixture
def result(tmp_path: Path) -> BuildResult:
    (tmp_path / RAW).mkdir(parents=True)
    for name, text in TABLES.items():
        (tmp_path / RAW / name).write_text(text)
    return build_hogeheer_strix_halo(tmp_path)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"no_outcome": 1, "no_lengths": 1, "unknown_precision": 1}


def test_users_send_at_once(result: BuildResult) -> None:
    row = one(result.rows, concurrency=4, statistic="mean")
    assert (row["load"], row["n_input_token"], row["n_request"]) == ("static_batch", 24, 12)
    assert (row["itl_s"], row["output_throughput_token_per_s"]) == (0.029, 130.81)
    assert one(result.rows, concurrency=4, statistic="p95")["itl_s"] == 0.03


def test_speeds_are_times(result: BuildResult) -> None:
    assert one(result.rows, stack="hogeheer499/rocm")["ttft_s"] == 2
    row = one(result.rows, kv_precision="int8")
    assert (row["ttft_s"], row["tpot_s"], row["load"]) == (32.765, 0.02, "closed_loop")


def test_headline_row_is_a_prompt_and_a_generation(result: BuildResult) -> None:
    rows = result.rows[result.rows["weight_precision"] == "fp4"]
    assert one(rows, n_input_token=512)["ttft_s"] == 0.5
    assert one(rows, n_output_token=128)["tpot_s"] == 0.02


def test_missing_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_hogeheer_strix_halo(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("hogeheer_strix_halo", build_hogeheer_strix_halo)
