import json
from pathlib import Path

import pytest

from roofcast.data.errors import SchemaError
from tests.data.importers.clients import by_statistic, rows, sample


def test_vllm_latency_is_that_of_a_batch_of_the_users_size() -> None:
    file = sample("vllm_batch/latency.json")
    table = by_statistic(rows(file, n_input_token=1024, n_output_token=128, concurrency=8))
    assert table["e2e_s"].to_dict() == pytest.approx(
        {"mean": 2.02, "p50": 2.02, "p90": 2.036, "p95": 2.038, "p99": 2.0396}
    )
    assert set(table["load"]) == {"static_batch"}
    with pytest.raises(SchemaError, match="n_input_token: is not in the file"):
        rows(file)


def test_vllm_throughput_is_that_of_an_offline_load() -> None:
    row = rows(sample("vllm_batch/throughput.json"), n_input_token=1000, n_output_token=200).iloc[0]
    assert (row["load"], row["n_request"], row["duration_s"]) == ("offline", 1000, 50)
    assert (row["total_throughput_token_per_s"], row["request_throughput_per_s"]) == (24_000, 20)


def test_sglang_one_batch_is_a_static_batch() -> None:
    table = rows(sample("sglang_batch/one_batch.jsonl"))
    means = table[table["statistic"] == "mean"]
    assert means["concurrency"].tolist() == [1, 8, 4]
    assert means["ttft_s"].tolist() == [0.045, 0.31, 0.18]
    assert means["tpot_s"].tolist() == pytest.approx([0.00724, 0.0079533, 0.0103150], rel=1e-4)
    assert means["acceptance_length"].iloc[2] == 2.4
    assert table.loc[table["statistic"] == "p50", "tpot_s"].tolist() == [0.0071, 0.0078]


def test_older_servers_of_batches_print_no_ttft(tmp_path: Path) -> None:
    line = {"batch_size": 16, "input_len": 1000, "output_len": 101, "latency": 5.0, "input_throughput": 32000.0,
            "overall_throughput": 3523.2, "acc_length": -1.0}  # fmt: skip
    (file := tmp_path / "result.jsonl").write_text(json.dumps(line))
    row = rows(file).iloc[0]
    assert (row["ttft_s"], row["tpot_s"], row["e2e_s"]) == (0.5, 0.045, 5.0)


def test_the_warm_up_of_a_printed_batch_is_no_run() -> None:
    table = by_statistic(rows(sample("sglang_batch/one_batch.log"), n_input_token=1024, n_output_token=16))
    assert table.loc[["mean"]][["ttft_s", "e2e_s", "concurrency"]].iloc[0].tolist() == [0.045, 0.154, 1]
    assert table.loc["p50", "tpot_s"] == 0.0071


@pytest.mark.parametrize("name", ["offline.jsonl", "offline.log"])
def test_sglang_offline_throughput(name: str) -> None:
    row = rows(sample(f"sglang_batch/{name}")).iloc[0]
    assert (row["load"], row["n_input_token"], row["n_output_token"]) == ("offline", 800, 200)
    assert row["output_throughput_token_per_s"] == 5000
