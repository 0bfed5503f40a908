"""Predictions follow physics: better parts, fewer bits, more accelerators, shorter prompts, fewer users."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofcast.serving.composition import Service
from roofcast.serving.predict.question_rows import columns_from_rows
from roofcast.serving.predict.row_answers import PredictOptions, answer_columns

ROUGH = {"tpot_s": 1.25, "ttft_s": 1.3}
"""Ratio up to which a measurement may say otherwise: TTFT with weights in the host was seldom measured, and TPOT of a
small model on eight accelerators neither."""

BASE = {"accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 8, "tp": 8, "weight_precision": "fp8"}
FOUR = {"n_accelerator": 4, "tp": 4}
PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"accelerator": "nvidia-h200-sxm-141gb"}),
    ({"accelerator": "nvidia-h200-sxm-141gb"}, {"accelerator": "nvidia-b200-sxm-180gb"}),
    ({"accelerator": "nvidia-b200-sxm-180gb"}, {"accelerator": "nvidia-b300-sxm-270gb"}),
    ({"accelerator": "nvidia-gb200", **FOUR}, {"accelerator": "nvidia-gb300", **FOUR}),
    ({"accelerator": "amd-mi300x-192gb"}, {"accelerator": "amd-mi325x-256gb"}),
    ({"accelerator": "amd-mi350x-288gb"}, {"accelerator": "amd-mi355x-288gb"}),
    ({"weight_precision": "bf16"}, {}),
    ({"cpu_offload_gib": 2}, {}),
    ({"cpu_offload_gib": 4}, {"cpu_offload_gib": 2}),
    ({"accelerator": "nvidia-b200-sxm-180gb"}, {"accelerator": "nvidia-b200-sxm-180gb", "weight_precision": "fp4"}),
    ({"n_accelerator": 1, "tp": 1}, FOUR),
    (FOUR, {}),
    ({"model": "Qwen/Qwen3-32B"}, {"model": "Qwen/Qwen3-8B"}),
]


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n_input_token=st.integers(50, 8000), n_output_token=st.integers(50, 1000),
    concurrency=st.integers(1, 64), engine=st.sampled_from(["vllm", "sglang"]),
    model=st.sampled_from(["Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B"]),
)  # fmt: skip
def test_better_is_not_slower(service: Service, **question: Any) -> None:
    fewer = {"concurrency": max(question["concurrency"] // 2, 1)}
    shorter = {"n_input_token": question["n_input_token"] // 2}
    pairs = [*PAIRS, ({}, fewer), ({}, shorter)]
    rows = [BASE | question | change for pair in pairs for change in pair]
    result = answer_columns(columns_from_rows(rows), PredictOptions(service.active_model.bundle, service.catalog))
    assert set(result["status"]) <= {"ok", "saturated"}, result["reason"].tolist()
    for metric, rough in ROUGH.items():
        worse, better = result[metric].reshape(-1, 2).T
        slower = np.flatnonzero(better > rough * worse)
        assert not len(slower), [(pairs[k], better[k] / worse[k]) for k in slower]
    tpot_s = dict(zip(range(len(rows)), result["tpot_s"], strict=True))
    one, four = (tpot_s[2 * PAIRS.index(({"n_accelerator": 1, "tp": 1}, FOUR)) + k] for k in (0, 1))
    assert four > one / 4


def test_a_model_that_does_not_fit_may_stay_in_the_host_where_the_engine_can(service: Service) -> None:
    lone = {
        "model": "Qwen/Qwen3-32B",
        "accelerator": "nvidia-l40s-48gb",
        "n_input_token": 1000,
        "n_output_token": 200,
    }
    engines = ["vllm", "llama.cpp", "trtllm"]
    rows = [lone | {"engine": engine, "weight_precision": "bf16"} for engine in engines]
    rows.append(rows[0] | {"cpu_offload_gib": 30})
    result = answer_columns(columns_from_rows(rows), PredictOptions(service.active_model.bundle, service.catalog))
    assert result["status"].tolist() == [*["does_not_fit"] * 3, "ok"]
    named = [[name for name in ("cpu_offload_gib", "n_gpu_layer") if name in text] for text in result["reason"]]
    assert named == [["cpu_offload_gib"], ["n_gpu_layer"], [], []]
    assert "over the bus" in result["reason"][3]
    assert "n_cpu_moe" not in result["reason"][1], "the model has no experts"
