from typing import Any

import pandas as pd
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.memory import estimate_memory
from roofcast.features.queries import BoolArray, descriptor_arrays
from roofcast.features.validity.checks import FLAGS, find_flags
from tests.builders import a_model, a_question, describe_questions


def masks(table: pd.DataFrame) -> dict[str, BoolArray]:
    d = descriptor_arrays(table)
    return find_flags(d, estimate_memory(d, DEFAULT_COEFFICIENTS.by_row(d["config.engine"])))


def flags(model: ModelSpec | None = None, **cells: Any) -> list[str]:
    return [name for name, mask in masks(describe_questions(a_question(**cells), model=model)).items() if mask[0]]


def test_a_sound_question_has_no_flag() -> None:
    assert flags() == []


MOE = {"n_expert": 10, "n_expert_per_token": 2, "moe_intermediate_size": 64}
GQA = {"attention": "gqa", "n_kv_head": 6, "n_head": 48}
MLA = {"attention": "mla", "n_kv_head": 1, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128}


@pytest.mark.parametrize(
    ("shape", "cells", "flag"),
    [
        ({"max_context_token": 1199}, {}, "context_too_long"),
        ({"n_head": 30, "n_kv_head": 30}, {"n_accelerator": 4}, "tp_does_not_divide_heads"),
        (GQA, {"n_accelerator": 4}, "tp_does_not_divide_kv_heads"),
        ({"n_layer": 2}, {"n_accelerator": 4, "pp": 4}, "more_stages_than_layers"),
        (MOE, {"n_accelerator": 4, "ep": 4}, "ep_does_not_divide_experts"),
        ({}, {"n_accelerator": 16, "tp": 16}, "beyond_link_domain"),
        ({"n_param": 70_000_000_000}, {}, "does_not_fit"),
        ({}, {"concurrency": 4096}, "batch_does_not_fit"),
        ({}, {"concurrency": 4096, "load": "static_batch"}, "batch_does_not_fit"),
    ],
)
def test_each_flag_by_name(shape: dict[str, Any], cells: dict[str, Any], flag: str) -> None:
    found = flags(a_model(**shape), **cells)
    assert flag in found
    assert set(found) <= {flag, "tp_does_not_divide_kv_heads"}


@pytest.mark.parametrize(
    ("shape", "cells"),
    [
        ({"max_context_token": 1200}, {}),
        ({"max_context_token": 512, "n_encoder_layer": 24}, {}),
        ({"n_head": 48, "n_kv_head": 2}, {"n_accelerator": 8}),
        (MLA, {"n_accelerator": 8}),
        (MOE, {"n_accelerator": 4, "ep": 2, "moe_tp": 2}),
        ({"n_layer": 4}, {"n_accelerator": 4, "pp": 4}),
        ({}, {"n_accelerator": 16, "pp": 2}),
        ({}, {"concurrency": None, "request_rate": 1e6}),
    ],
)
def test_what_looks_odd_and_is_none_the_less_sound(shape: dict[str, Any], cells: dict[str, Any]) -> None:
    assert flags(a_model(**shape), **cells) == []


def test_a_flag_says_what_it_means() -> None:
    assert all(meaning[0].islower() and len(meaning) > 30 for meaning in FLAGS.values())
    assert tuple(masks(describe_questions(a_question()))) == tuple(FLAGS)


def test_what_was_measured_fits() -> None:
    catalog = load_catalog()
    rows = load_campaigns()
    rows = rows[rows["status"] == "ok"]
    found = masks(describe(rows, catalog.models, catalog.accelerators))
    assert found["does_not_fit"].mean() < 0.003
