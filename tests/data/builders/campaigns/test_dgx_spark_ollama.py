from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.dgx_spark_ollama import FILE, build_dgx_spark_ollama
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules

HEADER = (
    "model,think,ttft_s,prompt_eval_count,prompt_eval_duration_s,eval_count,eval_duration_s,decode_tokens_per_s,"
    "wall_latency_s,prompt_name"
)
LINES = (
    "gpt-oss:20b,False,0.7,640.0,0.5,100.0,2.0,50.0,3.0,grid",
    "gpt-oss:20b,False,0.9,640.0,0.5,300.0,6.0,50.0,7.0,grid",
    "qwen3.5:122b,False,28.7,640.0,2.0,100.0,5.0,20.0,34.0,grid",
    "qwen3.5:9b,False,0.3,134.0,0.2,12.0,0.2,60.0,0.5,simple",
    "qwen3.5:9b,True,,,,,,,300.0,grid",
    "qwen3.5:2b,True,0.3,134.0,0.2,120.0,2.0,60.0,2.5,grid",
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    root = tmp_path_factory.mktemp("ollama")
    (root / FILE).parent.mkdir(parents=True)
    (root / FILE).write_text("\n".join([HEADER, *LINES]))
    return build_dgx_spark_ollama(root)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"short_answer": 1, "timed_out": 1, "unknown_precision": 1}
    assert result.n_read == 6


def test_repeats_are_one_row_of_means(result: BuildResult) -> None:
    row = one(result.rows, model="openai/gpt-oss-20b")
    assert (row["n_output_token"], row["n_request"], row["weight_precision"]) == (200, 2, "fp4")
    assert (row["tpot_s"], row["ttft_s"], row["e2e_s"]) == (0.02, 0.8, 5)


def test_loading_of_weights_is_no_first_token(result: BuildResult) -> None:
    row = one(result.rows, model="Qwen/Qwen3.5-122B-A10B")
    assert row[["ttft_s", "e2e_s"]].isna().all()
    assert (row["tpot_s"], row["weight_precision"]) == (0.05, "int4")


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_dgx_spark_ollama(tmp_path)
