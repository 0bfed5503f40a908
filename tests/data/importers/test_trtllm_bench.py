from pathlib import Path

import pytest

from tests.data.importers.clients import by_statistic, rows, sample, with_changes

CELLS = {
    "model": "meta-llama/Llama-3.3-70B-Instruct", "n_accelerator": 2, "engine": "trtllm", "tp": 2, "pp": 1,
    "engine_version": "1.3.0rc12", "weight_precision": "fp4", "kv_precision": "fp8", "concurrency": 31.2,
    "n_input_token": 1024, "n_output_token": 512, "chunk_size_token": 8192, "max_num_seqs": 512, "n_request": 256,
    "gpu_memory_utilization": 0.9,
}  # fmt: skip


@pytest.mark.parametrize("name", ["report.json", "printed.log"])
def test_a_report_is_a_row_for_each_statistic(name: str) -> None:
    accelerator = None if name == "report.json" else "NVIDIA B200"
    table = by_statistic(
        rows(sample(f"trtllm_bench/{name}"), model=None, n_accelerator=None, accelerator=accelerator)
    )
    assert {column: table.loc["mean", column] for column in CELLS} == CELLS
    assert set(table["accelerator"]) == {"NVIDIA B200"}
    assert table.loc[["mean"]][["ttft_s", "tpot_s", "e2e_s"]].iloc[0].tolist() == pytest.approx(
        [0.16, 0.009608, 5.07]
    )
    assert table.loc[["p99"]][["ttft_s", "tpot_s", "e2e_s"]].iloc[0].tolist() == pytest.approx([0.42, 0.0103, 5.6])
    assert table.loc["mean", "output_throughput_token_per_s"] == 3150.77


def test_speculation_is_kept() -> None:
    table = rows(sample("trtllm_bench/report.json"), model=None, n_accelerator=None, accelerator=None)
    columns = ["speculation", "acceptance_length", "draft_acceptance_ratio"]
    assert table.iloc[0][columns].tolist() == ["eagle", 2.2, 0.4]


@pytest.mark.parametrize(
    ("weights", "activations", "precision"),
    [
        (None, "bfloat16", "bf16"),
        ("FP8", "bfloat16", "fp8"),
        ("W4A16_AWQ", "float16", "int4"),
        ("NEW", "float16", ""),
    ],
)
def test_the_precision_of_the_weights(tmp_path: Path, weights: str | None, activations: str, precision: str) -> None:
    changes = {"engine.quantization": weights, "engine.dtype": activations}
    file = with_changes("trtllm_bench/report.json", tmp_path, changes)
    row = rows(file, model=None, n_accelerator=None, accelerator=None).iloc[0]
    assert row["weight_precision"] == precision
    assert ("quantization NEW" in row["note"]) == (weights == "NEW")


@pytest.mark.parametrize(("written", "share"), [(0.85, 0.85), ("85.00%", 0.85), (90, 0.9)])
def test_the_share_of_the_memory_is_read_as_share_or_percentage(
    tmp_path: Path, written: object, share: float
) -> None:
    file = with_changes("trtllm_bench/report.json", tmp_path, {"world_info.kv_cache_percentage": written})
    row = rows(file, model=None, n_accelerator=None, accelerator=None).iloc[0]
    assert row["gpu_memory_utilization"] == pytest.approx(share)


def test_a_run_without_streaming_has_the_latency_of_requests(tmp_path: Path) -> None:
    file = with_changes("trtllm_bench/report.json", tmp_path, {"streaming_metrics": ...})
    row = rows(file, model=None, n_accelerator=None, accelerator=None).iloc[0]
    assert row["e2e_s"] == 5.07
    assert row[["ttft_s", "tpot_s"]].isna().all()
