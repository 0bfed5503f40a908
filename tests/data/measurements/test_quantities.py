from __future__ import annotations

import inspect
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.docs_tables import TABLES, main, with_tables
from roofcast.data.errors import InputError
from roofcast.data.importers import FORMATS
from roofcast.data.measurements import quantities
from roofcast.data.measurements.quantities import (
    CONVERSIONS,
    LOAD_MEANINGS,
    MEAN_ONLY,
    QUANTITIES,
    S_PER_UNIT,
    STATISTIC_MEANINGS,
    closed_loop_throughput,
    e2e_from_parts,
    output_from_total_throughput,
    s_from_unit,
    static_batch_throughput,
    total_from_output_throughput,
    tpot_from_e2e,
    tpot_from_inclusive,
    tpot_from_user_speed,
)
from roofcast.data.measurements.schema import LOADS, OUTCOME_COLUMNS
from roofcast.data.specs import STATISTICS

DOCUMENT = Path(__file__).parents[3] / "docs" / "METRICS.md"
REGENERATE = "python -m codegen.docs_tables docs/METRICS.md"

times = st.floats(1e-6, 1e3)
lengths = st.floats(2, 1e5)


def test_every_outcome_statistic_and_load_is_described() -> None:
    assert {q.column for q in QUANTITIES} == set(OUTCOME_COLUMNS)
    assert tuple(STATISTIC_MEANINGS) == STATISTICS
    assert tuple(LOAD_MEANINGS) == LOADS
    assert {q.column for q in QUANTITIES if q.statistics == MEAN_ONLY} == {
        name for name in OUTCOME_COLUMNS if "throughput" in name or name in ("power_w", "memory_byte")
    }


def test_every_conversion_is_registered() -> None:
    functions = {
        f for _, f in inspect.getmembers(quantities, inspect.isfunction) if f.__module__ == quantities.__name__
    }
    assert {c.function for c in CONVERSIONS} == functions - {s_from_unit}
    for conversion in CONVERSIONS:
        assert conversion.gives in OUTCOME_COLUMNS
        text = inspect.getdoc(conversion.function) or ""
        assert ("not derived" in text) is not conversion.is_derived
        assert "derived" in text


def test_the_document_is_written_from_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    elsewhere = {"presets", "headline", "peers", "held out", "decisions"}
    assert all(f"<!-- {name} -->" in text for name in TABLES if name not in elsewhere)
    assert with_tables(text, TABLES) == text, f"run: {REGENERATE}"


def test_every_format_is_in_the_document_with_its_columns() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for entry in FORMATS.values():
        assert set(entry.conversions) <= set(entry.delivers)
        for column in entry.delivers:
            assert f"| `{entry.name}` | `{column}` |" in text, f"run: {REGENERATE}"


def test_the_tables_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "x.md"
    file.write_text("before\n<!-- loads -->\nold\n<!-- end -->\nafter\n")
    main([str(file)])
    lines = file.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    assert len(lines) == 6 + len(LOADS)


@given(ttft_s=times, tpot_s=times, n_output=lengths)
def test_tpot_conversions_are_inverse(ttft_s: float, tpot_s: float, n_output: float) -> None:
    e2e_s = e2e_from_parts(ttft_s, tpot_s, n_output)
    tolerance = 1e-9 * (ttft_s / tpot_s + n_output)
    assert tpot_from_e2e(e2e_s, ttft_s, n_output) == pytest.approx(tpot_s, rel=tolerance)
    assert tpot_from_inclusive(e2e_s / n_output, ttft_s, n_output) == pytest.approx(tpot_s, rel=tolerance)
    assert tpot_from_user_speed(1 / tpot_s) == pytest.approx(tpot_s)


@given(rate=times, n_input=lengths, n_output=lengths)
def test_total_and_output_throughput_are_inverse(rate: float, n_input: float, n_output: float) -> None:
    total = total_from_output_throughput(rate, n_input, n_output)
    assert total > rate
    assert output_from_total_throughput(total, n_input, n_output) == pytest.approx(rate)


def test_one_batch_at_a_time_is_a_static_batch() -> None:
    assert static_batch_throughput(8, 100, 2.0) == closed_loop_throughput(8, 100, 2.0)


def test_one_output_token_has_no_tpot() -> None:
    assert math.isnan(tpot_from_inclusive(1.0, 1.0, 1))
    assert math.isnan(tpot_from_user_speed(0.0))
    assert e2e_from_parts(1.0, 5.0, 1) == 1.0


def test_units_of_time() -> None:
    assert {unit: s_from_unit(1.0, unit) for unit in S_PER_UNIT} == pytest.approx(
        {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "seconds": 1}
    )
    with pytest.raises(InputError, match="unit: must be one of ns, us, ms, s, sec, seconds, got 'h'"):
        s_from_unit(1.0, "h")
