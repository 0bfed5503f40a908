"""Importer of llm-perf; the samples have made-up values in the layout of optimum-benchmark."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import detect_format, read_measurements
from tests.data.importers.clients import by_statistic, sample, with_changes

COMPLETE = "llm_perf/benchmark.json"
REPEATED = "llm_perf/benchmark_repeated.json"
FAILED = "llm_perf/benchmark_failed.json"
SEPARATE = "llm_perf/apart/benchmark_report.json"
SAMPLE_OVERRIDES = {
    "model": "ours/m", "accelerator": "nvidia-t4-16gb", "n_accelerator": 1, "concurrency": 2, "n_input_token": 64,
}  # fmt: skip


def rows(*files: Path, **overrides: object) -> pd.DataFrame:
    return read_measurements("llm_perf", files, "ours", overrides=overrides)


def values(name: str, phase: str) -> Any:
    return np.array(json.loads(sample(name).read_text())["report"][phase]["latency"]["values"])


def test_a_batch_has_all_statistics() -> None:
    table = by_statistic(rows(sample(COMPLETE)))
    assert list(table.index) == ["mean", "p50", "p90", "p95", "p99"]
    assert table.loc["mean", "ttft_s"] == pytest.approx(values(COMPLETE, "prefill").mean())
    assert table.loc["p90", "tpot_s"] == pytest.approx(np.percentile(values(COMPLETE, "decode") / 15, 90))
    assert table.loc["p99", "itl_s"] == pytest.approx(np.percentile(values(COMPLETE, "per_token"), 99))
    assert table.loc["p50", "nttft_s_per_token"] == pytest.approx(np.median(values(COMPLETE, "prefill")) / 64)
    assert table["e2e_s"].notna().tolist() == [True] + [False] * 4
    assert detect_format([sample(COMPLETE)]).name == "llm_perf"


def test_throughput_counts_first_tokens_and_prefill() -> None:
    row = rows(sample(COMPLETE)).iloc[0]
    e2e_s = (values(COMPLETE, "prefill") + values(COMPLETE, "decode")).mean()
    assert row["e2e_s"] == pytest.approx(e2e_s)
    assert row["output_throughput_token_per_s"] == pytest.approx(4 * 16 / e2e_s)
    assert row["total_throughput_token_per_s"] == pytest.approx(4 * (64 + 16) / e2e_s)
    assert row["request_throughput_per_s"] == pytest.approx(4 / e2e_s)
    throughputs = {f"{name}_token_per_s" for name in ("output_throughput", "total_throughput")}
    assert set(str(row["derived"]).split()) == {"e2e_s", "power_w", "request_throughput_per_s", *throughputs}


def test_memory_and_power_are_summed_over_accelerators() -> None:
    row = rows(sample(COMPLETE)).iloc[0]
    assert row["memory_byte"] == pytest.approx((16800 + 900) * 1e6)
    assert row["power_w"] == pytest.approx(300)


def test_the_configuration_is_read() -> None:
    row = rows(sample(COMPLETE)).iloc[0]
    assert (row["load"], row["concurrency"], row["n_input_token"], row["n_output_token"]) == (
        "static_batch",
        4,
        64,
        16,
    )
    assert (row["model"], row["accelerator"]) == ("meta-llama/Llama-3.1-8B-Instruct", "nvidia-a100-sxm-80gb")
    assert (row["n_accelerator"], row["tp"], row["weight_precision"], row["activation_precision"]) == (
        1,
        1,
        "bf16",
        "bf16",
    )
    assert (row["engine"], row["engine_version"], row["software"]) == (
        "transformers",
        "4.49.0",
        "optimum-benchmark 0.5.0",
    )
    assert (row["n_request"], row["n_failed"]) == (12, 0)


def test_repeated_gaps_yield_no_itl_and_a_measured_e2e_is_read() -> None:
    table = by_statistic(rows(sample(REPEATED)))
    assert table["itl_s"].isna().all()
    assert table["tpot_s"].notna().all()
    assert table.loc["p95", "e2e_s"] == pytest.approx(np.percentile(values(REPEATED, "generate"), 95))
    assert "e2e_s" not in str(table.loc["mean", "derived"])


def test_the_default_output_length_follows_from_the_throughput() -> None:
    row = rows(sample(REPEATED)).iloc[0]
    assert (row["n_output_token"], row["weight_precision"], row["activation_precision"]) == (12, "int4", "fp16")
    assert row["note"] == "quantised by gptq"


@pytest.mark.parametrize(
    ("scheme", "settings", "precision"),
    [
        ("awq", {"bits": 4}, "int4"),
        ("bnb", {"load_in_8bit": True}, "int8"),
        ("bnb", {"load_in_8bit": False, "load_in_4bit": True}, "int4"),
        ("torchao", {"quant_type": "int8_weight_only"}, "int8"),
        ("fbgemm_fp8", {}, "fp8"),
        ("aqlm", {"bits": 2}, ""),
        ("own", {}, ""),
    ],
)
def test_the_quantisation_scheme_determines_the_weight_precision(
    tmp_path: Path, scheme: str, settings: dict[str, Any], precision: str
) -> None:
    backend = {"config.backend.quantization_scheme": scheme, "config.backend.quantization_config": settings}
    assert set(rows(with_changes(COMPLETE, tmp_path, backend))["weight_precision"]) == {precision}


def test_device_ids_determine_the_number_of_accelerators(tmp_path: Path) -> None:
    two = rows(with_changes(COMPLETE, tmp_path, {"config.backend.device_ids": "0,1"})).iloc[0]
    assert two["n_accelerator"] == 2
    assert math.isnan(two["tp"])
    all_devices = rows(with_changes(COMPLETE, tmp_path, {"config.backend.device_ids": None})).iloc[0]
    assert all_devices["n_accelerator"] == 2
    processor = rows(with_changes(COMPLETE, tmp_path, {"config.backend.device": "cpu"})).iloc[0]
    assert (processor["accelerator"], processor["n_accelerator"]) == ("AMD EPYC 7742 64-Core Processor", 1)


def test_eager_attention_is_no_flash_attention(tmp_path: Path) -> None:
    assert rows(sample(COMPLETE))["flash_attention"].all()
    assert not rows(with_changes(COMPLETE, tmp_path, {"config.backend.attn_implementation": "eager"}))[
        "flash_attention"
    ].any()


@pytest.mark.parametrize(
    ("trace", "status"),
    [("torch.OutOfMemoryError: CUDA out of memory.", "out_of_memory"), ("KeyError: 'x'", "failed")],
)
def test_a_report_of_an_exception_is_a_row_without_outcomes(tmp_path: Path, trace: str, status: str) -> None:
    table = rows(with_changes(FAILED, tmp_path, {"report.traceback": trace}))
    assert table["status"].tolist() == [status]
    assert table["ttft_s"].isna().all()
    assert table["n_output_token"].tolist() == [64]


def test_the_configuration_of_a_report_is_read_from_its_folder() -> None:
    row = rows(sample(SEPARATE).parent).iloc[0]
    assert (row["concurrency"], row["n_output_token"], row["engine"]) == (2, 8, "transformers")
    assert {"tpot_s", "e2e_s"} <= set(row["derived"].split())


def test_a_report_without_configuration_needs_overrides() -> None:
    with pytest.raises(SchemaError, match=r"benchmark_report\.json: model: is not in the file; .*--set model="):
        rows(sample(SEPARATE))
    row = rows(sample(SEPARATE), **SAMPLE_OVERRIDES).iloc[0]
    assert (row["n_output_token"], row["concurrency"], row["n_accelerator"]) == (8, 2, 1)


def test_each_run_of_a_folder_is_read_once(tmp_path: Path) -> None:
    for run in ("a", "b"):
        shutil.copytree(sample(SEPARATE).parent, tmp_path / run)
    shutil.copy(sample(COMPLETE), tmp_path / "a" / "benchmark.json")
    table = rows(tmp_path)
    assert table[table["statistic"] == "mean"]["concurrency"].tolist() == [4, 2]


def test_a_configuration_without_a_report_is_refused() -> None:
    file = sample("llm_perf/apart/benchmark_config.json")
    assert detect_format([file]).name == "llm_perf"
    with pytest.raises(SchemaError, match=r"prefill\.latency: no such field: this is no report"):
        rows(file)


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"report.prefill.latency": None}, "report.prefill.latency", "no such field"),
        ({"report.prefill.latency.mean": math.nan}, "report.prefill.latency.mean", "must be a finite number"),
        ({"report.decode.latency.p95": "1"}, "report.decode.latency.p95", "must be a finite number"),
        ({"report.decode.latency.unit": "h"}, "report.decode.latency.unit", "must be one of ns, us, ms, s"),
        ({"report.decode.latency.mean": 0.0}, "report.decode.throughput.value", "gives 0 tokens with its latency"),
        ({"report.decode.throughput.value": 3.0}, "report.decode.throughput.value", "where the batch has 60 after"),
        ({"report.decode.throughput.unit": "samples/s"}, "report.decode.throughput.unit", "must be tokens/s"),
        ({"report.decode.memory.unit": "GB"}, "report.decode.memory.unit", "must be MB, got 'GB'"),
        ({"report.prefill.energy.unit": "J"}, "report.prefill.energy.unit", "must be kWh, got 'J'"),
        ({"config.scenario.name": "training"}, "config.scenario.name", "must be inference, got 'training'"),
        ({"config.backend.task": "image-to-text"}, "config.backend.task", "must be one of text-generation"),
        ({"config.scenario.generate_kwargs.num_beams": 4}, "config.scenario.generate_kwargs.num_beams", "must be 1"),
        ({"config.backend.device_ids": "all"}, "config.backend.device_ids", "must be numbers of devices such as 0,1"),
        ({"config.environment.gpu": "T4"}, "config.environment.gpu", "must be an array"),
        ({"config.backend": []}, "config.backend", "must be an object, got an array"),
        ({"config.backend.model": "@x"}, "model", "must not begin with"),
    ],
)
def test_an_invalid_report_is_refused_with_its_field(
    tmp_path: Path, changes: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(SchemaError, match=problem) as caught:
        rows(with_changes(COMPLETE, tmp_path, changes))
    assert (caught.value.field, caught.value.source) == (field, "benchmark.json")


def test_different_devices_are_refused(tmp_path: Path) -> None:
    changes = {"config.environment.gpu": ["Tesla T4", "NVIDIA A10G"], "config.backend.device_ids": "0,1"}
    with pytest.raises(
        SchemaError, match=r"config\.environment\.gpu: must be of one kind, got Tesla T4, NVIDIA A10G"
    ):
        rows(with_changes(COMPLETE, tmp_path, changes))
    one = rows(with_changes(COMPLETE, tmp_path, changes | {"config.backend.device_ids": "1"}))
    assert set(one["accelerator"]) == {"nvidia-a10g-24gb"}


def test_milliseconds_in_place_of_seconds_are_refused(tmp_path: Path) -> None:
    raw = json.loads(sample(COMPLETE).read_text())["report"]
    in_ms = {
        f"report.{phase}.latency.{name}": raw[phase]["latency"][name] * 1000
        for phase in ("prefill", "decode")
        for name in ("mean", "p50", "p90", "p95", "p99")
    }
    with pytest.raises(SchemaError, match=r"report\.decode\.throughput\.value: gives 60000 tokens with its latency"):
        rows(with_changes(COMPLETE, tmp_path, in_ms))


def test_numbers_whose_product_overflows_are_refused(tmp_path: Path) -> None:
    huge = {"report.decode.throughput.value": 1e308, "report.decode.latency.mean": 1e308}
    with pytest.raises(SchemaError, match="n_output_token"):
        rows(with_changes(REPEATED, tmp_path, huge))
