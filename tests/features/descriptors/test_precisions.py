import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import PRECISIONS, AcceleratorSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.descriptors.precisions import (
    ACTIVATION_BYTE,
    COMPUTE_PRECISIONS,
    PEAK_PRECISION,
    WEIGHT_BYTE,
    default_kv_precision,
    peak_flop_per_s,
    served_precision,
)
from roofcast.features.engine.kernels import row_kernels as rows
from tests.builders import a_question, an_accelerator
from tests.every_row import for_every

CATALOG = load_catalog()
A100, H100, B200 = "nvidia-a100-sxm-80gb", "nvidia-h100-sxm-80gb", "nvidia-b200-sxm-180gb"


def described(model: str, accelerator: str, **cells: object) -> pd.Series:
    question = a_question(model=CATALOG.model(model).id, accelerator=accelerator, n_accelerator=8, **cells)
    return describe(pd.DataFrame([question]), CATALOG.models, CATALOG.accelerators).iloc[0]


def kernels(model: str, accelerator: str, **cells: object) -> tuple[str, str, str]:
    """Return the precisions of the kernels of experts, other weights and attention."""
    row = described(model, accelerator, **cells)
    names = [rows.PRECISIONS[int(row[f"config.{part}_precision"])] for part in ("expert", "dense", "attention")]
    return names[0], names[1], names[2]


@pytest.mark.parametrize(
    ("model", "accelerator", "cells", "expected"),
    [
        ("gpt-oss-120b", A100, {}, ("mxfp4_weight", "bf16", "bf16")),
        ("gpt-oss-120b", H100, {}, ("mxfp4_weight", "bf16", "bf16")),
        ("gpt-oss-120b", B200, {}, ("mxfp4", "bf16", "bf16")),
        ("deepseek-v3", H100, {}, ("fp8_block", "fp8_block", "bf16")),
        ("deepseek-v3", H100, {"engine": "trtllm"}, ("fp8_block", "fp8_block", "fp8_cache")),
        ("deepseek-v3", A100, {}, ("int8_weight", "int8_weight", "bf16")),
        ("deepseek-v3", B200, {"weight_precision": "fp4"}, ("fp4", "bf16", "bf16")),
        ("deepseek-v3", B200, {"weight_precision": "int4"}, ("int4", "fp8_block", "bf16")),
        ("deepseek-v3", H100, {"weight_precision": "bf16"}, ("bf16", "bf16", "bf16")),
        ("llama-3-8b", H100, {}, ("bf16", "bf16", "bf16")),
        ("llama-3-8b", H100, {"weight_precision": "fp8"}, ("fp8", "fp8", "bf16")),
        ("llama-3-8b", H100, {"weight_precision": "fp8", "kv_precision": "fp8"}, ("fp8", "fp8", "fp8_cache")),
        ("llama-3-8b", A100, {"weight_precision": "fp8"}, ("int8_weight", "int8_weight", "bf16")),
        ("llama-3-8b", A100, {"weight_precision": "int8"}, ("int8", "int8", "bf16")),
        ("llama-3-8b", B200, {"weight_precision": "fp4"}, ("fp4", "fp4", "bf16")),
        ("llama-3-8b", H100, {"weight_precision": "fp4"}, ("mxfp4_weight", "mxfp4_weight", "bf16")),
        ("llama-3-8b", H100, {"weight_precision": "int4"}, ("int4", "int4", "bf16")),
        ("llama-3-8b", H100, {"weight_precision": "fp32"}, ("bf16", "bf16", "bf16")),
    ],
)
def test_which_kernels_multiply(
    model: str, accelerator: str, cells: dict[str, object], expected: tuple[str, str, str]
) -> None:
    assert kernels(model, accelerator, **cells) == expected


def test_four_bit_experts_lie_beside_weights_of_sixteen_bits() -> None:
    row = described("gpt-oss-120b", B200)
    assert row["config.weight_byte_per_element"] == 0.5 + 1 / 32
    assert row["config.dense_byte_per_element"] == row["config.activation_byte_per_element"] == 2.0


def test_peaks_are_those_of_the_kernels() -> None:
    part = CATALOG.accelerators[B200].peak_flop_per_s
    row = described("deepseek-v3", B200, weight_precision="fp4")
    assert row["hardware.flop_per_s"] == part["fp4"]
    assert row["hardware.dense_flop_per_s"] == row["hardware.attention_flop_per_s"] == part["bf16"]
    assert described("gpt-oss-120b", B200)["hardware.flop_per_s"] == part["fp8"]
    assert (
        described("gpt-oss-120b", H100)["hardware.flop_per_s"] == CATALOG.accelerators[H100].peak_flop_per_s["bf16"]
    )


@pytest.mark.parametrize(
    ("engine", "precision", "kv"),
    [("trtllm", "fp8", "fp8"), ("trtllm", "fp4", "fp8"), ("trtllm", "bf16", "fp16"), ("vllm", "fp8", "fp16")],
)
def test_the_cache_has_sixteen_bits_unless_the_engine_has_others(engine: str, precision: str, kv: str) -> None:
    given = (np.array([name], dtype=object) for name in (engine, precision))
    assert default_kv_precision(*given).tolist() == [kv]


def test_engines_do_not_serve_in_32_bits() -> None:
    assert {p: served_precision(p) for p in PRECISIONS if served_precision(p) != p} == {"fp32": "fp16"}


@pytest.mark.parametrize(
    ("peaks", "precision", "peak"),
    [
        ({"fp16": 1.0}, "bf16", 1.0),
        ({"fp16": 1.0}, "fp8", 1.0),
        ({"fp16": 1.0, "fp8": 2.0}, "fp8", 2.0),
        ({"fp16": 1.0, "fp8": 2.0}, "fp8_block", 2.0),
        ({"fp16": 1.0, "fp8": 2.0}, "fp4", 2.0),
        ({"fp16": 1.0, "fp8": 2.0, "fp4": 4.0}, "fp4", 4.0),
        ({"fp16": 1.0, "fp8": 2.0, "fp4": 4.0}, "mxfp4", 2.0),
        ({"fp16": 1.0, "fp8": 2.0, "fp4": 4.0}, "mxfp4_weight", 1.0),
        ({"bf16": 1.0, "fp8": 2.0, "int4": 8.0}, "int4", 1.0),
        ({"bf16": 1.0, "int8": 2.0}, "int8", 2.0),
        ({"bf16": 1.0, "int8": 2.0}, "int8_weight", 1.0),
        ({"bf16": 4.0, "fp32": 1.0, "tf32": 2.0}, "fp32", 2.0),
    ],
)
def test_a_precision_without_units_runs_on_the_next(peaks: dict[str, float], precision: str, peak: float) -> None:
    assert peak_flop_per_s(an_accelerator(peak_flop_per_s=peaks), precision) == peak


@for_every(CATALOG.accelerators.values())
def test_each_part_computes_with_weights_of_each_precision(spec: AcceleratorSpec) -> None:
    assert all(peak_flop_per_s(spec, precision) > 0 for precision in (*PRECISIONS, *PEAK_PRECISION))


def test_the_tables_know_each_precision_and_end_where_every_part_has_a_peak() -> None:
    assert set(COMPUTE_PRECISIONS) == set(PRECISIONS)
    assert all({"fp32", "fp16", "bf16"} <= set(names) for names in COMPUTE_PRECISIONS.values())
    assert set(PEAK_PRECISION.values()) <= set(COMPUTE_PRECISIONS)
    assert set(WEIGHT_BYTE) | set(ACTIVATION_BYTE) | set(PEAK_PRECISION) < set(rows.PRECISIONS)


def test_fewer_bits_are_fewer_bytes() -> None:
    assert WEIGHT_BYTE["int4"] < WEIGHT_BYTE["fp4"] < WEIGHT_BYTE["fp8"] < 2.0
