from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.trtllm_overview import build_trtllm_overview, parallelism_of
from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.validation import row_ids

ROOT = Path(__file__).parents[2] / "samples" / "trtllm_overview"


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_trtllm_overview(ROOT)


def of(rows: pd.DataFrame, model: str, load: str) -> pd.Series:
    return rows[(rows["model"] == model) & (rows["load"] == load)].iloc[0]


def test_rows_and_rejections_add_up(result: BuildResult) -> None:
    assert result.n_read == len(result.rows) + len(result.rejected) == 11
    reasons = result.rejected["reason"].value_counts().to_dict()
    assert reasons == {"duplicate": 2, "no_value": 1, "blog_table": 1}


def test_per_accelerator_figures_are_multiplied_and_totals_unchanged(result: BuildResult) -> None:
    assert of(result.rows, "EleutherAI/gpt-j-6b", "offline")["output_throughput_token_per_s"] == 40634
    gpt_oss = of(result.rows, "openai/gpt-oss-120b", "offline")
    assert gpt_oss["output_throughput_token_per_s"] == 2 * 25943
    assert gpt_oss["derived"] == ""
    assert of(result.rows, "Qwen/Qwen3-235B-A22B", "offline")["n_accelerator"] == 4


def test_named_precision_takes_precedence_over_mixed(result: BuildResult) -> None:
    rows = result.rows[result.rows["engine_version"] == "0.12.0"]
    assert rows["weight_precision"].tolist() == ["fp16"]


def test_static_batch_is_of_the_deployment(result: BuildResult) -> None:
    falcon = result.rows[result.rows["model"] == "tiiuae/falcon-180B"].set_index("date")
    assert falcon.loc["2023-10-18", "output_throughput_token_per_s"] == 2686
    assert falcon.loc["2023-12-04", "output_throughput_token_per_s"] == 8 * 180
    assert falcon.loc["2023-12-04", "concurrency"] == 128


def test_first_token_latency_has_one_output_token(result: BuildResult) -> None:
    row = of(result.rows, "EleutherAI/gpt-j-6b", "static_batch")
    assert (row["ttft_s"], row["n_output_token"], row["concurrency"]) == (0.007, 1, 1)


def test_unknown_parallelism_raises() -> None:
    with pytest.raises(SchemaError, match="PP4"):
        parallelism_of("PP4", 1)


def test_shipped_rows_are_distinct() -> None:
    rows = load_campaigns(["trtllm_overview"])
    assert len(rows) == len(set(row_ids(rows))) == 2197
    assert set(rows["load"]) == {"offline", "static_batch"}
