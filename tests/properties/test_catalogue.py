"""Properties that answers have on models and accelerators of the catalogue: of the estimate, and as shipped."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.pipeline import estimate_statistics
from roofcast.features.queries import descriptor_arrays
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.shipped import load_shipped, shipped_predictor

FloatArray = npt.NDArray[np.float64]
Answer = Callable[[pd.DataFrame], pd.DataFrame]
"""Function from descriptors to `METRICS` of each query."""

CATALOG = load_catalog()
SMALL, MIDDLE, LARGE = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-70B"
MOE = "Qwen/Qwen3-235B-A22B"
PLAIN: dict[str, Any] = {
    "n_accelerator": 1.0, "engine": "vllm", "n_input_token": 1000.0, "n_output_token": 200.0, "concurrency": 16.0,
    "statistic": "mean", "n_request": 1e9,
}  # fmt: skip
LATENCIES = ("ttft_s", "tpot_s", "e2e_s")
METRICS = (*LATENCIES, "output_throughput_token_per_s")
LOADS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
LENGTHS = (1000.0, 2000.0, 4000.0, 8000.0)
SIZES = (SMALL, MIDDLE, LARGE)

VENDORS = {
    "vllm": {"NVIDIA", "AMD", "Intel", "Google", "AWS", "Huawei"}, "sglang": {"NVIDIA", "AMD"},
    "trtllm": {"NVIDIA"}, "llama.cpp": {"NVIDIA", "AMD", "Apple"},
}  # fmt: skip
ROOMY = 24e9
"""Bytes of memory above which an accelerator holds the small model and some requests."""

SLOWER_AT_FOUR = {"intel-max-1550-128gb"}
"""Linked accelerators whose four are slower than one at the highest load: no measurement says so."""


def answer_by_core(X: pd.DataFrame) -> pd.DataFrame:
    d = descriptor_arrays(X)
    values = estimate_statistics(d, DEFAULT_COEFFICIENTS, estimate(d, DEFAULT_COEFFICIENTS))
    return pd.DataFrame({name: values[name] for name in METRICS}, index=X.index)


@functools.cache
def shipped() -> RoofcastPredictor:
    if shipped_predictor(INFERENCE_TARGET) is None:
        pytest.skip("the shipped predictor is of another layout than the code")
    return load_shipped(INFERENCE_TARGET).predictor


def answer_as_shipped(X: pd.DataFrame) -> pd.DataFrame:
    return shipped().predict_distribution(X, metrics=METRICS).median


def roomy(engine: str) -> list[str]:
    """Return the accelerators of an engine that hold the small model."""
    parts = CATALOG.accelerators.values()
    return [part.id for part in parts if part.memory_byte > ROOMY and part.vendor in VENDORS[engine]]


def describe_cells(*cells: dict[str, Any]) -> pd.DataFrame:
    """Return the descriptors of questions, with `PLAIN` where they say nothing."""
    return describe(pd.DataFrame([PLAIN | one for one in cells]), CATALOG.models, CATALOG.accelerators)


def ask(answer: Answer, engine: str, names: list[str], **values: Any) -> dict[str, FloatArray]:
    """Return the answers by metric, shape (n_accelerator, n_value); a value that is no tuple is that of all."""
    n_value = max(len(value) for value in values.values() if isinstance(value, tuple))
    cells = {name: value if isinstance(value, tuple) else (value,) * n_value for name, value in values.items()}
    rows = [
        {"model": SMALL, "engine": engine, "accelerator": part} | {name: of[i] for name, of in cells.items()}
        for part in names
        for i in range(n_value)
    ]
    table = answer(describe_cells(*rows))
    return {metric: table[metric].to_numpy().reshape(len(names), n_value) for metric in METRICS}


def break_bound(answer: Answer, engine: str, names: list[str]) -> FloatArray:
    """Return whether a step takes less than reading the weights, or a prompt than its operations, by a fifth."""
    X = describe_cells(*({"model": SMALL, "accelerator": name, "engine": engine} for name in names))
    read_s = X["model.n_param_dense"] * X["config.dense_byte_per_element"] / X["hardware.bandwidth_byte_per_s"]
    compute_s = 2 * X["model.n_param_linear"] * X["workload.n_input_token"] / X["hardware.dense_flop_per_s"]
    at = ask(answer, engine, names, concurrency=(1.0, 64.0))
    tpot, ttft = at["tpot_s"] / read_s.to_numpy()[:, None], at["ttft_s"] / compute_s.to_numpy()[:, None]
    return np.asarray((np.minimum(tpot, ttft) < 0.8).any(axis=1))


def break_speedup(answer: Answer, engine: str, names: list[str]) -> FloatArray:
    """Return whether four accelerators are not faster than one, or more than four times as fast.

    Beyond some requests, only with links between them: over PCIe the messages may take longer than they save.
    llama.cpp splits layers, not matrices, and is not judged.
    """
    if engine == "llama.cpp":
        return np.zeros(len(names), dtype=bool)
    is_broken = np.zeros(len(names), dtype=bool)
    is_linked = np.array([CATALOG.accelerators[name].link_domain_size >= 4 for name in names])
    is_known = np.isin(names, list(SLOWER_AT_FOUR))
    for concurrency in (1.0, 16.0, 64.0):
        one, four = ask(answer, engine, names, n_accelerator=(1.0, 4.0), tp=(1.0, 4.0), concurrency=concurrency)[
            "tpot_s"
        ].T
        is_broken |= (four <= one / 4) | ((four >= one) & ((concurrency <= 16) | is_linked & ~is_known))
    return is_broken


def break_load(answer: Answer, engine: str, names: list[str]) -> FloatArray:
    """Return whether a latency or the throughput does not grow with the requests in flight.

    As shipped, throughput may fall by a twentieth where requests wait for slots: corrections of TTFT are of its queue
    too. The trees of TPOT may undo .2 % of its growth.
    """
    is_broken = np.zeros(len(names), dtype=bool)
    is_large = np.array([CATALOG.accelerators[name].memory_byte > 70e9 for name in names])
    for model, n, holds in ((SMALL, 1.0, True), (SMALL, 4.0, True), (MOE, 8.0, is_large)):
        grown = ask(answer, engine, names, model=model, concurrency=LOADS, n_accelerator=n, tp=n)
        for metric in METRICS:
            least = 1.0 if answer is answer_by_core else 0.998 if metric in LATENCIES else 0.95
            is_broken |= holds & (grown[metric][:, 1:] <= least * grown[metric][:, :-1]).any(axis=1)
    return is_broken


def break_prompt(answer: Answer, engine: str, names: list[str]) -> FloatArray:
    """Return whether a token of a prompt costs nothing, a whole step, or a twentieth of what a request adds to it."""
    lone = ask(answer, engine, names, n_input_token=LENGTHS, concurrency=1.0)
    batched = ask(answer, engine, names, concurrency=(63.0, 64.0))["tpot_s"]
    per_token = np.diff(lone["ttft_s"], axis=1) / np.diff(LENGTHS)
    is_free = (per_token <= 0).any(axis=1) | (per_token[:, 0] < 0.05 * np.diff(batched, axis=1)[:, 0])
    return np.asarray(is_free | (per_token >= lone["tpot_s"][:, :1]).any(axis=1))


def break_size(answer: Answer, engine: str, names: list[str]) -> FloatArray:
    """Return whether a larger model is not slower, on accelerators that leave the largest room for all requests."""
    is_broken = np.zeros(len(names), dtype=bool)
    has_room = np.array([CATALOG.accelerators[name].memory_byte > 40e9 for name in names])
    for concurrency in (1.0, 32.0):
        grown = ask(answer, engine, names, model=SIZES, n_accelerator=8.0, tp=8.0, concurrency=concurrency)
        for metric in LATENCIES:
            is_broken |= has_room & (np.diff(grown[metric], axis=1) <= 0).any(axis=1)
    return is_broken


BREAKS = (break_bound, break_speedup, break_load, break_prompt, break_size)


@pytest.mark.parametrize("engine", VENDORS)
@pytest.mark.parametrize("answer", [answer_by_core, answer_as_shipped])
@pytest.mark.parametrize("is_broken", BREAKS)
def test_every_accelerator_of_the_catalogue_keeps_to_physics(
    engine: str, answer: Answer, is_broken: Callable[[Answer, str, list[str]], FloatArray]
) -> None:
    names = roomy(engine)
    assert [name for name, broken in zip(names, is_broken(answer, engine, names), strict=True) if broken] == []


def asked(*questions: dict[str, Any]) -> Estimate:
    """Return the estimate of questions, with `PLAIN` where they say nothing."""
    return estimate(descriptor_arrays(describe_cells(*questions)), DEFAULT_COEFFICIENTS)


@pytest.mark.parametrize(
    ("newer", "older"), [("nvidia-gb300", "nvidia-gb200"), ("amd-mi355x-288gb", "amd-mi350x-288gb")]
)
@pytest.mark.parametrize("precision", ["fp8", "fp4", "bf16"])
@pytest.mark.parametrize("concurrency", [1.0, 64.0])
def test_a_faster_part_is_not_slower(newer: str, older: str, precision: str, concurrency: float) -> None:
    cells = {"n_accelerator": 4.0, "tp": 4.0, "weight_precision": precision, "concurrency": concurrency}
    for model in (LARGE, MOE):
        e = asked(*({**cells, "model": model, "accelerator": name} for name in (newer, older)))
        assert e.tpot_s[0] <= e.tpot_s[1] * 1.01, model
        assert e.ttft_s[0] <= e.ttft_s[1] * 1.01, model


@pytest.mark.parametrize("accelerator", ["nvidia-rtx-4090-24gb", "nvidia-rtx-5090-32gb"])
def test_four_bit_floats_are_not_slower_than_integers_in_llama_cpp(accelerator: str) -> None:
    cells = {"model": "openai/gpt-oss-20b", "accelerator": accelerator, "engine": "llama.cpp", "concurrency": 1.0}
    e = asked(*({**cells, "weight_precision": precision} for precision in ("fp4", "int4")))
    assert e.ttft_s[0] <= e.ttft_s[1] * 1.01
    assert e.tpot_s[0] <= e.tpot_s[1] * 1.1  # attention and head have eight bits beside MXFP4


def test_a_newer_release_is_not_slower() -> None:
    cells = {"model": SMALL, "accelerator": "nvidia-h100-sxm-80gb", "concurrency": 64.0}
    e = asked(*({**cells, "engine_version": version} for version in ("0.4.0", "0.6.3", "0.10.0", "0.20.0", "")))
    assert (np.diff(e.tpot_s) <= 0).all()
    assert e.tpot_s[0] > 1.1 * e.tpot_s[-1]
