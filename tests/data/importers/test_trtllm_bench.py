import pytest

from tests.data.importers.clients import by_statistic, rows, sample

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
