from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.inferencemax import FOLDER, build_inferencemax
from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import SchemaError
from roofcast.data.importers.inferencemax.vocabulary import n_decode_accelerator
from roofcast.data.measurements.validation import row_ids

ROOT = Path(__file__).parents[2] / "samples" / "inferencemax"


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return build_inferencemax(ROOT).rows


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT, tmp_path / "copy")
    return tmp_path / "copy"


def means(rows: pd.DataFrame, accelerator: str) -> pd.DataFrame:
    return rows[(rows["accelerator"] == accelerator) & (rows["statistic"] == "mean")].reset_index(drop=True)


def test_result_has_mean_median_and_99th_percentile(rows: pd.DataFrame) -> None:
    assert rows["statistic"].value_counts().to_dict() == {"mean": 5, "p50": 5, "p99": 5}
    assert rows.loc[rows["statistic"] != "mean", "output_throughput_token_per_s"].isna().all()


def test_throughput_is_of_the_deployment(rows: pd.DataFrame) -> None:
    published = json.loads((ROOT / FOLDER / "official_data_agg_dsr1_8k1k.json").read_text())
    result = next(r for r in published if r["hw"] == "mi325x")
    row = means(rows, "amd-mi325x-256gb").iloc[0]
    assert row["output_throughput_token_per_s"] == pytest.approx(result["output_tput_per_gpu"] * 8, rel=1e-5)
    assert row["ttft_s"] == pytest.approx(result["mean_ttft"], rel=1e-5)


def test_disaggregated_counts_derive_from_throughputs(rows: pd.DataFrame) -> None:
    both = means(rows, "nvidia-gb200")
    assert both["n_prefill_accelerator"].tolist() == [4, 4]
    assert both["n_decode_accelerator"].tolist() == [24, 24]
    assert sorted(both["speculation"]) == ["", "mtp"]
    assert both["tp"].isna().all()
    row = both.iloc[0]
    ratio = row["total_throughput_token_per_s"] / row["output_throughput_token_per_s"]
    assert ratio == pytest.approx(9, rel=0.05)  # 8k in, 1k out


def test_data_parallel_attention_has_no_tensor_parallelism(rows: pd.DataFrame) -> None:
    row = rows[(rows["engine"] == "trtllm") & (rows["dp"] > 1)].iloc[0]
    assert row["tp"] == 1
    assert row["dp"] == row["n_accelerator"]


def test_chunk_gaps_are_not_inter_token_latency(rows: pd.DataFrame) -> None:
    assert rows.loc[rows["engine"] == "trtllm", "itl_s"].isna().all()
    assert rows.loc[rows["accelerator"] == "amd-mi325x-256gb", "itl_s"].notna().all()


def test_logged_runs_have_lengths_and_counts(rows: pd.DataFrame) -> None:
    row = rows[rows["duration_s"].notna() & (rows["statistic"] == "mean")].iloc[0]
    assert (row["n_input_token"], row["n_output_token"]) == (925.644, 915.894)
    assert (row["n_request"], row["n_failed"], row["date"]) == (160, 0, "2025-11-11")
    assert row["ttft_s"] == pytest.approx(1.28782)


def test_inconsistent_throughputs_raise() -> None:
    with pytest.raises(SchemaError, match="whole number"):
        n_decode_accelerator({"tput_per_gpu": 15.0, "input_tput_per_gpu": 30.0, "output_tput_per_gpu": 10.0}, 10)


def test_file_name_without_lengths_raises(copy: Path) -> None:
    (copy / FOLDER / "official_data_agg_dsr1.json").write_text("[]")
    with pytest.raises(SchemaError, match="1k8k"):
        build_inferencemax(copy)


def test_run_name_without_configuration_raises(copy: Path) -> None:
    file = copy / FOLDER / "raw_runs_summary.jsonl"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"file": "run.json"}))
    with pytest.raises(SchemaError, match="line 1"):
        build_inferencemax(copy)


def test_shipped_rows_come_from_638_results() -> None:
    rows = load_campaigns(["inferencemax"])
    assert len(rows) == 3 * 638
    assert len(set(row_ids(rows))) == len(rows)
    assert rows["accelerator"].nunique() == 7


def test_per_accelerator_figures_multiplied_are_not_derived(rows: pd.DataFrame) -> None:
    assert set(rows["derived"]) == {""}
