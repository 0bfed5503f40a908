"""The extension adds rows with sources, keeps lineages together, and changes nothing when it runs again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from builders.catalog import extend
from builders.catalog.convert import ACCELERATOR_COLUMNS, Row
from roofcast.data.catalog import load_catalog
from tests.data.model_config.model_configs import LLAMA_3_1_8B

ENTRIES = json.loads((extend.HERE / "added_models.json").read_text(encoding="utf-8"))
ALIASES = extend.read(extend.HERE / "added_model_aliases.csv")
OFFER_KEY = ("provider", "region", "instance_type", "pricing")
PARTS = extend.read(extend.HERE / "added_accelerator_aliases.csv")


def a_collection(folder: Path) -> Path:
    raw = folder / "raw"
    (raw / "models").mkdir(parents=True)
    (raw / "models" / "maker__new.json").write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")
    sheet = dict.fromkeys(ACCELERATOR_COLUMNS, "") | {"id": "maker-part", "note": "a doubt", "source": "a sheet"}
    extend.write(raw / "accelerators.csv", [sheet, sheet | {"id": "maker-rumour"}])
    extend.write(raw / "offers.csv", [an_offer(), an_offer(region="eu"), an_offer(region="us", licence="none told")])
    double = {name: an_offer(instance_type="old name")[name] for name in OFFER_KEY}
    extend.write(raw / "DUPLICATES.csv", [double | {"keep": "newer"}, double | {"region": "eu", "keep": "both"}])
    return raw


def an_offer(**changes: str) -> Row:
    fields = {
        "provider": "cloud", "region": "here", "instance_type": "one", "accelerator": "maker-part",
        "n_accelerator": "1", "vcpu": "8", "host_memory_gib": "64", "pricing": "on_demand", "price_usd_per_h": "2.5",
        "as_of": "2026-01-01", "source": "a list", "licence": "MIT",
    }  # fmt: skip
    return {**fields, **changes}


def what_to_add(folder: Path) -> Path:
    added = folder / "added"
    added.mkdir()
    models = {
        "maker/new": {"family": "New", "file": "maker__new.json", "source": "a config"},
        "maker/wide": {
            "family": "New",
            "lineage": "wide",
            "config": LLAMA_3_1_8B | {"hidden_size": 8192},
            "source": "a report",
        },
    }
    changes = {"left_out": {"maker-rumour": "no data sheet"}, "repairs": {"maker-part": {"note": "no doubt"}}}
    (added / "added_models.json").write_text(json.dumps(models), encoding="utf-8")
    (added / "added_accelerators.json").write_text(json.dumps(changes), encoding="utf-8")
    alias = {"alias": "New FP8", "id": "maker/new", "weight_precision": "fp8", "reason": "quantised copy"}
    extend.write(added / "added_model_aliases.csv", [alias])
    extend.write(added / "added_accelerator_aliases.csv", [{"alias": "Part", "id": "maker-part", "reason": "name"}])
    return added


def some_tables(folder: Path) -> Path:
    tables = folder / "tables"
    tables.mkdir()
    for name in ("models", "accelerators", "model_aliases", "accelerator_aliases"):
        rows = extend.read(extend.TABLES / f"{name}.csv")
        kept = [row for row in rows if "llama-3.1-8b" in str(row).casefold()] or rows[:1]
        extend.write(tables / f"{name}.csv", kept)
    old = [an_offer(instance_type="old name"), an_offer(price_usd_per_h="3", as_of="2025-01-01")]
    extend.write(tables / "offers.csv", [*old, an_offer(provider="llm-pilot-price-list")])
    return tables


def test_rows_are_added_once(tmp_path: Path) -> None:
    raw, added, tables = a_collection(tmp_path), what_to_add(tmp_path), some_tables(tmp_path)

    extend.extend(raw, tables, added)
    first = {path.name: path.read_bytes() for path in tables.iterdir()}
    extend.extend(raw, tables, added)

    assert {path.name: path.read_bytes() for path in tables.iterdir()} == first
    models = {row["id"]: row for row in extend.read(tables / "models.csv")}
    assert (models["maker/new"]["lineage"], models["maker/new"]["source"]) == ("llama-3-8b", "a config")
    assert (models["maker/wide"]["lineage"], models["maker/wide"]["fold_group"]) == ("wide", "wide")
    parts = {row["id"]: row["note"] for row in extend.read(tables / "accelerators.csv")}
    assert parts["maker-part"] == "no doubt"
    assert "maker-rumour" not in parts
    assert {"alias": "New FP8", "id": "maker/new", "weight_precision": "fp8"} in extend.read(
        tables / "model_aliases.csv"
    )


def test_offers_are_merged_without_duplicates(tmp_path: Path) -> None:
    raw, added, tables = a_collection(tmp_path), what_to_add(tmp_path), some_tables(tmp_path)

    skipped = extend.extend(raw, tables, added)

    offers = extend.read(tables / "offers.csv")
    assert [(o["region"], o["instance_type"], o["price_usd_per_h"]) for o in offers] == [
        ("eu", "one", "2.5"),
        ("here", "one", "2.5"),
    ]
    assert skipped == {"offers.csv: no licence": 1, "offers.csv: price list of a benchmark": 1}


def test_every_added_model_is_in_the_catalogue_with_a_lineage() -> None:
    models = load_catalog().models

    assert set(ENTRIES) <= set(models)
    assert not {name for name in ENTRIES if models[name].lineage == name}
    assert all(models[name].source == entry["source"] for name, entry in ENTRIES.items())


def test_every_added_alias_resolves() -> None:
    catalog = load_catalog()

    for row in ALIASES:
        spec = catalog.model(row["alias"])
        assert (spec.id, row["reason"] != "") == (row["id"], True)
        assert spec.weight_precision == (row["weight_precision"] or catalog.models[row["id"]].weight_precision)
    assert {catalog.accelerator(row["alias"]).id for row in PARTS} == {row["id"] for row in PARTS}


@pytest.mark.parametrize(
    ("name", "lineage"),
    [
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3-8b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-70b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "qwen2-1.5b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b"),
        ("nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "llama-70b"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-30b-a3b"),
        ("codellama/CodeLlama-7b-hf", "llama-7b"),
        ("mistralai/Mistral-Medium-3.5-128B", "devstral-2-123b"),
        ("zai-org/GLM-4.7-FP8", "glm-4.5-355b"),
    ],
)
def test_a_fine_tune_has_the_lineage_of_its_base(name: str, lineage: str) -> None:
    assert load_catalog().model(name).lineage == lineage


def test_a_published_count_is_met_or_explained() -> None:
    for name, entry in ENTRIES.items():
        published = entry.get("n_param_published", load_catalog().models[name].n_param)
        is_near = abs(load_catalog().models[name].n_param / published - 1) < 0.001
        assert is_near or "n_param_difference" in entry, name


def test_columns_of_the_list_of_aliases_are_those_that_are_read() -> None:
    with (extend.HERE / "added_model_aliases.csv").open(encoding="utf-8") as stream:
        assert next(csv.reader(stream)) == ["alias", "id", "weight_precision", "reason"]
