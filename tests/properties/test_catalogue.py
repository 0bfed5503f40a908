"""Properties that the estimate has on models and accelerators of the catalogue."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.queries import Queries, descriptor_arrays

CATALOG = load_catalog()
SMALL, MIDDLE, LARGE = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-70B"
MOE = "Qwen/Qwen3-235B-A22B"
PLAIN: dict[str, Any] = {
    "n_accelerator": 1.0, "engine": "vllm", "n_input_token": 1000.0, "n_output_token": 200.0, "concurrency": 16.0,
    "statistic": "mean", "n_request": 1e9,
}  # fmt: skip
SERVERS = (
    "nvidia-a100-sxm-80gb", "nvidia-h100-sxm-80gb", "nvidia-h200-sxm-141gb", "nvidia-b200-sxm-180gb",
    "amd-mi300x-192gb", "amd-mi355x-288gb",
)  # fmt: skip


def asked(*questions: dict[str, Any]) -> tuple[Queries, Estimate]:
    """Return the descriptors and the estimate of questions, with `PLAIN` where they say nothing."""
    table = pd.DataFrame([PLAIN | question for question in questions])
    d = descriptor_arrays(describe(table, CATALOG.models, CATALOG.accelerators))
    return d, estimate(d, DEFAULT_COEFFICIENTS)


def over(name: str, values: tuple[float, ...], **cells: Any) -> Estimate:
    return asked(*({**cells, name: value} for value in values))[1]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llama.cpp"])
@pytest.mark.parametrize("concurrency", [1.0, 64.0])
def test_no_answer_is_faster_than_the_data_sheet(engine: str, concurrency: float) -> None:
    """A step reads the weights once and a prompt takes two operations a weight; a fifth is granted to the tables."""
    names = [name for name in CATALOG.accelerators if CATALOG.accelerators[name].memory_byte > 40e9]
    d, e = asked(
        *({"model": SMALL, "accelerator": name, "engine": engine, "concurrency": concurrency} for name in names)
    )
    read_s = d["model.n_param_dense"] * d["config.dense_byte_per_element"] / d["hardware.bandwidth_byte_per_s"]
    compute_s = 2 * d["model.n_param_linear"] * d["workload.n_input_token"] / d["hardware.dense_flop_per_s"]
    slow = [(name, a, b) for name, a, b in zip(names, e.tpot_s / read_s, e.ttft_s / compute_s, strict=True)]
    assert not [line for line in slow if min(line[1:]) < 0.8]


@pytest.mark.parametrize("accelerator", SERVERS)
@pytest.mark.parametrize("concurrency", [1.0, 64.0])
def test_four_accelerators_are_faster_than_one_and_less_than_four_times(accelerator: str, concurrency: float) -> None:
    model = SMALL if CATALOG.accelerators[accelerator].memory_byte < 100e9 else MIDDLE
    cells = {"model": model, "accelerator": accelerator, "concurrency": concurrency}
    _, e = asked(*({**cells, "n_accelerator": n, "tp": n} for n in (1.0, 4.0)))
    assert e.tpot_s[0] / 4 < e.tpot_s[1] < e.tpot_s[0]


@pytest.mark.parametrize("accelerator", SERVERS)
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("model", [SMALL, MOE])
def test_latency_grows_with_load(model: str, engine: str, accelerator: str) -> None:
    cells = {"model": model, "accelerator": accelerator, "engine": engine, "n_accelerator": 8.0, "tp": 8.0}
    loads = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
    e = over("concurrency", loads, **cells)
    for metric in (e.ttft_s, e.tpot_s, e.e2e_s, e.output_throughput_token_per_s):
        assert (np.diff(metric) > 0).all()


@pytest.mark.parametrize("accelerator", SERVERS)
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_a_token_of_a_prompt_costs_less_than_a_step_and_more_than_nothing(engine: str, accelerator: str) -> None:
    lengths = (1000.0, 2000.0, 4000.0, 8000.0)
    e = over("n_input_token", lengths, model=SMALL, accelerator=accelerator, engine=engine, concurrency=1.0)
    per_token = np.diff(e.prefill_s) / np.diff(lengths)
    batched = over("concurrency", (255.0, 256.0), model=SMALL, accelerator=accelerator, engine=engine).itl_s
    assert (per_token > 0).all()
    assert (per_token < e.itl_s[0]).all()
    assert per_token[0] > 0.1 * np.diff(batched)[0]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llama.cpp"])
@pytest.mark.parametrize("concurrency", [1.0, 32.0])
def test_a_larger_model_is_slower(engine: str, concurrency: float) -> None:
    cells = {"accelerator": "nvidia-h200-sxm-141gb", "n_accelerator": 4.0, "tp": 4.0, "engine": engine}
    _, e = asked(*({**cells, "model": model, "concurrency": concurrency} for model in (SMALL, MIDDLE, LARGE)))
    for metric in (e.ttft_s, e.tpot_s, e.e2e_s):
        assert (np.diff(metric) > 0).all()


@pytest.mark.parametrize(
    ("newer", "older"), [("nvidia-gb300", "nvidia-gb200"), ("amd-mi355x-288gb", "amd-mi350x-288gb")]
)
@pytest.mark.parametrize("precision", ["fp8", "fp4", "bf16"])
@pytest.mark.parametrize("concurrency", [1.0, 64.0])
def test_a_faster_part_is_not_slower(newer: str, older: str, precision: str, concurrency: float) -> None:
    cells = {"n_accelerator": 4.0, "tp": 4.0, "weight_precision": precision, "concurrency": concurrency}
    for model in (LARGE, MOE):
        _, e = asked(*({**cells, "model": model, "accelerator": name} for name in (newer, older)))
        assert e.tpot_s[0] <= e.tpot_s[1] * 1.01, model
        assert e.ttft_s[0] <= e.ttft_s[1] * 1.01, model


@pytest.mark.parametrize("accelerator", ["nvidia-rtx-4090-24gb", "nvidia-rtx-5090-32gb"])
def test_four_bit_floats_are_not_slower_than_integers_in_llama_cpp(accelerator: str) -> None:
    cells = {"model": "openai/gpt-oss-20b", "accelerator": accelerator, "engine": "llama.cpp", "concurrency": 1.0}
    _, e = asked(*({**cells, "weight_precision": precision} for precision in ("fp4", "int4")))
    assert e.ttft_s[0] <= e.ttft_s[1] * 1.01
    assert e.tpot_s[0] <= e.tpot_s[1] * 1.1  # attention and head have eight bits beside MXFP4


def test_a_newer_release_is_not_slower() -> None:
    cells = {"model": SMALL, "accelerator": "nvidia-h100-sxm-80gb", "concurrency": 64.0}
    _, e = asked(*({**cells, "engine_version": version} for version in ("0.4.0", "0.6.3", "0.10.0", "0.20.0", "")))
    assert (np.diff(e.tpot_s) <= 0).all()
    assert e.tpot_s[0] > 1.1 * e.tpot_s[-1]
