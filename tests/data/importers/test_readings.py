"""What changed values of a sample are read as, for all formats of JSON; errors are in `test_refusals`."""

import math
from pathlib import Path
from typing import Any, Final

import pytest

from tests.data.importers.clients import rows, sample, with_changes

VLLM: Final = "vllm_bench/default.json"
VLLM_RATE: Final = "vllm_bench/rate.json"
VLLM_DETAILED: Final = "vllm_bench/detailed.json"
SGLANG: Final = "sglang_bench/detailed.jsonl"
SWEEP: Final = "sglang_bench/sweep.jsonl"
GUIDELLM: Final = "guidellm/rate.json"
AIPERF: Final = "aiperf/concurrency_2.json"
SINGLE: Final = "inferencemax/agg_single_node.json"
SPLIT: Final = "inferencemax/agg_disaggregated.json"
LLM_PERF: Final = "llm_perf/benchmark.json"
LLM_PERF_REPEATED: Final = "llm_perf/benchmark_repeated.json"
LLAMA: Final = "llama_bench/two_3090.jsonl"
TRTLLM: Final = "trtllm_bench/report.json"
STAGE: Final = "inference_perf/stage_0_lifecycle_metrics.json"

NAMES_NONE: Final = {"accelerator": None, "n_accelerator": None, "model": None}
OVERRIDES: Final[dict[str, dict[str, Any]]] = {
    **{name: {"model": None} for name in (VLLM, VLLM_RATE, SWEEP, AIPERF)},
    VLLM_DETAILED: {"model": None, "accelerator": None},
    **dict.fromkeys((SINGLE, SPLIT, LLM_PERF, LLM_PERF_REPEATED, LLAMA, TRTLLM), NAMES_NONE),
}  # fmt: skip
"""Overrides that a sample does without; see `rows`."""

B: Final = "benchmarks.0."
FAST: Final = {
    f"{B}metrics.request_latency.successful.mean": 0.25,
    f"{B}metrics.time_to_first_token_ms.successful.mean": 150.0,
}
STRATEGY: Final = f"{B}config.strategy"
BACKEND: Final = "config.backend."
SCHEME, CONFIG = BACKEND + "quantization_scheme", BACKEND + "quantization_config"
QUANTISED: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("awq", {"bits": 4}, "int4"), ("bnb", {"load_in_8bit": True}, "int8"), ("fbgemm_fp8", {}, "fp8"),
    ("bnb", {"load_in_8bit": False, "load_in_4bit": True}, "int4"), ("aqlm", {"bits": 2}, ""), ("own", {}, ""),
    ("torchao", {"quant_type": "int8_weight_only"}, "int8"),
]  # fmt: skip
OLD: Final = dict.fromkeys(("aiperf_version", "schema_version", "inter_chunk_latency", "start_time"), ...)
OF_GENAI: Final = {"model": "m/x", "load": "closed_loop", "concurrency": 2, "software": "genai-perf"}
ANY_SERVER: Final = {"server_info": None, "engine": None}

READINGS: Final[list[tuple[str, dict[str, Any], dict[str, Any]]]] = [
    (VLLM_RATE, {"request_rate": 5.0, "max_concurrency": None}, {"load": "open_loop", "request_rate": 5.0}),
    (VLLM_RATE, {"request_rate": "5", "max_concurrency": 8},
     {"load": "open_loop", "request_rate": 5.0, "concurrency": None,
      "note": "at most 8 requests in flight; asked for 5 requests/s, reached 2.13"}),
    (VLLM_RATE, {"request_rate": "inf", "max_concurrency": 1}, {"load": "closed_loop", "concurrency": 1}),
    (VLLM_RATE, {"request_rate": math.inf, "max_concurrency": None}, {"load": "offline", "n_request": 12}),
    (VLLM_RATE, {"request_rate": ..., "max_concurrency": ...}, {"load": "offline", "concurrency": None}),
    (VLLM, {"failed": ..., "num_prompts": 15}, {"n_failed": 3}),
    (VLLM, {"spec_decode_acceptance_rate": 58.7, "spec_decode_acceptance_length": 2.76,
            "spec_decode_num_drafts": 14_840, "spec_decode_draft_tokens": 44_520},
     {"n_speculative_token": 3, "acceptance_length": 2.76, "draft_acceptance_ratio": 0.587}),
    (VLLM_DETAILED, {"backend": "tgi", **ANY_SERVER}, {"engine": "tgi"}),
    (VLLM_DETAILED, {"backend": "openai-chat", **ANY_SERVER}, {"engine": ""}),
    (SGLANG, {"backend": "sglang", **ANY_SERVER}, {"engine": "sglang"}),
    (SGLANG, {"backend": "sglang-oai", **ANY_SERVER}, {"engine": "sglang"}),
    (SGLANG, {"backend": "trt", **ANY_SERVER}, {"engine": "trtllm"}),
    (SGLANG, {"backend": "vllm", **ANY_SERVER}, {"engine": ""}),  # any server of OpenAI's API
    (SGLANG, {"accept_length": 2.5}, {"acceptance_length": 2.5}),
    (SGLANG, {"cache_report": {"total_prompt_tokens": 400, "total_cached_tokens": 100}},
     {"prefix_cache_ratio": 0.25}),
    (SWEEP, {}, {"model": "Qwen/Qwen2.5-7B-Instruct", "engine": "sglang", "engine_version": "0.5.23", "tp": 2,
                 "pp": 1, "dp": 1, "ep": 1, "prefix_caching": "off"}),
    (SWEEP, {"accept_length": 2.5, "server_info.speculative_algorithm": "EAGLE3",
             "server_info.speculative_num_steps": 3},
     {"acceptance_length": 2.5, "speculation": "eagle", "n_speculative_token": 3}),
    (GUIDELLM, {}, {"load": "open_loop", "request_rate": 4, "request_throughput_per_s": 3.75, "n_request": 31,
                    "n_failed": 0, "note": "served as tiny-llama; 2 requests were cut off at the end"}),
    (GUIDELLM, FAST | {STRATEGY: {"type_": "synchronous"}}, {"load": "closed_loop", "concurrency": 1}),
    (GUIDELLM, FAST | {STRATEGY: {"type_": "concurrent", "streams": 16}}, {"load": "closed_loop", "concurrency": 16}),
    (GUIDELLM, FAST | {STRATEGY: {"type_": "poisson", "rate": 3.8}}, {"load": "open_loop", "request_rate": 3.8}),
    (GUIDELLM, FAST | {STRATEGY: {"type_": "throughput", "max_concurrency": None}}, {"load": "offline"}),
    (AIPERF, OLD | {"input_config": {"model": ["m/x"], "perf_analyzer": {"stimulus": {"concurrency": 2}}}}, OF_GENAI),
    (AIPERF, OLD | {"input_config": {"model_names": ["m/x"], "concurrency": 2, "request_rate": None}}, OF_GENAI),
    (AIPERF, OLD | {"input_config": {"endpoint": {"model_names": ["m/x"]},
                                     "loadgen": {"concurrency": 2, "request_rate": None}}}, OF_GENAI),
    (AIPERF, OLD | {"input_config": {"models": {"items": [{"name": "m/x"}]}}}, OF_GENAI),
    ("aiperf/one_failed.json", {}, {"n_request": 8, "n_failed": 1}),
    (SINGLE, {}, {
        "model": "openai/gpt-oss-120b", "accelerator": "amd-mi355x-288gb", "engine": "vllm", "speculation": "",
        "engine_version": "0.21.0", "weight_precision": "fp4", "n_accelerator": 4, "tp": 4, "ep": 1, "moe_tp": 4,
        "dp": 1, "pp": 1, "load": "closed_loop", "concurrency": 32, "n_input_token": 7372.8, "n_output_token": 921.6,
        "note": "nominal lengths 8192 and 1024", "power_w": 3250, "derived": "",
    }),
    (SINGLE, {"dp_attention": True, "ep": 4}, {"tp": 1, "dp": 4, "ep": 4, "moe_tp": 1}),
    (SINGLE, {"avg_total_gpu_power_w": ...}, {"power_w": 3250}),
    (SINGLE, {"power_valid": 0}, {"power_w": None}),
    (SINGLE, {"power_valid": ...}, {"power_w": 3250}),
    (SINGLE, {"hw": "cluster:ours"}, {"accelerator": "cluster:ours"}),
    (SPLIT, {}, {"n_accelerator": 24, "n_prefill_accelerator": 8, "n_decode_accelerator": 16, "engine": "trtllm",
                 "speculation": "mtp", "accelerator": "nvidia-gb200", "tp": None, "itl_s": None}),
    (LLM_PERF, {}, {
        "load": "static_batch", "concurrency": 4, "n_input_token": 64, "n_output_token": 16, "tp": 1,
        "model": "meta-llama/Llama-3.1-8B-Instruct", "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": 1,
        "weight_precision": "bf16", "activation_precision": "bf16", "engine": "transformers", "n_request": 12,
        "engine_version": "4.49.0", "software": "optimum-benchmark 0.5.0", "n_failed": 0, "flash_attention": True,
        "memory_byte": (16800 + 900) * 1e6, "power_w": 300,
    }),
    (LLM_PERF, {BACKEND + "attn_implementation": "eager"}, {"flash_attention": False}),
    (LLM_PERF, {BACKEND + "device_ids": "0,1"}, {"n_accelerator": 2, "tp": None}),
    (LLM_PERF, {BACKEND + "device_ids": None}, {"n_accelerator": 2}),
    (LLM_PERF, {BACKEND + "device": "cpu"},
     {"accelerator": "AMD EPYC 7742 64-Core Processor", "n_accelerator": 1}),
    (LLM_PERF_REPEATED, {},
     {"n_output_token": 12, "weight_precision": "int4", "activation_precision": "fp16", "note": "quantised by gptq"}),
    *(
        (LLM_PERF, {SCHEME: scheme, CONFIG: settings}, {"weight_precision": precision})
        for scheme, settings, precision in QUANTISED
    ),
    (LLAMA, {"split_mode": "none"}, {"n_accelerator": 1, "tp": 1}),
    (LLAMA, {"split_mode": "row"}, {"n_accelerator": 2, "tp": 2}),
    (LLAMA, {"gpu_info": "", "backends": "Metal,BLAS", "cpu_info": "Apple M4 Max"}, {"accelerator": "Apple M4 Max"}),
    (LLAMA, {"type_v": "f16"}, {"kv_precision": "", "note": "CUDA, Q4_K_XL, cache of keys q8_0, of values f16"}),
    (LLAMA, {"n_gpu_layers": 20, "n_cpu_moe": 4}, {"n_gpu_layer": 20, "n_cpu_moe": 4}),
    (LLAMA, {"flash_attn": False}, {"flash_attention": False}),
    (TRTLLM, {}, {"speculation": "eagle", "acceptance_length": 2.2, "draft_acceptance_ratio": 0.4}),
    (TRTLLM, {"engine.quantization": None, "engine.dtype": "bfloat16"}, {"weight_precision": "bf16"}),
    (TRTLLM, {"engine.quantization": "FP8", "engine.dtype": "bfloat16"}, {"weight_precision": "fp8"}),
    (TRTLLM, {"engine.quantization": "W4A16_AWQ", "engine.dtype": "float16"}, {"weight_precision": "int4"}),
    (TRTLLM, {"engine.quantization": "NEW", "engine.dtype": "float16"}, {"weight_precision": ""}),
    (TRTLLM, {"world_info.kv_cache_percentage": 0.85}, {"gpu_memory_utilization": 0.85}),
    (TRTLLM, {"world_info.kv_cache_percentage": "85.00%"}, {"gpu_memory_utilization": 0.85}),
    (TRTLLM, {"world_info.kv_cache_percentage": 90}, {"gpu_memory_utilization": 0.9}),
    (TRTLLM, {"streaming_metrics": ...}, {"e2e_s": 5.07, "ttft_s": None, "tpot_s": None}),
    (STAGE, {"successes.prompt_tokens": ..., "successes.prompt_len": {"mean": 900.0}}, {"n_input_token": 900}),
    (STAGE, {"load_summary.concurrency": 16}, {"load": "closed_loop", "concurrency": 16}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "cells"), READINGS)
def test_a_sample_with_other_values_is_read_so(
    tmp_path: Path, name: str, changes: dict[str, Any], cells: dict[str, Any]
) -> None:
    file = with_changes(name, tmp_path, changes) if changes else sample(name)
    row = rows(file, **OVERRIDES.get(name, {})).iloc[0]
    read = {column: None if row[column] != row[column] else row[column] for column in cells}
    numbers = {column for column, cell in cells.items() if isinstance(cell, float | int)}
    assert {column: read[column] for column in cells.keys() - numbers} == {
        column: cells[column] for column in cells.keys() - numbers
    }
    assert [read[column] for column in sorted(numbers)] == pytest.approx([cells[c] for c in sorted(numbers)])
