import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.analysis.breakdown import (
    BOUNDS,
    METRIC_PHASES,
    OperatorTime,
    bound_seconds,
    break_down,
    breakdown_table,
)
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.queries import Queries, descriptor_arrays
from tests.builders import an_example

QUESTIONS = (
    {"model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "concurrency": 32},
    {"model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-a10-24gb", "concurrency": 256, "engine": "tgis"},
    {"model": "deepseek-ai/DeepSeek-R1", "accelerator": "nvidia-b200-sxm-180gb", "n_accelerator": 8, "dp": 8, "ep": 8,
     "weight_precision": "fp4", "engine": "trtllm", "concurrency": 64},
    {"model": "deepseek-ai/DeepSeek-R1", "accelerator": "nvidia-b200-sxm-180gb", "n_accelerator": 8, "concurrency": 8,
     "speculation": "mtp", "n_speculative_token": 3},
    {"model": "google/flan-t5-xl", "accelerator": "nvidia-t4-16gb", "n_accelerator": 2, "flash_attention": False,
     "concurrency": 4},
    {"model": "meta-llama/Llama-2-70b-hf", "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": 8, "pp": 2,
     "concurrency": 64, "load": "static_batch"},
    {"model": "mistralai/Mixtral-8x7B-v0.1", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 2,
     "request_rate": 3.0, "load": "open_loop", "lora_rank": 16},
)  # fmt: skip


def shipped() -> tuple[Queries, Estimate]:
    catalog = load_catalog()
    table = pd.DataFrame(QUESTIONS).assign(n_input_token=1000.0, n_output_token=200.0, statistic="mean")
    table["flash_attention"] = table["flash_attention"].isna()
    d = descriptor_arrays(describe(table, catalog.models, catalog.accelerators))
    return d, estimate(d, C)


def of(parts: list[OperatorTime], phase: str, operator: str) -> OperatorTime:
    return next(part for part in parts if (part.phase, part.operator) == (phase, operator))


def test_the_parts_add_up_to_ttft_and_tpot_and_none_is_negative() -> None:
    d, e = shipped()
    parts = break_down(d, C, e)
    for metric, phases in METRIC_PHASES.items():
        total = sum(part.seconds for part in parts if part.phase in phases)
        assert total == pytest.approx(getattr(e, metric), rel=1e-9)
        assert sum(bound_seconds(parts, phases).values()) == pytest.approx(getattr(e, metric), rel=1e-9)
    for part in parts:
        assert min((part.seconds + 1e-12).min(), part.flop.min(), part.byte.min()) >= 0, (part.phase, part.operator)


def test_the_parts_are_those_of_the_passes() -> None:
    d, e = shipped()
    parts = break_down(d, C, e)
    scale = e.itl_s / e.step.total_s
    dense = of(parts, "decode", "projections and MLP").seconds + of(parts, "decode", "head").seconds
    assert dense == pytest.approx(scale * e.step.dense_s)
    assert of(parts, "decode", "experts").seconds == pytest.approx(scale * e.step.expert_s)
    is_whole = d["config.pp"] == 1
    attention = of(parts, "prefill", "attention").seconds
    is_alone = is_whole & ((d["config.is_mixed"] == 0) | (e.batch <= d["config.dp"]))
    assert attention[is_alone] == pytest.approx(e.prefill.attention_s[is_alone])
    assert (attention[~is_alone] < e.prefill.attention_s[~is_alone]).all()
    prefill = sum(part.seconds for part in parts if part.phase == "prefill")
    assert prefill == pytest.approx(e.prefill_s + e.overhead_s)


def test_operations_and_bytes_by_hand() -> None:
    d = an_example(workload__concurrency=1, workload__n_input_token=1000)
    parts = break_down(d, C, estimate(d, C))
    layer = 4 * 4096**2 + 3 * 4096 * 11008
    decode = of(parts, "decode", "projections and MLP")
    assert decode.flop[0] == pytest.approx(2 * 32 * layer)
    assert decode.byte[0] == pytest.approx(2 * 32 * layer, rel=0.01)
    assert of(parts, "prefill", "projections and MLP").flop[0] == pytest.approx(2 * 32 * layer * 1000)
    assert of(parts, "decode", "head").flop[0] == pytest.approx(2 * 4096 * 32000)
    attention = of(parts, "decode", "attention")
    assert attention.byte[0] == pytest.approx(32 * 8192 * 2 * 1100)
    assert attention.flop[0] == pytest.approx(2 * 32 * 32 * 1100 * 256)
    assert of(parts, "prefill", "attention").flop[0] == pytest.approx(2 * 32 * 32 * 1000 * 500 * 256)


def test_messages_of_two_ranks_by_hand() -> None:
    d = an_example(config__tp=2, config__n_accelerator=2, workload__concurrency=1)
    parts = break_down(d, C, estimate(d, C))
    assert of(parts, "decode", "messages").byte[0] == pytest.approx(2 * 32 * 4096 * 2)
    assert of(parts, "decode", "messages").bound.tolist() == ["link"]


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({}, "memory"),
        ({"hardware__dense_flop_per_s": 1e9}, "compute"),
        ({"hardware__bandwidth_byte_per_s": 1e20, "hardware__dense_flop_per_s": 1e20}, "launch"),
    ],
)
def test_the_bound_follows_the_hardware(changes: dict[str, float], bound: str) -> None:
    d = an_example(workload__concurrency=1, **changes)
    assert of(break_down(d, C, estimate(d, C)), "decode", "projections and MLP").bound.tolist() == [bound]


def test_the_table_has_a_row_for_each_part_of_each_question() -> None:
    d, e = shipped()
    parts = break_down(d, C, e)
    names = pd.Index([f"question {i}" for i in range(len(QUESTIONS))])
    table = breakdown_table(parts, names)
    assert len(table) == len(parts) * len(QUESTIONS)
    assert table["question"].tolist() == [name for name in names for _ in parts]
    assert table.groupby(["question", "phase"])["share"].sum().to_numpy() == pytest.approx(1)
    assert table[[f"{bound}_s" for bound in BOUNDS]].sum(axis=1).to_numpy() == pytest.approx(table["seconds"])
    assert set(table["bound"]) <= {*BOUNDS, ""}
    has_byte = table["byte"] > 0
    assert (table["intensity_flop_per_byte"].notna() == has_byte).all()
