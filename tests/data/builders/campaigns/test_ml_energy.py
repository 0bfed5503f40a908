from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.ml_energy import RAW, build_ml_energy
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules


def a_configuration(n: int = 1, dp: int = 1, ep: int = 1) -> dict[str, Any]:
    return {
        "gpu_model": "B200", "num_gpus": n, "max_num_seqs": 8, "avg_batch_size": 7.5, "avg_output_len": 5000.0,
        "avg_power_watts": 320.0, "output_throughput_tokens_per_sec": 234.0, "median_itl_ms": 33.0,
        "p90_itl_ms": 50.0, "p95_itl_ms": 57.0, "p99_itl_ms": 68.0,
        "output_length_distribution": {"bins": [0.0, 2000.0, 4000.0], "counts": [1, 3]},
        "parallelization": {"data_parallel": dp, "expert_parallel": ep, "tensor_parallel": 1, "notes": ""},
    }  # fmt: skip


def build(folder: Path, *configurations: dict[str, Any], model: str = "Qwen/Qwen3-14B", **cells: str) -> BuildResult:
    (folder / RAW).mkdir(parents=True, exist_ok=True)
    document = {"model_id": model, "weight_precision": "bfloat16", "task": "gpqa", "configurations": configurations}
    (folder / RAW / f"{len(list((folder / RAW).iterdir()))}.json").write_text(json.dumps(document | cells))
    return build_ml_energy(folder)


def test_mean_has_power_and_percentiles_have_gaps(tmp_path: Path) -> None:
    rows = build(tmp_path, a_configuration()).rows
    assert rows["statistic"].tolist() == ["mean", "p50", "p90", "p95", "p99"]
    mean, median = one(rows, statistic="mean"), one(rows, statistic="p50")
    assert (mean["power_w"], mean["output_throughput_token_per_s"]) == (320, 234)
    assert (median["itl_s"], median["stack"]) == (0.033, "ml_energy/b200")
    assert rows.loc[rows["statistic"] != "mean", "power_w"].isna().all()
    assert (mean["concurrency"], mean["max_num_seqs"], mean["n_output_token"]) == (7.5, 8, 5000)
    assert mean["n_input_token"] == pytest.approx(841.15 / 4, rel=1e-5)


def test_histogram_gives_number_and_variation_of_outputs(tmp_path: Path) -> None:
    row = build(tmp_path, a_configuration()).rows.iloc[0]
    assert row["n_request"] == 4
    assert row["length_variation"] == pytest.approx(866.025 / 2500, rel=1e-5)


@pytest.mark.parametrize(("dp", "split"), [(1, [4, 1, 4]), (4, [1, 4, 4])])
def test_attention_is_tensor_parallel_unless_data_parallel(tmp_path: Path, dp: int, split: list[int]) -> None:
    run = a_configuration(n=4, dp=dp, ep=4)
    row = build(tmp_path, run, model="Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", weight_precision="fp8").rows.iloc[0]
    assert row[["tp", "dp", "ep"]].tolist() == split
    assert (row["weight_precision"], row["accelerator"]) == ("fp8", "nvidia-b200-sxm-180gb")


def test_tasks_without_lengths_are_rejected(tmp_path: Path) -> None:
    build(tmp_path, a_configuration(), a_configuration(), task="lm-arena-chat")
    result = build(tmp_path, a_configuration())
    assert rules(result) == {"no_lengths": 2}
    assert result.n_read == 3


def test_malformed_and_missing_files_raise_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="has no files"):
        build_ml_energy(tmp_path)
    (tmp_path / RAW).mkdir(parents=True)
    (tmp_path / RAW / "a.json").write_text("[]")
    with pytest.raises(SchemaError, match=r"a.json.*must be a JSON object with configurations"):
        build_ml_energy(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("ml_energy", build_ml_energy)
