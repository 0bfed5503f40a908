from typing import Any

import pandas as pd
import pytest

from builders.job_campaigns.duplicates import EXACT_RTOL, merge_duplicates
from builders.job_campaigns.releases import superseded_by
from builders.job_campaigns.source_rows import NODE_SIZE, PER_ACCELERATOR, build
from builders.published import Record


def a_source_row(reference: str = "page:1", **changes: Any) -> Record:
    cells: dict[str, object] = {
        "model": "llama2-7b", "accelerator": "H100", "n_accelerator": 8.0, "method": "pretrain",
        "n_token_per_sequence": 4096, "n_global_batch_sequence": 128.0, "step_time_s": 8.0, "date": "2024-05-01",
    }  # fmt: skip
    return Record(reference, cells | changes)


def built(*candidates: Record) -> tuple[pd.DataFrame, dict[str, str]]:
    campaign = build("ours", len(candidates), [a_source_row("kept:0", n_accelerator=16.0), *candidates])
    rows = campaign.rows[campaign.rows["n_accelerator"] != 16.0]
    return rows, dict(zip(campaign.rejected["reference"], campaign.rejected["reason"], strict=True))


def test_names_are_resolved_and_throughput_derived() -> None:
    rows, aside = built(a_source_row())
    row = rows.iloc[0]
    assert (row["model"], row["accelerator"]) == ("meta-llama/Llama-2-7b-hf", "nvidia-h100-sxm-80gb")
    assert row["throughput_token_per_s"] == 128 * 4096 / 8.0
    assert row["derived"] == "throughput_token_per_s"
    assert aside == {}


def test_throughput_of_one_accelerator_becomes_that_of_all() -> None:
    given = a_source_row(step_time_s=None)
    rows, _ = built(given.having(**{PER_ACCELERATOR: 8192.0}))
    assert rows["throughput_token_per_s"].tolist() == [65536.0]
    assert rows["step_time_s"].tolist() == [8.0]
    assert rows["derived"].tolist() == ["step_time_s"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "llama-99"}, "unknown_model"),
        ({"model": ""}, "unknown_model"),
        ({"accelerator": "abacus"}, "unknown_accelerator"),
        ({"n_accelerator": None}, "unknown_accelerator"),
        ({"step_time_s": None}, "no_outcome"),
        ({"throughput_token_per_s": 80_000.0}, "inconsistent"),
        ({"model_flop_per_s_per_accelerator": 8e14}, "inconsistent"),
        ({"tp": 16.0}, "impossible_split"),
        ({"tp": 3.0}, "impossible_split"),
        ({"dp": 3.0}, "impossible_split"),
        ({"tp": 4.0, "pp": 2.0, "dp": 2.0}, "impossible_split"),
        ({"tp": 2.0, "pp": 1.0, "dp": 2.0}, "impossible_split"),
        ({"model_flop_per_s_per_accelerator": 1.2e15, "compute_precision": "bf16"}, "above_peak"),
        ({"hardware_flop_per_s_per_accelerator": 3e16}, "above_peak"),
        ({"mfu_ratio": 1.1}, "above_peak"),
        ({"step_time_s": 0.1, "n_accelerator": 8.0}, "above_peak"),
        ({"step_time_s": 6.0, "accelerator": "A100"}, "above_peak"),
        ({"memory_byte_per_accelerator": 9e10}, "above_capacity"),
    ],
)
def test_each_rule_rejects(changes: dict[str, Any], reason: str) -> None:
    rows, aside = built(a_source_row(**changes))
    assert len(rows) == 0
    assert aside == {"page:1": reason}


@pytest.mark.parametrize("sizes", [{"tp": 2.0, "cp": 2.0, "pp": 1.0, "dp": 2.0}, {"tp": 2.0, "dp": 2.0}])
def test_possible_sizes_are_accepted(sizes: dict[str, Any]) -> None:
    assert built(a_source_row(**sizes))[1] == {}


@pytest.mark.parametrize(
    ("micro", "printed", "kept"), [(2.0, 8.0, True), (2.0, 16.0, False), (3.0, 6.0, True), (3.0, 5.0, False)]
)
def test_micro_batch_and_accumulation_match_global_batch(micro: float, printed: float, kept: bool) -> None:
    cells: dict[str, Any] = {"n_micro_batch_sequence": micro, "n_gradient_accumulation": printed, "note": "ours"}
    row = built(a_source_row(**cells))[0].iloc[0]
    assert row[["n_micro_batch_sequence", "n_gradient_accumulation"]].notna().tolist() == [kept, kept]
    assert (row["note"] == "ours") == kept
    assert row["note"].startswith("ours")


def test_accumulation_uses_data_parallel_replicas() -> None:
    cells: dict[str, Any] = {"tp": 4.0, "n_micro_batch_sequence": 2.0, "n_gradient_accumulation": 32.0}
    assert built(a_source_row(**cells))[0]["n_gradient_accumulation"].tolist() == [32.0]
    assert built(a_source_row(**cells, dp=1.0))[0]["n_gradient_accumulation"].isna().all()


@pytest.mark.parametrize(("step_time_s", "kept"), [(1.2, True), (0.7, False)])
def test_embedding_tables_need_no_flop(step_time_s: float, kept: bool) -> None:
    """Gemma 4 E2B has 4.6e9 weights, 2.3e9 of them in tables for each layer and 0.4e9 in the embedding."""
    rows, aside = built(
        a_source_row(model="google/gemma-4-E2B-it", compute_precision="bf16", step_time_s=step_time_s)
    )
    assert len(rows) == kept
    assert (aside == {}) == kept


@pytest.mark.parametrize(("step_time_s", "reason"), [(3.6, None), (3.0, "near_peak"), (2.5, "above_peak")])
def test_products_take_at_most_most_of_the_peak(step_time_s: float, reason: str | None) -> None:
    """128 x 4096 tokens of 6.61e9 weights outside the embedding take 2.63 s at the peak of eight H100."""
    _, aside = built(a_source_row(compute_precision="bf16", step_time_s=step_time_s))
    assert aside.get("page:1") == reason


def test_nodes_follow_from_their_size() -> None:
    cells: dict[str, Any] = {NODE_SIZE: 4.0, "memory_kind": "reserved"}
    rows = [a_source_row(**cells), a_source_row("page:2", n_accelerator=2.0, **cells)]
    runs = build("ours", 2, rows).rows.sort_values("n_accelerator")
    assert runs["n_node"].tolist() == [1, 2]
    assert runs["n_accelerator_per_node"].tolist() == [2, 4]
    assert set(runs["memory_kind"]) == {""}


def test_slow_runs_of_an_early_release_are_superseded() -> None:
    rows = [
        a_source_row(f"page:{release}", step_time_s=step, date=f"2024-0{release}-01", software=f"release {release}")
        for release, step in ((1, 20.0), (2, 9.0), (3, 8.0))
    ]
    result = build("ours", 3, rows, revise=superseded_by)
    assert result.rejected[["reference", "reason"]].to_numpy().tolist() == [["page:1", "superseded_release"]]
    assert sorted(result.rows["step_time_s"]) == [8.0, 9.0]


def test_rows_rejected_by_a_builder_stay_rejected() -> None:
    assert built(Record("page:7", {}).rejected("not_training", "inference"))[1] == {"page:7": "not_training"}


def test_out_of_memory_run_is_accepted() -> None:
    rows, _ = built(a_source_row(step_time_s=None, status="out_of_memory"))
    assert rows["status"].tolist() == ["out_of_memory"]


def test_later_revisions_are_duplicates_and_fill_blanks() -> None:
    later = a_source_row("page:2", date="2024-07-01", tp=4.0, step_time_s=8.001, framework_version="2")
    rows, aside = built(later, a_source_row())
    assert aside == {"page:2": "duplicate"}
    assert rows["date"].tolist() == ["2024-05-01"]
    assert rows["tp"].tolist() == [4.0]
    assert rows["step_time_s"].tolist() == [8.0]


@pytest.mark.parametrize("changes", [{"step_time_s": 8.1}, {"n_micro_batch_sequence": 2.0}, {"sharding": "zero1"}])
def test_rows_with_other_values_are_not_duplicates(changes: dict[str, Any]) -> None:
    first = a_source_row(n_micro_batch_sequence=1.0, sharding="fsdp")
    rows, aside = built(first, a_source_row("page:2", **{**first.cells, **changes}))
    assert len(rows) == 2
    assert aside == {}


def test_logs_are_duplicates_only_if_all_digits_agree() -> None:
    one: dict[str, object] = {"model": "m", "step_time_s": 1.0}
    rows = {"a": one, "b": one | {"step_time_s": 1.0001}}
    assert merge_duplicates(rows)[1] == {"b": "a"}
    assert merge_duplicates(rows, EXACT_RTOL)[1] == {}


def test_merge_does_not_change_its_input() -> None:
    one: dict[str, object] = {"model": "m", "step_time_s": 1.0}
    merge_duplicates({"a": one, "b": one | {"tp": 2.0}})
    assert one == {"model": "m", "step_time_s": 1.0}
