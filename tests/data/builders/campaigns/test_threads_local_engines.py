from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.threads_local_engines import TABLE, build_threads_local_engines
from builders.campaigns.threads_vllm import TABLE as VLLM_TABLE
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules
from tests.data.builders.campaigns.test_threads_vllm import RUN as VLLM_RUN
from tests.data.builders.campaigns.test_threads_vllm import write_table

RUN = {
    "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "NVIDIA GeForce RTX 3090 Ti", "n_accelerator": "1",
    "engine": "ik_llama.cpp", "weight_precision": "int4", "n_input_token": "0", "n_output_token": "128",
    "concurrency": "1", "load": "static_batch", "statistic": "mean", "tpot_s": "0.01", "date": "2025-04",
    "source_url": "https://github.com/ikawrakow/ik_llama.cpp/pull/5", "stack": "ik ubergarm RTX 3090 Ti",
}  # fmt: skip


def build(root: Path, *rows: dict[str, str]) -> BuildResult:
    write_table(root, VLLM_TABLE, VLLM_RUN)
    write_table(root, TABLE, *rows)
    return build_threads_local_engines(root)


def test_last_run_stands_for_a_configuration(tmp_path: Path) -> None:
    result = build(tmp_path, RUN, RUN | {"tpot_s": "0.02", "note": "IQ4_KS"}, RUN | {"weight_precision": "fp16"})
    assert rules(result) == {"other_setting": 1}
    row = one(result.rows, weight_precision="int4")
    assert (row["tpot_s"], row["n_input_token"], row["stack"]) == (0.02, 1, "ubergarm/rtx_3090_ti")


def test_rejections_by_rule(tmp_path: Path) -> None:
    thread = {name: VLLM_RUN[name] for name in ("model", "source_url")}
    result = build(
        tmp_path,
        RUN | {"doubt": "GPU read from the text of the comment"},
        RUN | {"weight_precision": "int1"},
        RUN | thread,
        RUN | {"gpu": "NVIDIA GeForce RTX 3090 + CPU (part on CPU)"},
    )
    assert rules(result) == {
        "doubtful": 1, "unknown_precision": 1, "repeats_other_file": 1, "unknown_accelerator": 1,
    }  # fmt: skip


def test_speed_of_generation_is_no_throughput(tmp_path: Path) -> None:
    batch = RUN | {"n_input_token": "512", "ttft_s": "1"}
    speed = batch | {"output_throughput_token_per_s": "100.4"}
    rows = build(tmp_path, speed, batch | {"n_output_token": "64", "output_throughput_token_per_s": "40"}).rows
    assert rows["output_throughput_token_per_s"].fillna(0).tolist() == [0, 40]


@pytest.mark.parametrize(
    ("name", "gpu", "stack"),
    [
        ("NVIDIA GeForce RTX 3090 llama.cpp 7716", "NVIDIA GeForce RTX 3090", "ggml-org/rtx_3090"),
        ("tenstorrent Tenstorrent n300", "Tenstorrent n300", "tenstorrent/n300"),
        ("mlx-lm M4 Max 64GB", "Apple M4 Max", "ml-explore/apple_m4_max"),
        ("geerlingguy 43 NVIDIA GeForce RTX 4090 Vulkan", "NVIDIA GeForce RTX 4090", "geerlingguy/rtx_4090"),
    ],
)
def test_stack_is_owner_and_machine(tmp_path: Path, name: str, gpu: str, stack: str) -> None:
    assert build(tmp_path, RUN | {"stack": name, "gpu": gpu}).rows["stack"].tolist() == [stack]


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("threads_local_engines", build_threads_local_engines)
