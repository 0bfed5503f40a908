from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import InputError
from roofcast.features.columns import DESCRIPTOR_NAMES, ENGINES
from roofcast.features.descriptors.descriptor_table import TYPICAL_DRAFT, TYPICAL_VARIATION, describe
from tests.builders import a_model, a_question, an_accelerator, describe_questions


def test_one_row_per_question_with_its_index_in_the_order_of_the_registry() -> None:
    questions, spec, part = [a_question(), a_question(concurrency=16)], a_model(), an_accelerator()
    table = describe(pd.DataFrame(questions, index=[7, 3]), {spec.id: spec}, {part.id: part})
    assert tuple(table.columns) == DESCRIPTOR_NAMES
    assert table["workload.concurrency"].to_dict() == {7: 8.0, 3: 16.0}


OFFLINE = {"n_accelerator": 4, "load": "offline", "concurrency": np.nan}
DRAFTS = {"speculation": "eagle", "n_speculative_token": 3}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            {"n_accelerator": 4},
            {
                "config.weight_byte_per_element": 1, "config.kv_byte_per_element": 2, "config.tp": 4, "config.pp": 1,
                "config.dp": 1, "config.cp": 1, "config.ep": 1, "config.engine": ENGINES.index("other"),
                "config.n_draft_token": 0, "config.lora_rank": 0, "config.batching_wait_step": 0,
                "config.poll_interval_step": 1, "hardware.network_byte_per_s": 50e9,
                "workload.length_variation": TYPICAL_VARIATION, "workload.prefix_cache_ratio": 0,
                "workload.is_static": 0, "model.max_context_token": np.inf, "config.flash_attention": 1,
                "workload.request_rate_per_s": np.nan,
            },
        ),
        (
            {"weight_precision": "int4", "kv_precision": "fp8", "tp": 2, "pp": 2, "dp": 2, "n_accelerator": 8},
            {"config.weight_byte_per_element": 0.5 + 2 / 64, "config.dense_byte_per_element": 0.5 + 2 / 64,
             "config.kv_byte_per_element": 1, "config.tp": 2, "config.pp": 2, "config.dp": 2},
        ),
        ({"flash_attention": False}, {"config.flash_attention": 0}),
        ({"engine": "sglang", "lora_rank": 16}, {"config.engine": ENGINES.index("sglang"), "config.lora_rank": 16}),
        ({"load": "static_batch"}, {"workload.is_static": 1}),
        ({"poll_interval_step": 10}, {"config.poll_interval_step": 10}),
        ({"attention_dp_wait_step": 50, "batch_wait_step": 20}, {"config.batching_wait_step": 50}),
        ({"length_variation": 0.1}, {"workload.length_variation": 0.1}),
        ({"prefix_cache_ratio": 0.4}, {"workload.prefix_cache_ratio": 0.4}),
        ({"prefix_cache_ratio": 1.0}, {"workload.prefix_cache_ratio": 0.99}),
        ({"network": "ethernet_10g"}, {"hardware.network_byte_per_s": 1.25e9}),
        ({"statistic": "mean"}, {"workload.is_mean": 1, "workload.quantile": 0.5}),
        ({"statistic": ""}, {"workload.is_mean": 1, "workload.quantile": 0.5}),
        ({"statistic": "p50"}, {"workload.is_mean": 0, "workload.quantile": 0.5}),
        ({"statistic": "p90"}, {"workload.is_mean": 0, "workload.quantile": 0.9}),
        ({"statistic": "p95"}, {"workload.is_mean": 0, "workload.quantile": 0.95}),
        ({"statistic": "p99"}, {"workload.is_mean": 0, "workload.quantile": 0.99}),
        (OFFLINE | {"weight_precision": "bf16"}, {"config.dp": 2, "config.tp": 2}),
        (OFFLINE | {"weight_precision": "int4"}, {"config.dp": 4, "config.tp": 1}),
        ({"speculation": "none", "n_speculative_token": 3}, {"config.n_draft_token": 0}),
        ({"n_speculative_token": 3}, {"config.n_draft_token": 3}),
        ({"acceptance_length": 5.2}, {"config.n_draft_token": 5}),
        ({"acceptance_length": 1.0}, {"config.n_draft_token": 0}),
        ({"speculation": "eagle"}, {"config.n_draft_token": TYPICAL_DRAFT}),
        (DRAFTS | {"acceptance_length": 2.533}, {"config.n_draft_token": 3, "config.acceptance_ratio": 0.7}),
        (DRAFTS | {"draft_acceptance_ratio": 0.511}, {"config.acceptance_ratio": 0.7}),
        (DRAFTS | {"chain_acceptance_ratio": 0.7}, {"config.acceptance_ratio": 0.7}),
        ({"engine": "vllm"}, {"config.is_eager": 0}),
        ({"engine": "vllm", "graphs": "off"}, {"config.is_eager": 1}),
        ({"engine": "transformers"}, {"config.is_eager": 1}),
        ({"engine": "transformers", "graphs": "on"}, {"config.is_eager": 0}),
        *(({"engine": name, "n_accelerator": 6}, {"config.pp": 6, "config.chunk_token": 512})
          for name in ("llama.cpp", "ik_llama.cpp", "ollama")),
    ],
)  # fmt: skip
def test_cells_of_a_question_become_descriptors(cells: dict[str, Any], expected: dict[str, float]) -> None:
    """About a model stored in FP8, on an accelerator of 24 GB."""
    model, accelerator = a_model(weight_precision="fp8"), an_accelerator(memory_byte=24e9)
    row = describe_questions(a_question(**cells), model=model, accelerator=accelerator).iloc[0]
    assert row[list(expected)].to_dict() == pytest.approx(expected, abs=1e-3, nan_ok=True)


@pytest.mark.parametrize("blank", ["", None, np.nan])
def test_a_blank_cell_is_as_good_as_no_column(blank: object) -> None:
    blanks = a_question(weight_precision=blank, kv_precision=blank)
    pd.testing.assert_frame_equal(describe_questions(blanks), describe_questions())


def test_a_mixed_table_takes_each_rows_own_specs() -> None:
    models = {spec.id: spec for spec in (a_model(), a_model(id="b", n_layer=7))}
    parts = {part.id: part for part in (an_accelerator(), an_accelerator(id="p", memory_byte=24e9))}
    questions = pd.DataFrame([a_question(model="b"), a_question(accelerator="p"), a_question()])
    table = describe(questions, models, parts)
    assert table["model.n_layer"].tolist() == [7.0, 32.0, 32.0]
    assert table["hardware.memory_byte"].tolist() == [80e9, 24e9, 80e9]


def test_experts_can_be_pruned_and_skipped() -> None:
    spec = a_model(n_expert=8, n_expert_per_token=4, moe_intermediate_size=100, intermediate_size=0)
    questions = [a_question(), a_question(expert_pruned_ratio=0.25), a_question(expert_skipped_ratio=0.5)]
    whole, pruned, skipped = describe_questions(*questions, model=spec).to_dict("records")
    assert (pruned["model.n_expert"], pruned["model.n_expert_per_token"]) == (6.0, 4.0)
    gone = whole["model.n_param_expert"] / 4
    assert pruned["model.n_param_expert"] == whole["model.n_param_expert"] - gone
    assert pruned["model.n_param"] == whole["model.n_param"] - gone
    assert (skipped["model.n_expert"], skipped["model.n_expert_per_token"]) == (8.0, 2.0)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"n_input_token": 0}, "n_input_token: must be at least 1, got 0"),
        ({"n_output_token": -5}, "n_output_token: must be at least 1, got -5"),
        ({"concurrency": 0}, "concurrency: must be greater than 0, got 0"),
        ({"request_rate": -0.5}, "request_rate: must be greater than 0, got -0.5"),
        ({"tp": 3}, "tp: tp x pp x dp must equal n_accelerator in whole numbers"),
        ({"dp": 0.5}, "dp: must be a whole number of at least 1, got 0.5"),
    ],
)
def test_nonsense_is_refused_by_name(cells: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        describe_questions(a_question(), a_question(**cells))


def test_gguf_quantises_attention_and_head_of_a_mixture_of_experts() -> None:
    model = a_model(n_expert=8, n_expert_per_token=2, moe_intermediate_size=1024, n_param=47e9, n_param_active=13e9)
    engines = ("vllm", "ollama")
    rows = [
        describe_questions(a_question(engine=engine, weight_precision="int4"), model=model).iloc[0]
        for engine in engines
    ]
    assert [row["config.dense_byte_per_element"] for row in rows] == [2.0, 0.6]
    assert [row["config.head_byte_per_element"] for row in rows] == [2.0, 0.82]
