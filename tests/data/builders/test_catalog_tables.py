"""Catalogue tables from the collections: rebuilt as shipped, rows left out for a reason, additions with a source."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.catalog import convert
from builders.catalog.build import FIRST, HERE, SHIPPED, build, main, read
from builders.catalog.convert import FACTS, Row, SkippedRow
from roofcast.data.catalog import load_catalog
from tests.data.model_config.model_configs import LLAMA_3_1_8B

RAW = Path(__file__).parents[3].parent / "shared" / "data"
needs_raw = pytest.mark.skipif(
    not (RAW / FIRST).is_dir(), reason="the collections are missing next to the checkout (shared/data)"
)
ENTRIES = json.loads((HERE / "added_models.json").read_text(encoding="utf-8"))
EXPERTS = {"n_experts": "4", "n_experts_per_token": "1", "moe_intermediate_size": "6"}


@needs_raw
def test_tables_are_rebuilt_as_shipped_and_models_whose_config_was_not_collected_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--raw", str(RAW), "--out", str(tmp_path)])
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (SHIPPED / file.name).read_bytes(), file.name
    assert f"models.csv keeps {len(FACTS['configs'])} rows" in (out := capsys.readouterr().out)
    assert all(name in out for name in FACTS["configs"])


@needs_raw
def test_a_model_is_added_from_its_config(tmp_path: Path) -> None:
    (tmp_path / "XiaomiMiMo--MiMo-7B-Base_config.json").write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")
    tables, _, kept = build(RAW, tmp_path)
    assert "XiaomiMiMo/MiMo-7B-Base" not in kept
    row = next(row for row in tables["models.csv"] if row["id"] == "XiaomiMiMo/MiMo-7B-Base")
    assert (row["family"], row["lineage"], row["n_param"]) == ("MiMo", "llama-3-8b", "8030261248")


def a_model(**changes: str) -> Row:
    sizes = {
        "id": "maker/model", "lineage": "model", "fold_group": "model", "n_layers": "2", "hidden_size": "8",
        "intermediate_size": "16", "n_heads": "2", "n_kv_heads": "2", "head_dim": "4", "attention": "mha",
        "vocab_size": "10", "torch_dtype": "bfloat16", "n_params_total": "1000", "n_params_active": "1000",
        "release_date": "2025-01-31",
    }  # fmt: skip
    return {**dict.fromkeys([*convert.MODEL_COLUMNS.values(), "n_full_attention_layers"], ""), **sizes, **changes}


def an_offer(**changes: str) -> Row:
    fields = {
        "provider": "cloud", "instance_type": "one", "accelerator": "maker-part", "n_accelerator": "1", "vcpu": "8",
        "memory_gb": "64", "region": "here", "price_usd_per_h": "2.5", "pricing": "on_demand", "as_of": "2026-01-01",
        "source": "a list", "licence": "MIT",
    }  # fmt: skip
    return {**fields, **changes}


@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [
        ({"sliding_window": "512"}, "n_sliding_layer", "2"),
        ({"sliding_window": "512", "n_sliding_attention_layers": "0"}, "sliding_window", ""),
        ({"release_date": "2025-12"}, "released", ""),
        ({"note": "INT4 experts"}, "weight_precision", "int4"),
        ({"n_params_published": "1000"}, "n_param_difference", ""),
        (
            {"n_params_published": "2000", "status": "rounded"},
            "n_param_difference",
            "the published figure is rounded",
        ),
        ({"attention": "hybrid-linear", "kv_lora_rank": "4"}, "attention", "mla"),
        ({"n_shared_experts": "2", **EXPERTS}, "shared_expert_intermediate_size", "12"),
        ({"attention": "mamba-hybrid", "n_full_attention_layers": "0", "n_layers": "8"}, "n_linear_layer", "8"),
    ],
)
def test_a_model_row_is_completed(changes: dict[str, str], column: str, value: str) -> None:
    assert convert.convert_model(a_model(**changes))[column] == value


@pytest.mark.parametrize(
    ("convert_row", "row", "reason"),
    [
        (convert.convert_model, a_model(n_heads=""), "n_head not known"),
        (convert.convert_offer, an_offer(n_accelerator="0"), "processor only"),
        (convert.convert_offer, an_offer(as_of=""), "no date"),
        (convert.convert_offer, an_offer(licence="no LICENSE file found"), "no licence"),
        (convert.convert_offer, an_offer(provider="LLM-Pilot price list"), "price list of a benchmark"),
        (convert.convert_offer, an_offer(provider="vast (median)"), "ask on a market"),
        (convert.convert_offer, an_offer(source="aws-neuron-sdk"), "term of the reservation"),
    ],
)
def test_a_row_is_left_out_for_a_reason(convert_row: Callable[[Row], Row], row: Row, reason: str) -> None:
    with pytest.raises(SkippedRow, match=reason):
        convert_row(row)


def test_additions_are_in_the_catalogue_with_lineage_source_and_count() -> None:
    catalog = load_catalog()
    assert {*ENTRIES, *FACTS["configs"]} <= set(catalog.models)
    for name, entry in ENTRIES.items():
        spec = catalog.models[name]
        is_near = abs(spec.n_param / entry.get("n_param_published", spec.n_param) - 1) < 0.001
        assert is_near or "n_param_difference" in entry, name
        assert (spec.lineage != name, spec.source) == (True, entry["source"])
    for row in read(HERE / "model_aliases.csv"):
        spec = catalog.model(row["alias"])
        assert (spec.id, row["reason"] != "") == (row["id"], True)
        assert spec.weight_precision == (row["weight_precision"] or catalog.models[row["id"]].weight_precision)
    for row in read(HERE / "accelerator_aliases.csv"):
        assert catalog.accelerator(row["alias"]).id == row["id"]


@pytest.mark.parametrize(
    ("name", "lineage"),
    [
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3-8b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "qwen2-1.5b"),
        ("nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "llama-70b"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-30b-a3b"),
        ("codellama/CodeLlama-7b-hf", "llama-7b"),
        ("mistralai/Mistral-Medium-3.5-128B", "devstral-2-123b"),
        ("zai-org/GLM-4.7-FP8", "glm-4.5-355b"),
    ],
)
def test_a_fine_tune_has_the_lineage_of_its_base(name: str, lineage: str) -> None:
    assert load_catalog().model(name).lineage == lineage
