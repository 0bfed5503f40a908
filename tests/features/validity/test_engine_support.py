import pytest

from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.catalog.support_rows import load_support, target_of
from roofcast.features.validity.engine_support import (
    Stack,
    measured_stacks,
    model_kinds,
    support_error,
    support_of,
    support_remark,
)

CATALOG = load_catalog()
PARTS = CATALOG.accelerators
T4, V100, A100, L40S = "nvidia-t4-16gb", "nvidia-v100-sxm2-32gb", "nvidia-a100-sxm-80gb", "nvidia-l40s-48gb"
H100, H200, B200 = "nvidia-h100-sxm-80gb", "nvidia-h200-sxm-141gb", "nvidia-b200-sxm-180gb"
PRO, MI300X, MI355X = "nvidia-rtx-pro-6000-blackwell-server", "amd-mi300x-192gb", "amd-mi355x-288gb"
LLAMA, QWEN, DSA, V4 = "llama-3.1-8b", "Qwen3-235B-A22B", "DeepSeek-V3.2", "DeepSeek-V4-Flash"
KIMI, GPT_OSS = "Kimi-K2.5", "gpt-oss-20b"

DOES_NOT_RUN = [
    ("vllm", T4, GPT_OSS, "fp4", "llama.cpp"),
    ("vllm", V100, GPT_OSS, "", "llama.cpp"),
    ("vllm", V100, LLAMA, "fp16", "vllm 0.19"),
    ("vllm", T4, "gemma-3-4b-it", "fp16", "llama.cpp"),
    ("vllm", T4, "gemma-2-9b", "fp16", "llama.cpp"),
    ("vllm", T4, "gemma-2-9b", "int4", "llama.cpp"),
    ("vllm", T4, "gemma-3-12b-it", "fp8", "llama.cpp"),
    ("vllm", T4, "gemma-4-12B-it", "fp16", "llama.cpp"),
    ("sglang", A100, QWEN, "fp8", "vllm"),
    ("sglang", "nvidia-rtx-3090-24gb", "MiniMax-M2", "", "vllm"),
    ("sglang", A100, "GLM-4.5-Air", "fp8", "vllm"),
    ("vllm", A100, V4, "", "llama.cpp"),
    ("vllm", L40S, V4, "", "llama.cpp"),
    ("trtllm", H200, V4, "", "vllm"),
    ("vllm", A100, DSA, "", "llama.cpp"),
    ("sglang", "nvidia-rtx-4090-24gb", "GLM-5", "fp8", "llama.cpp"),
    ("trtllm", A100, DSA, "int4", "llama.cpp"),
    ("trtllm", L40S, QWEN, "fp8", "vllm"),
    ("trtllm", PRO, "DeepSeek-V3.1", "fp8", "vllm"),
    ("trtllm", B200, KIMI, "", "vllm"),
    ("trtllm", H100, "Qwen3.8-27B", "", "vllm"),
    ("trtllm", MI300X, LLAMA, "", "vllm"),
    ("sglang", PRO, "Qwen3-32B", "int8", "fp8"),
    ("vllm", B200, "Qwen3-32B", "int8", "fp8"),
    ("sglang", MI300X, GPT_OSS, "", "vllm"),
    ("llama.cpp", H100, "DeepSeek-R1", "fp8", "vllm"),
    ("llama.cpp", "google-tpu-v6e", LLAMA, "", "vllm"),
    ("vllm", "aws-inferentia2", LLAMA, "", "vllm 0.16"),
    ("mlx-lm", V100, LLAMA, "", "llama.cpp"),
    ("llama.cpp", L40S, LLAMA, "awq", "vllm"),
    ("vllm", L40S, LLAMA, "exl3", "exllama-v3"),
    ("vllm", L40S, LLAMA, "gguf", "llama.cpp"),
    ("trtllm", H100, "LFM2-24B-A2B", "", "vllm"),
    ("trtllm", H100, "Kimi-Linear-48B-A3B-Instruct", "", "vllm"),
]
RUNS = [
    ("vllm", A100, QWEN, "fp8", ""),
    ("vllm", H100, DSA, "", ""),
    ("vllm", PRO, DSA, "", "0.33.0"),
    ("vllm", A100, GPT_OSS, "", "0.11.0"),
    ("vllm", T4, "gemma-3-4b-it", "", ""),
    ("vllm", V100, LLAMA, "fp16", "0.19.1"),
    ("vllm", "amd-rx-7900-xtx-24gb", LLAMA, "", ""),
    ("vllm", "intel-gaudi3-128gb", LLAMA, "", ""),
    ("vllm-ascend", "huawei-ascend-910b2-64gb", LLAMA, "", ""),
    ("trtllm", L40S, LLAMA, "fp8", ""),
    ("tensorrt-llm", B200, LLAMA, "fp4", ""),
    ("llama.cpp", A100, DSA, "int4", ""),
    ("llama.cpp", "apple-m4-max-128gb", GPT_OSS, "", ""),
    ("llama.cpp", H100, "DeepSeek-R1", "", ""),
    ("mlx-lm", "apple-m4-max-128gb", LLAMA, "int4", ""),
    ("mlx-lm", "nvidia-rtx-4090-24gb", LLAMA, "int4", ""),
    ("ollama", "nvidia-rtx-4090-24gb", LLAMA, "", ""),
    ("atom", MI355X, "DeepSeek-R1", "fp4", ""),
]
UNKNOWN = [
    ("vllm", "google-tpu-v4", LLAMA, "bf16", ""),
    ("vllm", "apple-m4-max-128gb", LLAMA, "", ""),
    ("vllm", "tenstorrent-n300-24gb", LLAMA, "", ""),
    ("vllm", T4, "Qwen3.5-35B-A3B", "fp16", ""),
    ("trtllm", H200, KIMI, "", ""),
    ("homemade", H100, LLAMA, "", ""),
    ("trtllm", H100, "dots.llm1.inst", "", ""),
    ("vllm", V100, LLAMA, "fp16", "main 2026-07"),
]


def stack(engine: str, part: str, model: str, precision: str = "", version: str = "") -> Stack:
    return Stack(engine, PARTS[part], precision, CATALOG.model(model), version)


@pytest.mark.parametrize(("engine", "part", "model", "precision", "cure"), DOES_NOT_RUN)
def test_what_does_not_run_is_refused_with_a_source_and_the_nearest_that_runs(
    engine: str, part: str, model: str, precision: str, cure: str
) -> None:
    error = support_error(stack(engine, part, model, precision), PARTS.values())
    assert error is not None
    reason, _, nearest = error.problem.partition("; nearest that runs: ")
    assert "https://" in reason
    assert "2026-" in reason or "2025-" in reason
    assert cure in nearest


@pytest.mark.parametrize(
    ("case", "status"), [*((case, "runs") for case in RUNS), *((case, "unknown") for case in UNKNOWN)]
)
def test_what_runs_and_what_is_unknown_is_answered(case: tuple[str, ...], status: str) -> None:
    one = stack(*case)
    assert support_of(one).status == status
    assert support_error(one) is None
    assert bool(support_remark(one)) == (status == "unknown")


@pytest.mark.parametrize(
    ("kind", "engines"),
    [
        ("jamba", "vllm llama.cpp mlx-lm"),
        ("mamba2", "vllm sglang llama.cpp mlx-lm"),
        ("falcon_h1", "vllm sglang llama.cpp mlx-lm"),
        ("bamba", "llama.cpp"),
        ("zamba2", "vllm"),
        ("rwkv7", "llama.cpp mlx-lm"),
        ("olmo_hybrid", "vllm mlx-lm"),
    ],
)
def test_recurrent_models_run_by_the_engines_that_have_their_layers(kind: str, engines: str) -> None:
    model = CATALOG.model("Qwen3-Next-80B-A3B-Instruct").model_copy(update={"model_type": kind})
    searched = ("vllm", "sglang", "trtllm", "llama.cpp", "mlx-lm")
    runs = [name for name in searched if support_of(Stack(name, PARTS[H100], model=model)).status == "runs"]
    assert runs == engines.split()


@pytest.mark.parametrize(
    ("engine", "part", "model", "version", "status"),
    [
        ("vllm", PRO, DSA, "0.22.1", "does_not_run"),
        ("vllm", PRO, DSA, "0.32.0", "runs"),
        ("vllm", H100, V4, "0.19.0", "does_not_run"),
        ("vllm", H100, V4, "0.20.0", "runs"),
        ("vllm", H100, GPT_OSS, "0.10.0", "does_not_run"),
        ("vllm", H100, "Qwen3-Next-80B-A3B-Instruct", "0.10.0", "does_not_run"),
        ("mlx-lm", "nvidia-rtx-4090-24gb", LLAMA, "0.26.0", "does_not_run"),
        ("mlx-lm", "nvidia-rtx-4090-24gb", LLAMA, "0.28.0", "runs"),
        ("trtllm", V100, "llama-2-7b-hf", "0.13.0", "runs"),
        ("trtllm", V100, "llama-2-7b-hf", "1.2.0", "does_not_run"),
        ("sglang", T4, "qwen3-4b", "0.4.6", "runs"),
        ("sglang", T4, "qwen3-4b", "0.5.3", "does_not_run"),
    ],
)
def test_support_moves_with_the_version(engine: str, part: str, model: str, version: str, status: str) -> None:
    assert support_of(stack(engine, part, model, version=version)).status == status


@pytest.mark.parametrize(
    ("engine", "precision", "version", "part", "field"),
    [
        ("trtllm", "fp8", "", MI300X, "engine"),
        ("sglang", "fp16", "0.5.3", V100, "engine"),
        ("vllm", "fp16", "0.20.0", V100, "engine_version"),
        ("vllm", "bf16", "0.33.0", T4, "weight_precision"),
        ("trtllm", "fp8", "", A100, "weight_precision"),
    ],
)
def test_an_error_names_the_field(engine: str, precision: str, version: str, part: str, field: str) -> None:
    error = support_error(stack(engine, part, LLAMA, precision, version))
    assert error is not None
    assert error.field == field


def test_an_fp8_cache_needs_an_attention_that_stores_it() -> None:
    for part, status in ((A100, "does_not_run"), (L40S, "runs")):
        one = Stack("vllm", PARTS[part], "int4", CATALOG.model("Kimi-K2-Thinking"), kv_precision="fp8")
        assert support_of(one).status == status


def test_no_measured_row_is_of_a_stack_that_does_not_run() -> None:
    names = ["engine", "engine_version", "weight_precision", "kv_precision", "accelerator", "model"]
    rows = load_campaigns(CAMPAIGNS)[names].drop_duplicates().astype(str)
    refused = []
    for engine, version, precision, kv_precision, part, model in rows[rows["engine"] != ""].to_numpy().tolist():
        spec = CATALOG.models.get(model)
        error = support_error(Stack(engine, PARTS[part], precision, spec, version, kv_precision))
        refused += [(engine, version, precision, part, model, str(error))] if error else []
    assert refused == []


@pytest.mark.parametrize(
    ("version", "date", "model", "status"),
    [
        ("0.33.1", "", GPT_OSS, "runs"),
        ("", "2026-11-20", GPT_OSS, "runs"),
        ("", "2025-11-20", GPT_OSS, "does_not_run"),
        ("0.33.1", "", LLAMA, "does_not_run"),
    ],
)
def test_a_run_of_the_store_overrides_what_it_contradicts(version: str, date: str, model: str, status: str) -> None:
    precision = CATALOG.model(model).weight_precision
    run = ("vllm", version, T4, precision, CATALOG.model(model).id, date)
    measured = measured_stacks([run], PARTS, CATALOG.models)
    one = Stack("vllm", PARTS[T4], "fp4", CATALOG.model("gpt-oss-120b"), measured=measured)
    assert support_of(one).status == status


def test_every_accelerator_has_a_target_and_every_fact_a_source() -> None:
    assert [id_ for id_, part in PARTS.items() if not target_of(part)] == []
    assert all(row.source and row.date and row.targets for row in load_support())


def test_kinds_are_read_from_layers() -> None:
    own = CATALOG.model(DSA).model_copy(update={"model_type": "new", "id": "ours/new"})
    assert {"sparse_mla", "mla", "experts", "new"} <= model_kinds(own)
    assert support_of(Stack("vllm", PARTS[A100], "", own)).status == "does_not_run"
