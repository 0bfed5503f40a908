from __future__ import annotations

import csv
from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.threads import TABLES
from builders.campaigns.threads_vllm import TABLE, build_threads_vllm
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules

COLUMNS = (
    "model", "gpu", "n_accelerator", "engine", "weight_precision", "kv_precision", "n_input_token",
    "n_output_token", "concurrency", "request_rate", "n_request", "load", "statistic", "ttft_s", "tpot_s",
    "output_throughput_token_per_s", "eager", "chunked_prefill", "prefix_caching", "speculation", "date",
    "source_url", "stack", "note", "doubt",
)  # fmt: skip

RUN = {
    "model": "Qwen/Qwen3-14B", "gpu": "RTX 5090", "n_accelerator": "1", "engine": "vllm", "weight_precision": "int4",
    "n_input_token": "1000", "n_output_token": "200", "concurrency": "8", "n_request": "64", "load": "closed_loop",
    "statistic": "mean", "ttft_s": "0.1", "tpot_s": "0.01", "output_throughput_token_per_s": "700",
    "date": "2025-07-04", "source_url": "https://github.com/vllm-project/vllm/issues/1#c2", "stack": "someone-5090",
}  # fmt: skip


def write_table(root: Path, name: str, *rows: dict[str, str]) -> None:
    (root / TABLES).mkdir(parents=True, exist_ok=True)
    with (root / TABLES / name).open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)


def build(root: Path, *rows: dict[str, str]) -> BuildResult:
    write_table(root, TABLE, *rows)
    return build_threads_vllm(root)


def test_statistics_of_a_run_are_its_rows(tmp_path: Path) -> None:
    median = {"statistic": "p50", "ttft_s": "0.09"}
    result = build(tmp_path, RUN, RUN | median, RUN | {"concurrency": "16"})
    assert result.n_read == 3
    row = one(result.rows, concurrency=8, statistic="p50")
    assert (row["ttft_s"], row["stack"], row["load"]) == (0.09, "someone/5090", "closed_loop")
    assert row.isna()["output_throughput_token_per_s"]
    assert one(result.rows, concurrency=8, statistic="mean")["output_throughput_token_per_s"] == 700
    assert row["note"] == "vllm-project/vllm/issues/1"


def test_burst_is_an_offline_throughput(tmp_path: Path) -> None:
    burst = RUN | {"load": "burst", "concurrency": ""}
    result = build(tmp_path, burst | {"statistic": "p50"}, burst | {"statistic": "p99"})
    row = one(result.rows, load="offline")
    assert (row["statistic"], row["output_throughput_token_per_s"], result.n_read) == ("mean", 700, 2)


def test_settings_are_columns(tmp_path: Path) -> None:
    note = "max-num-seqs 32, max-model-len 4096, max-num-batched-tokens 8192, LoRA rank 64, 4 Spark nodes"
    switches = {"eager": "true", "chunked_prefill": "true", "prefix_caching": "false", "speculation": "mtp 5"}
    row = build(tmp_path, RUN | switches | {"note": note}).rows.iloc[0]
    assert (row["max_num_seqs"], row["max_context_token"], row["chunk_size_token"]) == (32, 4096, 8192)
    assert (row["lora_rank"], row["n_node"], row["n_speculative_token"]) == (64, 4, 5)
    assert (row["graphs"], row["chunked_prefill"], row["prefix_caching"], row["speculation"]) == (
        "off", "on", "off", "mtp",
    )  # fmt: skip


def test_rejections_by_rule(tmp_path: Path) -> None:
    result = build(
        tmp_path,
        RUN | {"doubt": "card not told, taken as one"},
        RUN | {"n_output_token": ""},
        RUN | {"weight_precision": "", "doubt": "weight precision not told"},
        RUN | {"gpu": "H800 or H200 (which not told)"},
    )
    assert rules(result) == {"doubtful": 1, "no_lengths": 1, "unknown_precision": 1, "unknown_accelerator": 1}


def test_rigs_of_one_owner_share_its_name(tmp_path: Path) -> None:
    rows = build(tmp_path, RUN | {"stack": "tt-n300"}, RUN | {"stack": "tt-p150x4"}).rows
    assert set(rows["stack"]) == {"tenstorrent/n300", "tenstorrent/p150x4"}


def test_missing_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_threads_vllm(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("threads_vllm", build_threads_vllm)
