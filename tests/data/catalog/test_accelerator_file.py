"""A data sheet in TOML becomes a spec in SI units, or a message with its line and field."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.catalog.accelerator_file import (
    accelerator_template,
    load_accelerator_file,
    parse_accelerator,
)
from roofcast.data.catalog.accelerator_lint import lint_accelerators
from roofcast.data.errors import SchemaError
from roofcast.data.toml_file import MAX_TOML_BYTE
from tests.effort import n_example

TEMPLATE = accelerator_template()


def a_sheet(**changes: str | None) -> str:
    """Return the template with the values of fields replaced, as written in TOML; None takes one out."""
    lines = []
    for line in TEMPLATE.splitlines():
        name = line.partition("=")[0].strip()
        if name not in changes:
            lines.append(line)
        elif changes[name] is not None:
            lines.append(f"{name} = {changes[name]}")
    return "\n".join(lines)


def test_the_template_is_sound_and_unsuspicious() -> None:
    spec = parse_accelerator(TEMPLATE)

    assert spec.memory_byte == 96 * 2**30
    assert spec.bandwidth_byte_per_s == 4e12
    assert spec.peak_flop_per_s == {"bf16": 800e12, "fp16": 800e12, "fp8": 1600e12}
    assert (spec.l2_byte, spec.link_bandwidth_byte_per_s) == (64 * 2**20, 128e9)
    assert not lint_accelerators([spec])


def test_one_peak_of_32_bits_is_enough() -> None:
    text = a_sheet(peak_bf16_tflop_per_s=None, peak_fp16_tflop_per_s=None, peak_fp8_tflop_per_s=None)

    assert parse_accelerator(f"{text}\npeak_fp32_tflop_per_s = 7").peak_flop_per_s == {"fp32": 7e12}


WRONG = {
    "memory_gb": (f"{TEMPLATE}\nmemory_gb = 96", "did you mean memory_gib"),
    "colour": (f"{TEMPLATE}\ncolour = 'red'", "is no field"),
    "memory_gib": (a_sheet(memory_gib='"96"'), "without quotes"),
    "bandwidth_gb_per_s": (a_sheet(bandwidth_gb_per_s="-4000"), "greater than 0"),
    "peak_bf16_tflop_per_s": (a_sheet(peak_bf16_tflop_per_s="nan"), "finite"),
    "peak_fp8_tflop_per_s": (a_sheet(peak_fp8_tflop_per_s="0"), "greater than 0"),
    "link_bandwidth_gb_per_s": (a_sheet(link_bandwidth_gb_per_s="inf"), "finite"),
    "link_domain_size": (a_sheet(link_domain_size="true"), "number"),
    "l2_mib": (a_sheet(l2_mib="[64]"), "number"),
    "year": (a_sheet(year="1886"), "2006"),
    "id": (a_sheet(id='"../../etc"'), "letters"),
    "name": (a_sheet(name='"a\\nb"'), "one line"),
    "vendor": (a_sheet(vendor="7"), "string"),
}


@pytest.mark.parametrize(("field", "case"), WRONG.items(), ids=list(WRONG))
def test_a_wrong_field_is_named_with_its_line(field: str, case: tuple[str, str]) -> None:
    text, problem = case
    with pytest.raises(SchemaError) as refused:
        parse_accelerator(text, "mine.toml")

    assert refused.value.field == field
    assert problem in str(refused.value)
    assert text.splitlines()[refused.value.line - 1].startswith(field)


NO_PEAK = a_sheet(peak_bf16_tflop_per_s=None, peak_fp16_tflop_per_s=None)
REQUIRED = ("id", "vendor", "name", "memory_gib", "bandwidth_gb_per_s", "source")
MISSING = {f"{field}: field required": a_sheet(**{field: None}) for field in REQUIRED}


@pytest.mark.parametrize(("problem", "text"), [*MISSING.items(), ("must hold fp32, fp16 or bf16", NO_PEAK)])
def test_a_missing_field_is_named(problem: str, text: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        parse_accelerator(text)


BROKEN = {
    b"id = ": "line 1",
    b'id = "a"\nid = "b"': "line 2",
    b"\xff\xfe": "UTF-8",
    b"a = " + b"[" * 20_000: "is no valid TOML",
    b"year = " + b"9" * 5_000: "is no valid TOML",
    b"#" * (MAX_TOML_BYTE + 1): "at most 1000000 bytes",
}


@pytest.mark.parametrize(("body", "problem"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_file_is_refused(body: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(body)

    with pytest.raises(SchemaError, match=r"mine\.toml") as refused:
        load_accelerator_file(tmp_path / "mine.toml")
    assert problem in str(refused.value)


@pytest.mark.parametrize("name", ["absent.toml", ".", "nul\0.toml"])
def test_a_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        load_accelerator_file(tmp_path / name)


@settings(max_examples=n_example(300), deadline=None)
@given(st.integers(0, len(TEMPLATE)), st.text(max_size=12), st.integers(0, 12))
def test_only_a_schema_error_escapes(place: int, inserted: str, n_cut: int) -> None:
    with contextlib.suppress(SchemaError):
        spec = parse_accelerator(TEMPLATE[:place] + inserted + TEMPLATE[place + n_cut :])
        assert spec.bandwidth_byte_per_s > 0
