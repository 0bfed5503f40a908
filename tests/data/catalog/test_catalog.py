"""The catalogue loads, is found by name, and holds what data sheets say."""

import datetime as dt
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.catalog.catalog import HOST_MEMORY_RATIO
from roofcast.data.catalog.catalog_tables import read_aliases, read_specs
from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from tests.every_row import for_every


def a_model(name: str) -> ModelSpec:
    return load_catalog().model("llama-3.1-8b").model_copy(update={"id": name})


def a_catalog(*names: str, **aliases: str) -> Catalog:
    return Catalog(models={n: a_model(n) for n in names}, accelerators={}, model_aliases=aliases)


def test_tables_are_of_the_expected_size() -> None:
    catalog = load_catalog()

    assert len(catalog.models) >= 225
    assert len(catalog.accelerators) >= 127
    assert len(catalog.offers) >= 2829


def test_it_is_read_once() -> None:
    assert load_catalog() is load_catalog()


def test_loading_imports_no_numerical_library() -> None:
    code = "import sys, roofcast.data.catalog as c; c.load_catalog(); print(*{'numpy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("LLAMA-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("llama 3.1 8b", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("gpt-oss-20b", "openai/gpt-oss-20b"),
        ("llama-7b", "huggyllama/llama-7b"),
        ("Qwen3-32B-NVFP4", "Qwen/Qwen3-32B"),
    ],
)
def test_models_have_names_and_aliases(name: str, expected: str) -> None:
    assert load_catalog().model(name).id == expected


def test_the_name_of_a_quantised_copy_says_its_precision() -> None:
    catalog = load_catalog()

    assert catalog.model("nvidia/Qwen3-32B-NVFP4").weight_precision == "fp4"
    assert catalog.model("Qwen/Qwen3-32B").weight_precision == "bf16"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia-h100-sxm-80gb", "nvidia-h100-sxm-80gb"),
        ("h100 pcie 80gb", "nvidia-h100-pcie-80gb"),
        ("H100 SXM5 80GB", "nvidia-h100-sxm-80gb"),
        ("H100-96GB", "nvidia-h100-sxm-96gb"),
        ("Radeon RX 7900 XTX", "amd-rx-7900-xtx-24gb"),
        ("A10-24GB", "nvidia-a10-24gb"),
    ],
)
def test_accelerators_have_names_and_aliases(name: str, expected: str) -> None:
    assert load_catalog().accelerator(name).id == expected


def test_an_unknown_model_lists_near_misses() -> None:
    with pytest.raises(UnknownNameError) as refused:
        load_catalog().model("Qwen3-33B")

    assert "Qwen/Qwen3-32B" in refused.value.near


def test_the_part_after_the_slash_must_be_unambiguous() -> None:
    catalog = a_catalog("a/twin", "b/twin", "b/single")

    assert catalog.model("single").id == "b/single"
    with pytest.raises(UnknownNameError):
        catalog.model("twin")


def test_a_model_can_be_added_and_replaced() -> None:
    catalog = a_catalog("a/one").with_models([a_model("a/two")])
    changed = catalog.with_models([a_model("a/two").model_copy(update={"note": "changed"})])

    assert set(catalog.models) == {"a/one", "a/two"}
    assert changed.model("two").note == "changed"
    assert catalog.model("two").note != "changed"


def test_an_accelerator_can_be_added_and_replaced() -> None:
    catalog = load_catalog()
    mine = catalog.accelerator("h100-sxm-80gb").model_copy(update={"id": "acme-x1", "name": "X1"})
    changed = catalog.with_accelerators([mine]).with_accelerators([mine.model_copy(update={"note": "changed"})])

    assert changed.accelerator("x1").note == "changed"
    assert "acme-x1" not in catalog.accelerators


@pytest.mark.parametrize(
    ("catalog", "problem"),
    [
        (lambda: a_catalog("a/one", "A/One"), "names both"),
        (lambda: a_catalog("one", "two", One="two"), "names both"),
        (lambda: a_catalog("one", other="three"), "not in the catalogue"),
        (lambda: Catalog({}, {}, offers=load_catalog().offers[:1]), "accelerator"),
    ],
)
def test_ambiguous_and_dangling_names_are_refused(catalog: Callable[[], Catalog], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        catalog()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia-h100-sxm-80gb", {"memory_byte": 80 * 2**30, "bandwidth_byte_per_s": 3.35e12, "link_domain_size": 8}),
        ("nvidia-h100-sxm-80gb", {"bf16": 989.4e12, "fp8": 1978.9e12, "link_bandwidth_byte_per_s": 900e9}),
        ("nvidia-h200-sxm-141gb", {"memory_byte": 141 * 2**30}),
        ("amd-mi300x-192gb", {"memory_byte": 192 * 2**30}),
        ("nvidia-a100-pcie-40gb", {"link": "pcie4", "link_bandwidth_byte_per_s": 64e9, "link_domain_size": 1}),
    ],
)
def test_a_data_sheet_is_in_si_and_without_an_optional_bridge(name: str, expected: dict[str, object]) -> None:
    spec = load_catalog().accelerators[name]
    cells = spec.model_dump() | spec.peak_flop_per_s

    assert {field: cells[field] for field in expected} == expected


def test_the_h100_with_96_gb_has_the_peaks_of_its_chip_and_a_memory_of_its_own() -> None:
    parts = load_catalog().accelerators
    part, usual = parts["nvidia-h100-sxm-96gb"], parts["nvidia-h100-sxm-80gb"]

    assert part.peak_flop_per_s == usual.peak_flop_per_s
    assert (part.bandwidth_byte_per_s, part.tdp_w) == (2.4e12, 500)
    assert "bound them from above" in part.note


@for_every(load_catalog().accelerators.values())
def test_peaks_are_ordered_by_width(spec: AcceleratorSpec) -> None:
    peaks = spec.peak_flop_per_s
    half = peaks.get("bf16", peaks.get("fp16", peaks.get("fp32", 0.0)))

    assert peaks.get("fp32", 0.0) <= half
    assert peaks.get("fp8", half) >= half * 0.999
    assert peaks.get("fp4", half) >= half


def test_every_row_has_a_source() -> None:
    catalog = load_catalog()

    assert all(spec.source for spec in catalog.models.values())
    assert all(spec.source for spec in catalog.accelerators.values())
    assert all(offer.source for offer in catalog.offers)
    assert all(offer.licence for offer in catalog.offers)


def test_offers_have_one_price_each() -> None:
    offers = load_catalog().offers

    assert len({offer.id for offer in offers}) == len(offers)
    assert min(offer.as_of for offer in offers) >= dt.date(2024, 1, 1)


def test_offers_of_every_pricing_and_of_other_vendors_are_known() -> None:
    catalog = load_catalog()

    assert {o.pricing for o in catalog.offers} == {
        "on_demand",
        "spot",
        "reserved_1y",
        "reserved_3y",
        "capacity_block",
    }
    assert {catalog.accelerators[o.accelerator].vendor for o in catalog.offers} >= {"AMD", "AWS", "Google", "NVIDIA"}


def test_equal_shapes_are_of_one_fold_group() -> None:
    groups: dict[tuple[int, ...], set[str]] = {}
    for m in load_catalog().models.values():
        shape = (m.n_layer, m.n_encoder_layer, m.hidden_size, m.intermediate_size, m.n_head, m.n_kv_head, m.n_expert)
        groups.setdefault(shape, set()).add(m.fold_group)

    assert all(len(names) == 1 for names in groups.values())


def read_accelerators(file: Path) -> list[AcceleratorSpec]:
    return list(read_specs(file, AcceleratorSpec))


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (read_accelerators, "id,vendor\nx,y\n", r"line 2: name: field required"),
        (read_accelerators, "id,memory_gib\nx,many\n", r"line 2: memory_gib: must be a number, got 'many'"),
        (read_aliases, "alias,id\na,b\na,c\n", "line 3: alias: 'a' occurs twice"),
    ],
)
def test_a_bad_row_has_file_and_line(read: Callable[[Path], object], text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=rf"table\.csv, {problem}"):
        read(tmp_path / "table.csv")


def test_a_host_has_the_memory_of_its_accelerators_offers() -> None:
    """A host of eight H100 has 2 TB; one without offers twice its accelerators' memory; a Mac none beside it."""
    catalog = load_catalog()
    byte = [catalog.host_memory_byte(f"nvidia-{name}") for name in ("h100-sxm-80gb", "h800-sxm-80gb")]
    assert byte == pytest.approx([234 * 2**30, 160 * 2**30], rel=0.02)
    assert catalog.host_memory_byte("apple-m4-max-128gb") == 0
    told = {offer.accelerator for offer in catalog.offers if offer.memory_byte}
    ratios = [catalog.host_memory_byte(name) / catalog.accelerators[name].memory_byte for name in told]
    assert statistics.median(ratios) == pytest.approx(HOST_MEMORY_RATIO, rel=0.1)
