"""Importer of InferenceMAX results; the samples have made-up values in the layout of the public results."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import detect_format, read_measurements
from tests.data.importers.clients import by_statistic, sample, with_changes

SINGLE = "inferencemax/agg_single_node.json"
SPLIT = "inferencemax/agg_disaggregated.json"
EARLY = "inferencemax/agg_dsr1_1k8k.json"


def rows(file: Path, **overrides: object) -> pd.DataFrame:
    return read_measurements("inferencemax", [file], "ours", overrides=overrides)


def write_early_result(folder: Path, changes: dict[str, Any], name: str = "agg_dsr1_1k8k.json") -> Path:
    results = json.loads(sample(EARLY).read_text())
    results[0] |= changes
    file = folder / name
    file.write_text(json.dumps([{k: v for k, v in r.items() if v is not ...} for r in results]))
    return file


def test_the_statistics_of_a_result_are_in_seconds() -> None:
    table = by_statistic(rows(sample(SINGLE)))
    raw = json.loads(sample(SINGLE).read_text())
    assert list(table.index) == ["mean", "p50", "p90", "p99"]
    for statistic, name in (("mean", "mean"), ("p50", "median"), ("p90", "p90"), ("p99", "p99")):
        for column, key in (("ttft_s", "ttft"), ("tpot_s", "tpot"), ("itl_s", "itl"), ("e2e_s", "e2el")):
            assert table.loc[statistic, column] == raw[f"{name}_{key}"]
    assert detect_format([sample(SINGLE)]).name == "inferencemax"


def test_figures_per_accelerator_are_multiplied_by_the_accelerators() -> None:
    row = rows(sample(SINGLE)).iloc[0]
    raw = json.loads(sample(SINGLE).read_text())
    assert row["output_throughput_token_per_s"] == raw["output_tput_per_gpu"] * 4
    assert row["total_throughput_token_per_s"] == raw["tput_per_gpu"] * 4
    assert row["power_w"] == 3250
    assert row["derived"] == ""


def test_mean_lengths_are_shorter_than_nominal_ones() -> None:
    row = rows(sample(SINGLE)).iloc[0]
    assert (row["n_input_token"], row["n_output_token"]) == (7372.8, 921.6)
    assert row["note"] == "nominal lengths 8192 and 1024"
    renamed = {"n_input_token:7372.8": 8192, "n_output_token:921.6": 1024}
    assert rows(sample(SINGLE), **renamed).iloc[0]["n_output_token"] == 1024
    with pytest.raises(SchemaError, match=r"n_output_token: is '921\.6' in the file, but is set to '1024\.0'"):
        rows(sample(SINGLE), n_output_token=1024)


def test_a_disaggregated_result_divides_by_the_accelerators_of_each_part() -> None:
    row = rows(sample(SPLIT)).iloc[0]
    raw = json.loads(sample(SPLIT).read_text())
    assert (row["n_accelerator"], row["n_prefill_accelerator"], row["n_decode_accelerator"]) == (24, 8, 16)
    assert row["output_throughput_token_per_s"] == raw["output_tput_per_gpu"] * 16
    assert row["total_throughput_token_per_s"] == raw["tput_per_gpu"] * 24
    assert (row["engine"], row["speculation"], row["accelerator"]) == ("trtllm", "mtp", "nvidia-gb200")
    assert math.isnan(row["tp"])
    assert math.isnan(row["itl_s"])
    assert "prefill: 2 x TP 4, EP 4, data-parallel attention; decode: 1 x TP 16" in row["note"]


def test_the_split_of_an_early_disaggregated_result_follows_from_its_throughputs(tmp_path: Path) -> None:
    raw = json.loads(sample(SPLIT).read_text())
    fields = {
        k: v for k, v in raw.items() if not k.startswith(("prefill_", "decode_", "num_", "is_", "disagg", "spec"))
    }
    file = tmp_path / "agg.json"
    file.write_text(json.dumps(fields | {"tp": 24, "ep": 1, "mtp": "on", "dp_attention": "true"}))
    row = rows(file).iloc[0]
    assert (row["n_prefill_accelerator"], row["n_decode_accelerator"], row["speculation"]) == (8, 16, "mtp")
    file.write_text(json.dumps(fields | {"tp": 24, "tput_per_gpu": 1e308}))
    with pytest.raises(SchemaError, match="tput_per_gpu: fits no whole number"):
        rows(file)
    file.write_text(json.dumps(fields | {"tp": 25}))
    with pytest.raises(SchemaError, match=r"agg\.json: tput_per_gpu: fits no whole number of decode accelerators"):
        rows(file)


def test_an_aggregated_deployment_over_nodes_is_read(tmp_path: Path) -> None:
    raw = json.loads(sample(SPLIT).read_text())
    total, output = raw["tput_per_gpu"] * 24, raw["output_tput_per_gpu"] * 16
    figures = {"tput_per_gpu": total / 8, "output_tput_per_gpu": output / 8, "input_tput_per_gpu": ...}
    changes = {"num_decode_gpu": 0, "disagg": False, "decode_num_workers": 0, **figures}
    row = rows(with_changes(SPLIT, tmp_path, changes)).iloc[0]
    assert (row["n_accelerator"], row["tp"], row["dp"], row["ep"], row["moe_tp"]) == (8, 1, 8, 4, 1)
    assert row["output_throughput_token_per_s"] == pytest.approx(output)
    assert math.isnan(row["n_decode_accelerator"])
    with pytest.raises(SchemaError, match=r"num_prefill_gpu: must be workers x TP x PP x CP = 8, got 9"):
        rows(with_changes(SPLIT, tmp_path, changes | {"num_prefill_gpu": 9}))


def test_the_lengths_of_early_results_are_in_the_file_name() -> None:
    table = rows(sample(EARLY))
    assert table["concurrency"].tolist() == [8] * 3 + [16] * 3
    assert set(table["n_input_token"]) == {921.6}
    assert set(table["n_output_token"]) == {7372.8}
    assert table["itl_s"].notna().tolist() == [False] * 3 + [True] * 3
    assert table["accelerator"].unique().tolist() == ["nvidia-h200-sxm-141gb", "amd-mi300x-192gb"]


def test_without_lengths_in_the_file_name_they_must_be_set(tmp_path: Path) -> None:
    file = write_early_result(tmp_path, {}, "results.json")
    with pytest.raises(
        SchemaError, match=r"results\.json: \[0\]: n_input_token: is not in the file; .* --set n_output_token=128"
    ):
        rows(file)
    assert rows(file, n_input_token=922, n_output_token=7373)["n_output_token"].iloc[0] == 7373


def test_pipeline_and_context_parallelism_add_accelerators(tmp_path: Path) -> None:
    raw = json.loads(sample(SINGLE).read_text())
    halves = {key: raw[key] / 2 for key in raw if key.endswith("tput_per_gpu")}
    row = rows(with_changes(SINGLE, tmp_path, halves | {"pp": 2, "pcp_size": 1})).iloc[0]
    assert (row["n_accelerator"], row["pp"], row["cp"]) == (8, 2, 1)


def test_an_unknown_runner_is_the_accelerator_until_it_is_replaced(tmp_path: Path) -> None:
    file = with_changes(SINGLE, tmp_path, {"hw": "cluster:ours"})
    assert set(rows(file)["accelerator"]) == {"cluster:ours"}
    overrides = {"accelerator:cluster:ours": "amd-mi355x-288gb"}
    assert set(rows(file, **overrides)["accelerator"]) == {"amd-mi355x-288gb"}


def test_mixed_accelerators_are_refused(tmp_path: Path) -> None:
    file = with_changes(SPLIT, tmp_path, {"prefill_hw": "h200", "decode_hw": "b200"})
    with pytest.raises(SchemaError, match="decode_hw: must be the accelerator of the prefill, got nvidia-b200"):
        rows(file)
    with pytest.raises(SchemaError, match="disagg: must be true where 16 accelerators decode"):
        rows(with_changes(SPLIT, tmp_path, {"disagg": False}))


def test_milliseconds_in_place_of_seconds_are_refused(tmp_path: Path) -> None:
    raw = json.loads(sample(EARLY).read_text())[0]
    in_ms = {k: v * 1000 for k, v in raw.items() if k.endswith(("_ttft", "_tpot", "_itl", "_e2el"))}
    without = {k: ... for k in raw if k.endswith("_intvty")}
    with pytest.raises(SchemaError, match=r"agg_dsr1_1k8k\.json: \[0\]: e2e_s: .* are seconds and milliseconds"):
        rows(write_early_result(tmp_path, in_ms | without))


def test_errors_name_the_entry_of_a_list(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"agg_dsr1_1k8k\.json: \[0\]\.p99_ttft: must be a finite number"):
        rows(write_early_result(tmp_path, {"p99_ttft": -1}))
