from __future__ import annotations

import pytest

from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.columns import ENGINES
from roofcast.features.validity.engine_support import (
    ANY_ENGINE,
    can_run,
    default_precision,
    engines_on,
    is_engine,
    needs_copy,
    served_precisions,
    support_error,
    unknown_engine_error,
)
from roofcast.features.validity.support_table import SUPPORT

PARTS = load_catalog().accelerators
NAMES = ("nvidia-h100-sxm-80gb", "nvidia-v100-sxm2-32gb", "amd-mi300x-192gb", "intel-gaudi3-128gb")
H100, V100, MI300X, GAUDI = (PARTS[name] for name in NAMES)


def test_every_measurement_is_of_an_engine_that_the_table_admits() -> None:
    columns = ["engine", "engine_version", "weight_precision", "accelerator"]
    rows = load_campaigns(CAMPAIGNS)[columns].drop_duplicates().astype(str)
    refused = [
        (engine, version, precision, part)
        for engine, version, precision, part in rows[rows["engine"] != ""].to_numpy().tolist()
        if not is_engine(engine) or support_error(engine, precision, PARTS[part], version)
    ]
    assert refused == []


@pytest.mark.parametrize("engine", ["vlm", "tensor", "homemade"])
def test_an_engine_that_nobody_knows_is_refused_with_near_misses(engine: str) -> None:
    assert not is_engine(engine)
    assert is_engine(engine, ["homemade", "vlm", "tensor"])
    assert ("vllm" in unknown_engine_error(engine).near) == (engine == "vlm")


def test_every_engine_of_the_learner_is_known() -> None:
    assert all(map(is_engine, [*ENGINES, "vLLM", "SGLang 0.5", "ik_llama.cpp"]))


@pytest.mark.parametrize(
    ("engine", "precision", "version", "part", "field"),
    [
        ("trtllm", "fp8", "", MI300X, "engine"),
        ("trtllm", "", "", GAUDI, "engine"),
        ("sglang", "fp16", "0.5.3", V100, "engine"),
        ("vllm", "fp16", "0.20.0", V100, "engine_version"),
        ("vllm", "bf16", "0.9.1", V100, "weight_precision"),
        ("trtllm", "fp8", "", PARTS["nvidia-a100-sxm-80gb"], "weight_precision"),
    ],
)
def test_an_error_names_the_field(engine: str, precision: str, version: str, part: object, field: str) -> None:
    error = support_error(engine, precision, part, version)  # type: ignore[arg-type]
    assert error is not None
    assert error.field == field


@pytest.mark.parametrize("version", ["", "0.19.1", "v0.9.2", "main 2026-07", "PR 39481", "0.6.3.dev1"])
def test_an_old_or_unknown_version_may_run_where_the_current_one_does_not(version: str) -> None:
    assert support_error("vllm", "fp16", V100, version) is None
    assert engines_on(V100) == ()
    assert not can_run("vllm", V100)
    assert can_run("tgis", V100)
    assert can_run("llama.cpp", V100)


def test_a_vendor_that_is_not_shipped_has_no_limits_and_a_new_architecture_those_of_the_newest() -> None:
    own = H100.model_copy(update={"vendor": "Ours", "id": "ours-x1"})
    assert engines_on(own) == (ANY_ENGINE,)
    assert support_error("trtllm", "fp4", own) is None
    assert "int4" in served_precisions("trtllm", own)
    rubin = H100.model_copy(update={"architecture": "Rubin", "id": "nvidia-r100"})
    assert engines_on(rubin) == engines_on(PARTS["nvidia-b200-sxm-180gb"])
    assert default_precision("vllm", "bf16", rubin) == "bf16"


@pytest.mark.parametrize(
    ("engine", "stored", "precision", "part", "expected"),
    [
        ("vllm", "bf16", "fp8", MI300X, False),
        ("vllm", "bf16", "fp8", GAUDI, True),
        ("trtllm", "bf16", "fp16", H100, True),
        ("sglang", "fp32", "fp16", H100, False),
        ("vllm", "fp8", "bf16", H100, True),
        ("vllm", "bf16", "", H100, False),
    ],
)
def test_a_copy_is_needed_where_the_engine_does_not_convert(
    engine: str, stored: str, precision: str, part: object, expected: bool
) -> None:
    assert needs_copy(engine, stored, precision, part) == expected  # type: ignore[arg-type]


def test_every_row_has_a_source_and_precisions() -> None:
    assert all(len(row.source) > 10 and row.precisions and row.families for row in SUPPORT)
    assert all(not row.is_searched for row in SUPPORT if row.last)
