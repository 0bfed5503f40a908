import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.descriptors.memory_settings import GIB, visible_byte
from tests.builders import an_accelerator

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("nvidia-t4-16gb", 14.6),
        ("nvidia-l4-24gb", 22.05),
        ("nvidia-rtx-3090-24gb", 23.55),
        ("nvidia-rtx-5090-32gb", 31.45),
        ("nvidia-l40s-48gb", 44.4),
        ("nvidia-a100-sxm-80gb", 79.2),
        ("nvidia-rtx-pro-6000-blackwell-server", 95.0),
        ("nvidia-h200-sxm-141gb", 139.8),
        ("amd-mi300x-192gb", 192.0),
    ],
)
def test_engines_see_what_the_driver_leaves(name: str, gib: float) -> None:
    assert visible_byte(CATALOG.accelerators[name]) / GIB == pytest.approx(gib, abs=0.1)


def described(**row: object) -> dict[str, float]:
    asked = {
        "model": "Qwen/Qwen3-30B-A3B", "accelerator": "nvidia-h100-sxm-80gb", "engine": "vllm", "n_accelerator": 1.0,
        "n_input_token": 1000.0, "n_output_token": 200.0, "concurrency": 1.0, **row,
    }  # fmt: skip
    table = describe(pd.DataFrame([asked]), CATALOG.models, CATALOG.accelerators)
    return {str(name): float(value) for name, value in table.iloc[0].items()}


@pytest.mark.parametrize(
    ("row", "ratio"),
    [
        ({"engine_version": "0.19.1"}, 0.90),
        ({"engine_version": "0.20.0"}, 0.92),
        ({}, 0.92),
        ({"date": "2025-06"}, 0.90),
        ({"engine": "trtllm"}, 0.90),
        ({"engine": "llama.cpp"}, 1.0),
        ({"engine": "sglang", "chunk_size_token": 8192.0}, 0.834),
        ({"engine": "sglang", "gpu_memory_utilization": 0.7}, 0.7),
    ],
)
def test_each_engine_and_version_has_its_share(row: dict[str, object], ratio: float) -> None:
    assert described(**row)["config.memory_ratio"] == pytest.approx(ratio, abs=0.001)


def test_layers_and_experts_may_stay_in_the_host() -> None:
    llama = {"engine": "llama.cpp", "weight_precision": "int4"}
    none, some, all_layers = (
        described(**llama, **row)["config.host_weight_byte"]
        for row in ({}, {"n_cpu_moe": 24.0}, {"n_gpu_layer": 0.0})
    )
    assert 0 < none < some < all_layers
    offloaded = described(cpu_offload_gib=4.0, n_accelerator=2.0)
    assert offloaded["config.host_weight_byte"] == 8 * GIB
    assert offloaded["config.host_dense_ratio"] == pytest.approx(8 * GIB / 60e9, rel=0.02)


def test_the_first_engine_of_vllm_computes_whole_prompts() -> None:
    old, new = (described(engine_version=one, max_context_token=20000.0) for one in ("0.6.3", "0.11.0"))
    assert (old["config.chunk_token"], new["config.chunk_token"]) == (20000.0, 8192.0)


def test_unified_memory_is_shared_with_the_host() -> None:
    shared = an_accelerator(memory_type="LPDDR5X unified", vendor="NVIDIA", memory_byte=128 * GIB)
    assert visible_byte(shared) < 122 * GIB
    assert np.isfinite(visible_byte(shared))


@pytest.mark.parametrize(
    ("row", "byte"),
    [
        ({"engine": "llama.cpp", "weight_bit": 5.6}, {"weight": 0.7, "dense": 0.7, "head": 0.82, "embedding": 0.7}),
        ({"engine": "vllm", "weight_bit": 3.25}, {"weight": 0.40625, "head": 2.0, "embedding": 2.0}),
    ],
)  # fmt: skip
def test_the_bits_of_a_format_are_read_and_held(row: dict[str, object], byte: dict[str, float]) -> None:
    found = described(weight_precision="int4", **row)
    assert {role: found[f"config.{role}_byte_per_element"] for role in byte} == pytest.approx(byte)


@pytest.mark.parametrize(
    ("name", "chunk"), [("gb10-dgx-spark", 2048.0), ("a100-sxm-80gb", 2048.0), ("h100-sxm-80gb", 8192.0)]
)
def test_vllm_has_defaults_of_small_accelerators_where_the_driver_tells_no_memory(name: str, chunk: float) -> None:
    assert described(accelerator=f"nvidia-{name}")["config.chunk_token"] == chunk
