"""The converter keeps what is sound, repairs what has a source, and says why it leaves the rest out."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from builders.catalog import additions, build, convert
from builders.catalog.convert import Row, SkippedRow
from roofcast.data.catalog import load_catalog, tables
from tests.data.model_config.model_configs import LLAMA_3_1_8B

EXPERTS = {"n_experts": "4", "n_experts_per_token": "1", "moe_intermediate_size": "6"}


def a_model_row(**changes: str) -> Row:
    sizes = {
        "id": "maker/model", "lineage": "model", "fold_group": "model", "n_layers": "2", "hidden_size": "8",
        "intermediate_size": "16", "mlp_gated": "true", "n_heads": "2", "n_kv_heads": "2", "head_dim": "4",
        "attention": "mha", "vocab_size": "10", "tie_word_embeddings": "false", "torch_dtype": "bfloat16",
        "n_params_total": "1000", "n_params_active": "1000", "release_date": "2025-01-31", "source": "a paper",
    }  # fmt: skip
    return {**dict.fromkeys([*convert.MODEL_COLUMNS.values(), "n_full_attention_layers"], ""), **sizes, **changes}


def test_a_processor_is_one_socket_with_the_memory_of_its_channels() -> None:
    raw = an_accelerator_row(id="aws-graviton4", memory_gb="", fp16_tflops="", scale_up_bandwidth_gb_s="")

    row = convert.convert_accelerator(raw)

    assert (row["memory_gib"], row["peak_bf16_tflop_per_s"], row["link"]) == ("768", "34.4", "pcie5")


def an_accelerator_row(**changes: str) -> Row:
    sheet = {
        "id": "maker-part", "vendor": "maker", "name": "part", "form_factor": "SXM", "memory_gb": "80",
        "memory_bandwidth_gb_s": "2000", "fp16_tflops": "300", "scale_up_interconnect": "link",
        "scale_up_bandwidth_gb_s": "600", "scale_up_domain_size": "8", "pcie_gen": "4", "source": "a data sheet",
    }  # fmt: skip
    return {**dict.fromkeys(convert.ACCELERATOR_COLUMNS.values(), ""), **sheet, **changes}


def an_offer_row(**changes: str) -> Row:
    fields = {
        "provider": "cloud", "instance_type": "one", "accelerator": "maker-part", "n_accelerator": "1", "vcpu": "8",
        "memory_gb": "64", "region": "here", "price_usd_per_h": "2.5", "pricing": "on_demand", "as_of": "2026-01-01",
        "source": "a list", "licence": "MIT",
    }  # fmt: skip
    return {**fields, **changes}


def an_alias_row(alias: str, **changes: str) -> Row:
    fields = {"raw_name": alias, "context": "", "canonical_id": "maker/model", "quant_in_name": "", "resolved": "yes"}
    return {**fields, **changes}


def _write(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_tables_are_written_and_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = {"raw_gpu": "Part", "canonical_id": "maker-part", "confidence": "high"}
    _write(tmp_path / "models.csv", [a_model_row(), a_model_row(id="maker/short", n_heads="")])
    _write(tmp_path / "accelerators.csv", [an_accelerator_row()])
    _write(
        tmp_path / "prices.csv",
        [an_offer_row(), an_offer_row(as_of="2026-02-01", price_usd_per_h="2"), an_offer_row(accelerator="other")],
    )
    _write(tmp_path / "model_aliases.csv", [an_alias_row("Model FP8", quant_in_name="FP8"), an_alias_row("/a/model")])
    _write(tmp_path / "gpu_aliases.csv", [gpu])
    _write(
        tmp_path / "params_check.csv", [{"id": "maker/model", "status": "published count also has the MTP module"}]
    )
    out = tmp_path / "out"
    out.mkdir()

    build.main(["--raw", str(tmp_path), "--out", str(out)])
    monkeypatch.setattr("importlib.resources.files", lambda _: out)

    printed = capsys.readouterr().out
    assert "1 left out of models.csv: n_head not known" in printed
    assert tables.load_models()[0].n_param_published is None
    assert "1 left out of offers.csv: newer one kept" in printed
    assert "1 left out of offers.csv: accelerator left out" in printed
    assert [spec.id for spec in tables.load_models()] == ["maker/model"]
    parts = {spec.id: spec.memory_byte for spec in tables.load_accelerators()}
    added = {"amd-rx-7900-xtx-24gb": 24 * 2**30, "nvidia-rtx-a5000-24gb": 24 * 2**30}
    assert parts == added | {"maker-part": 80 * 2**30}
    assert [str(offer.price_usd_per_h) for offer in tables.load_offers()] == ["2"]
    assert tables.load_aliases("model_aliases.csv") == {"Model FP8": "maker/model"}
    assert tables.load_alias_precisions() == {"Model FP8": "fp8"}


@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [
        ({"sliding_window": "512"}, "n_sliding_layer", "2"),
        ({"sliding_window": "512", "n_sliding_attention_layers": "0"}, "sliding_window", ""),
        ({"release_date": "2025-12"}, "released", ""),
        ({"torch_dtype": "float32"}, "weight_precision", "fp32"),
        ({"note": "INT4 experts"}, "weight_precision", "int4"),
        ({"n_params_published": "1000"}, "n_param_difference", ""),
        (
            {"n_params_published": "2000", "n_params_published_source": "name (2k, rounded)"},
            "n_param_difference",
            "the published figure is rounded",
        ),
        ({"attention": "hybrid-linear"}, "attention", "gqa"),
        ({"attention": "hybrid-linear", "kv_lora_rank": "4"}, "attention", "mla"),
    ],
)
def test_a_model_row_is_completed(changes: dict[str, str], column: str, value: str) -> None:
    assert convert.convert_model(a_model_row(**changes))[column] == value


def test_shared_experts_have_the_width_of_routed_ones() -> None:
    raw = a_model_row(n_shared_experts="2", **EXPERTS)

    assert convert.convert_model(raw)["shared_expert_intermediate_size"] == "12"


def test_blocks_without_attention_keep_no_growing_cache() -> None:
    raw = a_model_row(
        n_layers="10", attention="mamba-hybrid", n_full_attention_layers="2", n_linear_attention_layers="4",
        **EXPERTS,
    )  # fmt: skip

    row = convert.convert_model(raw)

    assert (row["n_linear_layer"], row["n_dense_layer"]) == ("8", "6")


def test_an_optional_bridge_gives_way_to_pcie() -> None:
    raw = an_accelerator_row(scale_up_interconnect="nvlink3 bridge (pairs) / pcie4", scale_up_domain_size="2")

    row = convert.convert_accelerator(raw)

    assert (row["link"], row["link_bandwidth_gb_per_s"], row["link_domain_size"]) == ("pcie4", "64", "1")


def test_a_repair_adds_its_source() -> None:
    raw = an_accelerator_row(id="nvidia-gb10-dgx-spark", fp16_tflops="", scale_up_bandwidth_gb_s="")

    row = convert.convert_accelerator(raw)

    assert row["peak_bf16_tflop_per_s"] == "118.8"
    assert row["source"].startswith("a data sheet; github NVIDIA")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"memory_gb": ""}, "memory not known"),
        ({"memory_bandwidth_gb_s": ""}, "bandwidth not known"),
        ({"fp16_tflops": ""}, "peak not known"),
        ({"scale_up_bandwidth_gb_s": ""}, "link not known"),
    ],
)
def test_an_accelerator_is_left_out_for_a_reason(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(SkippedRow, match=reason):
        convert.convert_accelerator(an_accelerator_row(**changes))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n_accelerator": "0"}, "processor only"),
        ({"as_of": ""}, "no date"),
        ({"licence": ""}, "no licence"),
        ({"licence": "no LICENSE file found"}, "no licence"),
        ({"licence": "none told in the repository"}, "no licence"),
        ({"provider": "LLM-Pilot price list"}, "price list of a benchmark"),
        ({"provider": "vast (median)"}, "ask on a market"),
        ({"source": "aws-neuron-sdk"}, "term"),
    ],
)
def test_an_offer_is_left_out_for_a_reason(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(SkippedRow, match=reason):
        convert.convert_offer(an_offer_row(**changes))


@pytest.mark.parametrize(
    ("alias", "changes", "reason"),
    [
        ("model", {"resolved": "no"}, "several models or none"),
        ("model", {"context": "some rows"}, "several models or none"),
        ("/disk/model", {}, "path or label"),
        ("model/lora.yaml", {}, "path or label"),
        ("something else", {}, "path or label"),
        ("model-Q6", {"quant_in_name": "Q6_K"}, "precision"),
    ],
)
def test_a_model_alias_is_left_out_for_a_reason(alias: str, changes: dict[str, str], reason: str) -> None:
    with pytest.raises(SkippedRow, match=reason):
        convert.convert_model_alias(an_alias_row(alias, **changes))


@pytest.mark.parametrize(
    ("alias", "confidence", "reason"),
    [("A100", "low", "several parts"), ("part (x87)", "high", "more than the part")],
)
def test_an_accelerator_alias_is_left_out_for_a_reason(alias: str, confidence: str, reason: str) -> None:
    with pytest.raises(SkippedRow, match=reason):
        convert.convert_accelerator_alias({"raw_gpu": alias, "canonical_id": "p", "confidence": confidence})


def test_an_alias_of_two_models_is_of_none() -> None:
    rows = [{"alias": "Twin", "id": "a/one"}, {"alias": "twin", "id": "a/two"}]

    kept, reasons = convert.consolidate("model_aliases.csv", rows, {"models.csv": {"a/one", "a/two"}})

    assert (kept, len(reasons)) == ([], 2)


def test_a_model_is_added_from_its_config(tmp_path: Path) -> None:
    name = "zai-org/GLM-5.1"
    (tmp_path / "zai-org--GLM-5.1_config.json").write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")

    row = additions.convert_config(name, tmp_path, [])

    assert (row["id"], row["lineage"], row["n_param"], row["n_expert"]) == (name, "glm-5-744b", "8030261248", "")
    assert row["source"].endswith("zai-org--GLM-5.1_config.json")


def test_the_shape_of_a_known_model_gives_the_lineage(tmp_path: Path) -> None:
    (tmp_path / "zai-org--GLM-5.1_config.json").write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")
    first = additions.convert_config("zai-org/GLM-5.1", tmp_path, [])
    kin = first | {"id": "meta/llama", "lineage": "llama", "fold_group": "llamas"}

    row = additions.convert_config("zai-org/GLM-5.1", tmp_path, [kin])

    assert (row["lineage"], row["fold_group"]) == ("llama", "llamas")


def test_a_model_without_a_config_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(SkippedRow, match="no config"):
        additions.convert_config("zai-org/GLM-5.1", tmp_path, [])


def test_every_added_model_is_in_the_catalogue() -> None:
    assert set(additions.ADDED_MODELS) <= set(load_catalog().models)
