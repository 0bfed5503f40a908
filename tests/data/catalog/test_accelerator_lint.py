"""The linter is silent about the catalogue, but for what is explained, and speaks about planted faults."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.catalog.accelerator_lint import USUAL, Finding, check_sheet_units, lint_accelerators
from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec
from tests.every_row import for_every

SHIPPED = tuple(load_catalog().accelerators.values())
PLAIN = [spec for spec in SHIPPED if not lint_accelerators([spec])]


def rules(spec: AcceleratorSpec) -> list[str]:
    return [finding.rule for finding in lint_accelerators([spec])]


def changed(name: str, **changes: Any) -> AcceleratorSpec:
    spec = load_catalog().accelerator(name)
    peaks = {**spec.peak_flop_per_s, **changes.pop("peaks", {})}
    return spec.model_copy(update={"peak_flop_per_s": peaks, **changes})


@for_every(SHIPPED)
def test_the_catalogue_has_no_finding_without_a_reason(spec: AcceleratorSpec) -> None:
    assert not [str(finding) for finding in lint_accelerators([spec]) if not finding.reason]


def test_each_exception_is_needed() -> None:
    found = {(finding.accelerator, finding.rule) for finding in lint_accelerators(SHIPPED)}

    assert {(name, rule) for name, rules in USUAL["exceptions"].items() for rule in rules} == found


@pytest.mark.parametrize(
    ("name", "peaks", "rule"),
    [
        ("h100-sxm-80gb", {"bf16": 1979e12, "fp16": 1979e12}, "half over fp32"),
        ("a100-sxm-80gb", {"bf16": 624e12, "fp16": 624e12}, "half over fp32"),
        ("a100-sxm-80gb", {"int8": 1248e12}, "int8 over half"),
        ("l40s-48gb", {"fp8": 1466e12}, "fp8 over half"),
        ("l40s-48gb", {"int8": 1466e12}, "int8 over half"),
        ("b200-sxm-180gb", {"fp4": 18_000e12}, "fp4 over fp8"),
        ("mi355x-288gb", {"fp8": 10_066e12}, "fp8 over half"),
        ("rtx-4090-24gb", {"bf16": 330.4e12, "fp16": 330.4e12}, "half over fp32"),
        ("rtx-4090-24gb", {"int8": 1321e12}, "int8 over half"),
        ("l4-24gb", {"bf16": 242e12, "fp16": 242e12}, "half over fp32"),
    ],
)
def test_a_sparse_peak_is_a_finding(name: str, peaks: dict[str, float], rule: str) -> None:
    findings = lint_accelerators([changed(name, peaks=peaks)])

    assert [finding.problem for finding in findings if finding.rule == rule and "sparse" in finding.problem]


@pytest.mark.parametrize(
    ("name", "changes", "rule"),
    [
        ("h100-sxm-80gb", {"bandwidth_byte_per_s": 3.35e9}, "bandwidth"),
        ("h100-sxm-80gb", {"bandwidth_byte_per_s": 26.8e12}, "bandwidth"),
        ("h100-sxm-80gb", {"memory_byte": 800 * 2**30}, "capacity"),
        ("h100-sxm-80gb", {"memory_byte": 188 * 2**30}, "bandwidth over capacity"),
        ("h100-sxm-80gb", {"year": 2019}, "memory by year"),
        ("h100-sxm-80gb", {"year": 2019}, "precision by year"),
        ("h100-sxm-80gb", {"tdp_w": 70.0}, "flop per joule"),
        ("h100-sxm-80gb", {"tdp_w": 7000.0}, "power"),
        ("h100-sxm-80gb", {"link_bandwidth_byte_per_s": 450e9}, "link"),
        ("h100-sxm-80gb", {"link_bandwidth_byte_per_s": 9e12}, "link over memory"),
        ("h100-sxm-80gb", {"link_domain_size": 1}, "link domain"),
        ("l4-24gb", {"link_bandwidth_byte_per_s": 32e9}, "link"),
        ("h100-sxm-80gb", {"l2_byte": 50.0}, "cache"),
        ("h100-sxm-80gb", {"bandwidth_byte_per_s": 0.3e12}, "byte per flop"),
    ],
)
def test_a_number_out_of_family_is_a_finding(name: str, changes: dict[str, Any], rule: str) -> None:
    assert rule in rules(changed(name, **changes))


def test_half_a_link_bandwidth_is_reported_as_one_direction() -> None:
    findings = lint_accelerators([changed("h100-sxm-80gb", link_bandwidth_byte_per_s=450e9)])

    assert ["one direction" in finding.problem for finding in findings] == [True]


def test_a_finding_reads_as_a_sentence() -> None:
    finding = Finding("x1", "power", "tdp_w", "is 7e+03 W, usual is 5 to 3000", "cooled by a river")

    assert str(finding) == "x1: tdp_w: is 7e+03 W, usual is 5 to 3000 (known: cooled by a river)"


def test_an_exception_of_the_catalogue_does_not_cover_another_part() -> None:
    mine = changed("h20-96gb", id="mine")

    assert [finding.reason for finding in lint_accelerators([mine])] == [""]


@given(st.sampled_from(PLAIN), st.sampled_from(["fp8", "int8", "fp4", "int4"]), st.floats(4.5, 1000))
def test_a_far_too_fast_narrow_peak_is_a_finding(spec: AcceleratorSpec, precision: str, factor: float) -> None:
    peaks: dict[str, float] = {str(name): peak for name, peak in spec.peak_flop_per_s.items()}
    if precision in peaks:
        peaks[precision] *= factor
        faster = spec.model_copy(update={"peak_flop_per_s": peaks})
        assert any(precision in rule for rule in rules(faster))


@given(st.sampled_from(SHIPPED), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_no_data_sheet_breaks_the_linter(spec: AcceleratorSpec, bandwidth: float, memory: float, peak: float) -> None:
    odd = spec.model_copy(
        update={
            "bandwidth_byte_per_s": spec.bandwidth_byte_per_s * bandwidth,
            "memory_byte": spec.memory_byte * memory,
            "peak_flop_per_s": {name: value * peak for name, value in spec.peak_flop_per_s.items()},
        }
    )

    assert all(finding.problem for finding in lint_accelerators([odd]))


@for_every(SHIPPED)
def test_every_known_accelerator_is_in_range_of_the_others(spec: AcceleratorSpec) -> None:
    check_sheet_units(spec, [other for other in SHIPPED if other.id != spec.id])


@pytest.mark.parametrize(
    ("field", "factor", "said"),
    [
        ("memory_byte", 1e-3, "memory_gib: is 0.024, but 8 to 768"),
        ("memory_byte", 2**10, "memory_gib"),
        ("bandwidth_byte_per_s", 1e-3, "bandwidth_gb_per_s: is 0.3"),
        ("bandwidth_byte_per_s", 1e3, "bandwidth_gb_per_s"),
        ("link_bandwidth_byte_per_s", 1e-3, "link_bandwidth_gb_per_s"),
        ("l2_byte", 2**10, "l2_mib"),
        ("tdp_w", 1e-3, "tdp_w"),
        ("fp8", 1e-3, "peak_"),
        ("fp8", 1e3, "peak_"),
    ],
)
def test_a_slip_of_the_unit_is_refused(field: str, factor: float, said: str) -> None:
    part = load_catalog().accelerator("l4-24gb")
    peaks: dict[Any, float] = dict(part.peak_flop_per_s)
    change = {"peak_flop_per_s": peaks | {field: peaks[field] * factor}} if field in peaks else {}
    slipped = part.model_copy(update=change or {field: getattr(part, field) * factor})
    with pytest.raises(InputError, match=said):
        check_sheet_units(slipped, SHIPPED)
