"""Properties of the kernels' closed forms: more work is never faster, a better machine never slower."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.features.engine.kernel_times import (
    decode_attention_s,
    gemm_s,
    joint_s,
    moe_s,
    prefill_attention_s,
    touched_expert,
)
from roofcast.features.engine.kernels.efficiency import GemmEfficiency
from roofcast.features.engine.kernels.kernel_coefficients import efficiency_of

SIZES: dict[str, tuple[Callable[..., Any], dict[str, float]]] = {
    "gemm": (gemm_s, {"m": 64, "n": 4096, "k": 4096, "weight_byte": 1, "activation_byte": 1}),
    "prefill_attention": (
        prefill_attention_s,
        {"n_sequence": 2, "n_query": 512, "n_context": 1024, "n_head": 16, "n_kv_head": 4, "qk_dim": 128,
         "v_dim": 128, "window": 0, "kv_byte": 2},
    ),
    "decode_attention": (
        decode_attention_s,
        {"n_sequence": 8, "n_context": 4096, "n_head": 16, "n_kv_head": 4, "qk_dim": 128, "v_dim": 128, "window": 0,
         "kv_width": 256, "kv_byte": 2},
    ),
    "mla_decode": (
        decode_attention_s,
        {"n_sequence": 8, "n_context": 4096, "n_head": 128, "n_kv_head": 1, "qk_dim": 576, "v_dim": 512, "window": 0,
         "kv_width": 576, "kv_byte": 2},
    ),
    "moe": (
        moe_s,
        {"n_token": 64, "hidden": 7168, "width": 2048, "n_expert": 256, "top_k": 8, "tp": 1, "ep": 4,
         "weight_byte": 1},
    ),
}  # fmt: skip
PEAKS = {"flop_per_s": 2e15, "bandwidth_byte_per_s": 4e12}
GROWING = {
    "gemm": ("m", "n", "k", "weight_byte", "activation_byte"),
    "prefill_attention": ("n_sequence", "n_context", "n_head", "n_kv_head", "qk_dim", "v_dim", "kv_byte"),
    "decode_attention": ("n_sequence", "n_context", "n_head", "kv_width", "kv_byte"),
    "mla_decode": ("n_sequence", "n_context", "n_head", "kv_byte"),
    "moe": ("n_token", "hidden", "width", "top_k", "weight_byte"),
}
ACCELERATORS = (
    ("nvidia-h200-sxm-141gb", "Hopper"),
    ("nvidia-rtx-4090-24gb", "Ada Lovelace"),
    ("amd-mi300x-192gb", "CDNA3"),
)


def seconds(kind: str, accelerator: int = 0, **changed: float) -> float:
    function, sizes = SIZES[kind]
    name, architecture = ACCELERATORS[accelerator]
    efficiency = getattr(efficiency_of([name], [architecture], ["fp8"], ["bf16"], ["vllm"]), kind)
    arguments = {name: np.array([float(value)]) for name, value in {**sizes, **PEAKS, **changed}.items()}
    return float(function(**arguments, efficiency=efficiency)[0])


@pytest.mark.parametrize("kind", SIZES)
@given(data=st.data(), accelerator=st.integers(0, 2), factor=st.floats(1, 100))
def test_more_work_is_never_faster(kind: str, data: st.DataObject, accelerator: int, factor: float) -> None:
    name = data.draw(st.sampled_from(GROWING[kind]))
    size = SIZES[kind][1][name]
    if kind == "moe" and name == "top_k":
        factor = min(factor, 32)
    assert seconds(kind, accelerator, **{name: size * factor}) >= seconds(kind, accelerator) * (1 - 1e-12)


@pytest.mark.parametrize("kind", SIZES)
@given(name=st.sampled_from(sorted(PEAKS)), accelerator=st.integers(0, 2), factor=st.floats(1, 100))
def test_a_better_machine_is_never_slower(kind: str, name: str, accelerator: int, factor: float) -> None:
    better = seconds(kind, accelerator, **{name: PEAKS[name] * factor})
    assert better <= seconds(kind, accelerator) * (1 + 1e-12)


@pytest.mark.parametrize("kind", SIZES)
def test_no_kernel_beats_the_launch(kind: str) -> None:
    efficiency = getattr(efficiency_of(["x"], ["x"], ["bf16"], ["bf16"], ["x"]), kind)
    function, sizes = SIZES[kind]
    endless = {"flop_per_s": 1e30, "bandwidth_byte_per_s": 1e30}
    arguments = {name: np.array([float(value)]) for name, value in {**sizes, **endless}.items()}
    walk_s = efficiency.depth_s[0] * sizes["k"] if kind == "gemm" else 0.0
    assert function(**arguments, efficiency=efficiency)[0] == pytest.approx(efficiency.launch_s[0] + walk_s)


def test_a_narrow_product_takes_its_walk_through_the_depth() -> None:
    efficiency = GemmEfficiency(2e-6, 1.0, 1.0, 0.0, 0.0, 1e-9)
    width = np.array([128.0, 65536.0])
    narrow_s, wide_s = gemm_s(
        np.ones(2), width, 8192.0, weight_byte=1.0, activation_byte=1.0, efficiency=efficiency,
        flop_per_s=PEAKS["flop_per_s"], bandwidth_byte_per_s=PEAKS["bandwidth_byte_per_s"],
    )  # fmt: skip
    assert narrow_s == pytest.approx(2e-6 + 8192 * 1e-9, rel=0.01)
    assert wide_s == pytest.approx(2e-6 + 65536 * 8192 / PEAKS["bandwidth_byte_per_s"], rel=0.01)


@given(n_token=st.floats(1, 1e6), factor=st.floats(1, 10))
def test_a_window_never_takes_longer_and_more_prompt_never_less(n_token: float, factor: float) -> None:
    for kind in ("prefill_attention", "decode_attention"):
        assert seconds(kind, n_context=n_token + 512, window=128) <= seconds(kind, n_context=n_token + 512)
    whole = seconds("prefill_attention", n_query=n_token, n_context=n_token)
    assert seconds("prefill_attention", n_query=n_token * factor, n_context=n_token * factor) >= whole * (1 - 1e-12)


def test_splitting_experts_over_ranks_helps_less_than_evenly() -> None:
    alone, shared = seconds("moe", n_token=8192, ep=1), seconds("moe", n_token=8192, ep=8)
    assert alone / 8 < shared < alone


def test_every_expert_is_read_in_the_end_and_one_token_reads_its_own() -> None:
    assert touched_expert(256.0, 8.0, np.array([1.0, 1e5])) == pytest.approx([8.0, 256.0])
    assert touched_expert(8.0, 8.0, np.array([1.0])) == pytest.approx([8.0])
    assert touched_expert(0.0, 0.0, np.array([5.0])) == pytest.approx([0.0])


@given(a=st.floats(1e-12, 1e3), b=st.floats(1e-12, 1e3))
def test_joint_time_lies_between_the_larger_and_the_sum(a: float, b: float) -> None:
    joint = float(joint_s(np.array([a]), np.array([b]))[0])
    assert max(a, b) * (1 - 1e-9) <= joint <= (a + b) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("accelerator", "family", "peak", "bandwidth"),
    [
        ("nvidia-rtx-3090-24gb", "Ampere", 71.2e12, 936e9),
        ("nvidia-rtx-4090-24gb", "Ada Lovelace", 165.2e12, 1008e9),
        ("apple-m2-ultra-192gb", "Apple GPU", 27.2e12, 800e9),
    ],
)
@pytest.mark.parametrize("precision", ["bf16", "int4"])
def test_one_token_is_a_share_of_bandwidth_on_parts_without_tables(
    accelerator: str, family: str, peak: float, bandwidth: float, precision: str
) -> None:
    efficiency = efficiency_of([accelerator], [family], [precision], ["bf16"], ["llama.cpp"]).gemm
    weight_byte = 0.53125 if precision == "int4" else 2.0
    sizes = {"n": 14336.0, "k": 4096.0, "weight_byte": weight_byte, "activation_byte": 2.0, "efficiency": efficiency}
    peaks = {"flop_per_s": peak, "bandwidth_byte_per_s": bandwidth}
    time_s = gemm_s(np.array([1.0]), **sizes, **peaks)  # type: ignore[arg-type]
    ideal_s = weight_byte * 14336 * 4096 / bandwidth
    assert time_s - efficiency.launch_s < 1.5 * ideal_s
