from __future__ import annotations

import math
from pathlib import Path

import pytest

from builders.campaigns.campaign_builder import (
    CampaignBuilder,
    contradiction_of,
    number_of,
    records_of,
    rows_by_statistic,
)
from roofcast.data.errors import SchemaError


def a_row(**cells: object) -> dict[str, object]:
    return {
        "model": "llama", "accelerator": "card", "n_accelerator": 1, "n_input_token": 128.0, "n_output_token": 8.0,
        "concurrency": 1.0, "statistic": "mean", "load": "static_batch", "e2e_s": 1.23456789, **cells,
    }  # fmt: skip


def a_builder() -> CampaignBuilder:
    return CampaignBuilder("some", {"llama": "meta-llama/Llama-2-7b-hf"}, {"card": "nvidia-h100-sxm-80gb"})


def test_names_are_resolved_and_figures_rounded() -> None:
    builder = a_builder()
    builder.add("a:2", [a_row()])
    row = builder.build().rows.iloc[0]
    assert (row["model"], row["accelerator"]) == ("meta-llama/Llama-2-7b-hf", "nvidia-h100-sxm-80gb")
    assert (row["campaign"], row["e2e_s"]) == ("some", 1.23457)


@pytest.mark.parametrize(
    ("cells", "reason", "detail"),
    [
        ({"model": "no-such"}, "unknown_model", "no-such"),
        ({"accelerator": "abacus"}, "unknown_accelerator", "abacus"),
        ({"accelerator": ""}, "unknown_accelerator", "not stated"),
    ],
)
def test_unknown_name_is_rejected(cells: dict[str, object], reason: str, detail: str) -> None:
    builder = a_builder()
    builder.add("a:1", [a_row()])
    builder.add("a:2", [a_row(**cells)], n_published=2)
    result = builder.build()
    assert result.n_read == 3
    assert result.rejected.to_numpy().tolist() == [["a:2", reason, detail]] * 2


def test_repeated_run_is_stored_once() -> None:
    builder = a_builder()
    builder.add("a:2", [a_row()])
    builder.add("a:3", [a_row(e2e_s=1.2345678)])
    builder.add("a:4", [a_row(e2e_s=2.0)])
    result = builder.build()
    assert (result.n_read, len(result.rows)) == (3, 2)
    assert result.rejected["reason"].tolist() == ["exact_repeat"]


def test_contradictory_rows_are_rejected_by_importer_rules() -> None:
    builder = a_builder()
    builder.add("a:2", [a_row()])
    builder.add("a:3", [a_row(load="closed_loop", ttft_s=0.1, tpot_s=2.0, e2e_s=0.24)])
    rejected = builder.build().rejected
    assert rejected[["reference", "reason"]].to_numpy().tolist() == [["a:3", "implausible"]]
    assert "seconds and milliseconds" in rejected["detail"][0]


def test_plausibility_is_checked_per_run() -> None:
    one = a_row(load="closed_loop", ttft_s=0.1, tpot_s=0.02, e2e_s=0.24)
    slow = one | {"concurrency": 64.0, "tpot_s": 2.0, "e2e_s": 14.1}
    tail = one | {"statistic": "p99", "e2e_s": 9.0}
    assert contradiction_of([one, slow, tail]) == ""
    assert contradiction_of([one, one | {"concurrency": 2.0, "e2e_s": 14.1}]) != ""


def test_row_without_figures_is_rejected() -> None:
    builder = a_builder()
    builder.add("a:2", rows_by_statistic(a_row(), {"mean": {"ttft_s": math.nan}}))
    builder.add("a:3", [a_row()])
    assert builder.build().rejected["reason"].tolist() == ["no_outcome"]


def test_invalid_row_stops_the_build() -> None:
    builder = a_builder()
    builder.add("a:2", [a_row(tp=1.5)])
    with pytest.raises(SchemaError, match="tp: must be a whole number"):
        builder.build()


def test_records_have_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("a, b\n\n1,x\n")
    assert list(records_of(file)) == [("some.csv:3", {"a": "1", "b": "x"})]


def test_missing_file_or_cell_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"some\.csv: .*no such file"):
        list(records_of(tmp_path / "some.csv"))
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1\n")
    with pytest.raises(SchemaError, match=r"other\.csv, line 2: .*must have 2 cells as the header has, got 1"):
        list(records_of(file))


def test_text_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="many"):
        number_of("many")
