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


def test_blanks_are_filled() -> None:
    row = describe_questions(a_question(n_accelerator=4), model=a_model(weight_precision="fp8")).iloc[0]
    assert row["config.weight_byte_per_element"] == 1.0
    assert row["config.kv_byte_per_element"] == 2.0
    assert row["config.tp"] == 4.0
    assert row["config.pp"] == row["config.dp"] == row["config.cp"] == row["config.ep"] == 1.0
    assert row["config.engine"] == ENGINES.index("other")
    assert row["config.n_draft_token"] == row["config.lora_rank"] == row["config.batching_wait_step"] == 0.0
    assert row["config.poll_interval_step"] == 1.0
    assert row["hardware.network_byte_per_s"] == 50e9
    assert row["workload.length_variation"] == TYPICAL_VARIATION
    assert row["workload.prefix_cache_ratio"] == row["workload.is_static"] == 0.0
    assert row["model.max_context_token"] == np.inf
    assert row["config.flash_attention"] == 1.0
    assert np.isnan(row["workload.request_rate_per_s"])


@pytest.mark.parametrize(
    ("precision", "memory_byte", "n_copy"), [("fp16", 80e9, 4), ("fp16", 24e9, 2), ("int4", 24e9, 4)]
)
def test_an_offline_queue_has_as_many_copies_as_fit(precision: str, memory_byte: float, n_copy: int) -> None:
    offline = a_question(n_accelerator=4, load="offline", concurrency=np.nan, weight_precision=precision)
    row = describe_questions(offline, accelerator=an_accelerator(memory_byte=memory_byte)).iloc[0]
    assert (row["config.dp"], row["config.tp"]) == (n_copy, 4 / n_copy)


@pytest.mark.parametrize("blank", ["", None, np.nan])
def test_a_blank_cell_is_as_good_as_no_column(blank: object) -> None:
    blanks = a_question(weight_precision=blank, kv_precision=blank)
    pd.testing.assert_frame_equal(describe_questions(blanks), describe_questions())


def test_what_is_given_wins() -> None:
    given = {"weight_precision": "int4", "kv_precision": "fp8", "tp": 2, "pp": 2, "dp": 2, "n_accelerator": 8}
    row = describe_questions(a_question(**given, flash_attention=False)).iloc[0]
    assert row["config.weight_byte_per_element"] == row["config.dense_byte_per_element"] == 0.5 + 2 / 64
    assert row["config.kv_byte_per_element"] == 1.0
    assert (row["config.tp"], row["config.pp"], row["config.dp"]) == (2.0, 2.0, 2.0)
    assert row["config.flash_attention"] == 0.0


@pytest.mark.parametrize(
    ("statistic", "is_mean", "quantile"),
    [
        ("mean", 1.0, 0.5),
        ("p50", 0.0, 0.5),
        ("p90", 0.0, 0.9),
        ("p95", 0.0, 0.95),
        ("p99", 0.0, 0.99),
        ("", 1.0, 0.5),
    ],
)
def test_statistics_become_quantiles(statistic: str, is_mean: float, quantile: float) -> None:
    row = describe_questions(a_question(statistic=statistic)).iloc[0]
    assert (row["workload.is_mean"], row["workload.quantile"]) == (is_mean, quantile)


def test_a_mixed_table_takes_each_rows_own_specs() -> None:
    models = {spec.id: spec for spec in (a_model(), a_model(id="b", n_layer=7))}
    parts = {part.id: part for part in (an_accelerator(), an_accelerator(id="p", memory_byte=24e9))}
    questions = pd.DataFrame([a_question(model="b"), a_question(accelerator="p"), a_question()])
    table = describe(questions, models, parts)
    assert table["model.n_layer"].tolist() == [7.0, 32.0, 32.0]
    assert table["hardware.memory_byte"].tolist() == [80e9, 24e9, 80e9]


def test_what_the_context_tells_is_taken() -> None:
    told = {
        "engine": "sglang", "speculation": "mtp", "n_speculative_token": 3, "lora_rank": 16, "load": "static_batch",
        "poll_interval_step": 10, "attention_dp_wait_step": 50, "batch_wait_step": 20, "length_variation": 0.1,
        "prefix_cache_ratio": 0.4, "network": "ethernet_10g",
    }  # fmt: skip
    row = describe_questions(a_question(**told)).iloc[0]
    assert row["config.engine"] == ENGINES.index("sglang")
    assert (row["config.n_draft_token"], row["config.lora_rank"], row["workload.is_static"]) == (3.0, 16.0, 1.0)
    assert (row["config.poll_interval_step"], row["config.batching_wait_step"]) == (10.0, 50.0)
    assert (row["workload.length_variation"], row["workload.prefix_cache_ratio"]) == (0.1, 0.4)
    assert row["hardware.network_byte_per_s"] == 1.25e9


def test_drafts_count_only_where_there_is_speculation() -> None:
    cells: list[dict[str, Any]] = [
        {"speculation": "none", "n_speculative_token": 3}, {"n_speculative_token": 3}, {"acceptance_length": 5.2},
        {"acceptance_length": 1.0}, {"speculation": "eagle"},
    ]  # fmt: skip
    drafts = describe_questions(*(a_question(**one) for one in cells))["config.n_draft_token"]
    assert drafts.tolist() == [0.0, 3.0, 5.0, 0.0, TYPICAL_DRAFT]


@pytest.mark.parametrize(
    "cells", [{"acceptance_length": 2.533}, {"draft_acceptance_ratio": 0.511}, {"chain_acceptance_ratio": 0.7}]
)
def test_each_count_of_accepted_tokens_gives_the_probability_of_a_chain(cells: dict[str, float]) -> None:
    question = a_question(speculation="eagle", n_speculative_token=3, **cells)
    assert describe_questions(question)["config.acceptance_ratio"].tolist() == pytest.approx([0.7], abs=1e-3)


def test_a_wholly_cached_prompt_still_computes_something() -> None:
    assert describe_questions(a_question(prefix_cache_ratio=1.0))["workload.prefix_cache_ratio"].tolist() == [0.99]


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


@pytest.mark.parametrize(
    ("engine", "graphs", "is_eager"),
    [("vllm", "", 0.0), ("vllm", "off", 1.0), ("transformers", "", 1.0), ("transformers", "on", 0.0)],
)
def test_graphs_default_to_those_of_the_engine(engine: str, graphs: str, is_eager: float) -> None:
    assert describe_questions(a_question(engine=engine, graphs=graphs))["config.is_eager"].tolist() == [is_eager]


def test_gguf_quantises_attention_and_head_of_a_mixture_of_experts() -> None:
    model = a_model(n_expert=8, n_expert_per_token=2, moe_intermediate_size=1024, n_param=47e9, n_param_active=13e9)
    engines = ("vllm", "ollama")
    rows = [
        describe_questions(a_question(engine=engine, weight_precision="int4"), model=model).iloc[0]
        for engine in engines
    ]
    assert [row["config.dense_byte_per_element"] for row in rows] == [2.0, 0.6]
    assert [row["config.head_byte_per_element"] for row in rows] == [2.0, 0.82]


@pytest.mark.parametrize("engine", ["llama.cpp", "ik_llama.cpp", "ollama"])
def test_the_family_of_llama_cpp_pipelines_micro_batches_over_a_layer_split(engine: str) -> None:
    row = describe_questions(a_question(engine=engine, n_accelerator=6)).iloc[0]
    assert row["config.pp"] == 6.0
    assert row["config.chunk_token"] == 512.0
