"""Warnings about what a predictor has not learnt."""

from roofcast.training.drift.novelty import LearntNames, novelty_warnings
from tests.training.builders import measurements

LEARNT = LearntNames.of(
    measurements(
        {"engine": "vllm", "engine_version": "0.9.2"}, {"engine": "vllm", "engine_version": "0.10.0rc1"},
        {"engine": "vllm", "engine_version": "nightly"}, {"engine": "llama.cpp", "engine_version": "b6077"},
    )
)  # fmt: skip


def test_known_names_and_versions_give_no_warning() -> None:
    old = ({"engine": "vllm", "engine_version": text} for text in ("0.10.0", "0.8.5.post1", "", "nightly"))
    assert novelty_warnings(measurements(*old), LEARNT) == []


def test_a_newer_version_and_first_rows_are_named() -> None:
    rows = measurements(
        {"engine": "vllm", "engine_version": "v0.11.0"}, {"engine": "vllm", "engine_version": "v0.11.0", "tp": 1},
        {"engine": "llama.cpp", "engine_version": "b6100", "model": "Qwen/Qwen3-32B"},
        {"engine": "sglang", "engine_version": "0.5"},
    )  # fmt: skip
    names, versions = "which the predictor knows from no measurement", "newer than any that the predictor learnt from"
    assert novelty_warnings(rows, LEARNT) == [
        f"model: the first 1 rows of Qwen/Qwen3-32B, {names}",
        f"engine: the first 1 rows of sglang, {names}",
        f"engine_version: 1 rows of llama.cpp b6100, {versions}; its newest is b6077",
        f"engine_version: 2 rows of vllm v0.11.0, {versions}; its newest is 0.10.0rc1",
    ]
