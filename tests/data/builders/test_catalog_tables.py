"""Catalogue tables: lists merged again change nothing, offers are left out for a reason, additions have a source."""

import json
from pathlib import Path

import pytest

from builders.catalog.build import HERE, LISTS, SHIPPED, main, read
from builders.catalog.nodes import Row, convert_offer
from builders.published import RejectionError
from roofcast.data.catalog import load_catalog

RAW = Path(__file__).parents[3].parent / "shared" / "data"
needs_raw = pytest.mark.skipif(
    not (RAW / LISTS).is_dir(), reason="the collections are missing next to the checkout (shared/data)"
)
ENTRIES = json.loads((HERE / "added_models.json").read_text(encoding="utf-8"))


@needs_raw
def test_tables_are_rebuilt_as_shipped(tmp_path: Path) -> None:
    main(["--raw", str(RAW), "--out", str(tmp_path)])
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (SHIPPED / file.name).read_bytes(), file.name


def an_offer(**changes: str) -> Row:
    fields = {
        "provider": "cloud", "instance_type": "one", "accelerator": "maker-part", "n_accelerator": "1", "vcpu": "8",
        "host_memory_gib": "64", "region": "here", "price_usd_per_h": "2.5", "pricing": "on_demand",
        "as_of": "2026-01-01", "source": "a list", "licence": "MIT",
    }  # fmt: skip
    return {**fields, **changes}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (an_offer(n_accelerator="0"), "processor only"),
        (an_offer(as_of=""), "no date"),
        (an_offer(licence="no LICENSE file found"), "no licence"),
        (an_offer(provider="LLM-Pilot price list"), "price list of a benchmark"),
        (an_offer(provider="vast (median)"), "ask on a market"),
        (an_offer(source="aws-neuron-sdk"), "term of the reservation"),
    ],
)
def test_an_offer_is_left_out_for_a_reason(row: Row, reason: str) -> None:
    with pytest.raises(RejectionError, match=reason):
        convert_offer(row)


def test_additions_are_in_the_catalogue_with_lineage_source_and_count() -> None:
    catalog = load_catalog()
    assert set(ENTRIES) <= set(catalog.models)
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
