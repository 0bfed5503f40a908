from pathlib import Path

import pytest

from roofcast.data.errors import SchemaError
from tests.data.importers.clients import by_statistic, rows, sample, with_changes

STAGE = "inference_perf/stage_0_lifecycle_metrics.json"


def test_a_stage_is_a_row_for_each_statistic() -> None:
    table = by_statistic(rows(sample(STAGE)))
    assert table.loc[["mean"]][["ttft_s", "tpot_s", "itl_s", "e2e_s"]].iloc[0].tolist() == [
        0.125,
        0.0125,
        0.0125,
        2.62,
    ]
    assert table.loc["p50", "ttft_s"] == 0.11
    expected = {
        "load": "open_loop", "request_rate": 4, "n_input_token": 1000, "n_output_token": 200, "n_request": 240,
        "n_failed": 2, "prefix_cache_ratio": 0.25, "output_throughput_token_per_s": 788.1,
    }  # fmt: skip
    assert {name: table.loc["mean", name] for name in expected} == expected


def test_the_summary_of_all_stages_asks_for_a_load(tmp_path: Path) -> None:
    file = with_changes(STAGE, tmp_path, {"load_summary.requested_rate": ...})
    with pytest.raises(SchemaError, match="concurrency: is not in the file"):
        rows(file)


def test_a_stage_in_which_every_request_failed(tmp_path: Path) -> None:
    file = with_changes(STAGE, tmp_path, {"successes.count": 0})
    row = rows(file, n_input_token=1000, n_output_token=200).iloc[0]
    assert row["status"] == "failed"
