from __future__ import annotations

import pytest

from builders.campaigns.silicon.campaign import HISTORY, SAMPLE, resolve_rows
from builders.campaigns.silicon.geometry import _stated_workers, geometry_of
from builders.campaigns.silicon.history import History, load_history
from builders.campaigns.silicon.source import SourceRow, load_source_rows
from builders.campaigns.silicon.speculation import mtp_of
from builders.campaigns.silicon.workers import Stage, mtp_values, workers_of
from roofcast.data.campaigns import load_campaign_info, load_campaigns
from roofcast.data.campaigns.silicon_index import load_silicon_index
from tests.data.builders.campaigns.samples import BESIDE, needs_raw


def a_disaggregated_row(
    concurrency: int = 1214, devices: tuple[int, int] = (4, 8), ep: str = "4_0", **cells: str
) -> SourceRow:
    shape = {
        "id": f"2026_03_25_x_disagg_1024x1024_c{concurrency}_tp8_0_ep{ep}_9", "mode": "disagg",
        "model_path": "deepseek-ai/DeepSeek-R1", "system": "b200_sxm", "backend": "trtllm", "precision": "fp4",
        "isl": "1024", "osl": "1024", "prefill_num_workers": "", "decode_num_workers": "",
        "prefill_tp_size": str(devices[0]), "decode_tp_size": str(devices[1]), "prefill_attention_dp_size": "1",
        "decode_attention_dp_size": "1", "prefill_moe_ep_size": ep.partition("_")[0], "decode_moe_ep_size": "4",
        "silicon_data_source": f"source_file=x.csv; silicon_concurrency={concurrency}; measured=2026-01-29T0",
    }  # fmt: skip
    return SourceRow(1, "2026-03-25.csv", shape | cells)


def test_matching_configuration_gives_worker_counts() -> None:
    row = a_disaggregated_row()
    assert workers_of(row) == (Stage(1, tp=1, dp=4, ep=4), Stage(2, tp=1, dp=8, ep=8))
    geometry = geometry_of(row, History([]))
    assert geometry is not None
    assert (geometry.n_prefill, geometry.n_decode, geometry.n_accelerator) == (4, 16, 20)
    assert geometry.split == "prefill 1 x TP1 DP4, decode 2 x TP1 DP8"


def test_stated_counts_take_precedence() -> None:
    geometry = geometry_of(a_disaggregated_row(prefill_num_workers="3", decode_num_workers="1"), History([]))
    assert geometry is not None
    assert (geometry.n_prefill, geometry.n_decode) == (12, 8)


@pytest.mark.parametrize(
    "row",
    [
        a_disaggregated_row(concurrency=7),
        a_disaggregated_row(devices=(8, 8)),
        a_disaggregated_row(devices=(4, 4)),
        a_disaggregated_row(ep="8_0"),
        a_disaggregated_row(isl="1000"),
        a_disaggregated_row(system="gb200"),
        a_disaggregated_row(silicon_data_source="source_file=2026-03-25.csv; silicon_concurrency=1214"),
        a_disaggregated_row(silicon_data_source="silicon_concurrency=1214; measured=2025-12-05T0"),
        a_disaggregated_row(128, (8, 8), "1_0", precision="fp8", isl="8192"),  # three configurations that differ
    ],
)
def test_row_without_unique_match_has_no_counts(row: SourceRow) -> None:
    assert workers_of(row) is None


def test_shipped_disaggregated_rows_add_up() -> None:
    rows = load_campaigns(["silicon"])
    apart = rows[rows["n_prefill_accelerator"].notna()]
    assert len(apart) > 600
    assert (apart["n_prefill_accelerator"] + apart["n_decode_accelerator"] == apart["n_accelerator"]).all()
    assert (apart["n_decode_accelerator"] % (apart["tp"] * apart["dp"]) == 0).all()


@pytest.mark.parametrize(
    ("date", "length", "ep", "is_known"),
    [
        ("2026-01-05", "1024", "8_0", False),  # nothing was written down yet
        ("2026-02-07", "1024", "8_0", True),
        ("2026-02-07", "8192", "1_0", False),  # what ran then was replaced in March
        ("2026-03-18", "8192", "1_0", True),
    ],
)
def test_configuration_does_not_apply_to_older_row(date: str, length: str, ep: str, is_known: bool) -> None:
    source = f"source_file=x.csv; silicon_concurrency=16; measured={date}T0"
    changes = {"isl": length, "backend": "sglang", "precision": "fp8", "silicon_data_source": source}
    assert (workers_of(a_disaggregated_row(16, (8, 8), ep, **changes)) is not None) is is_known


def a_pair(concurrency: int, stated: dict[str, str]) -> list[SourceRow]:
    """Return a row of the dump and a row of a table: other latencies, the same setting."""
    source = f"{{}}; silicon_concurrency={concurrency}; measured=2026-01-29T0"
    dump = a_disaggregated_row(
        concurrency, (4, 8), silicon_ttft_ms="150.0", silicon_tpot_ms="6.5", **stated,
        silicon_data_source=source.format("db-dump/x"),
    )  # fmt: skip
    table = a_disaggregated_row(
        concurrency, (4, 8), silicon_ttft_ms="190.0", silicon_tpot_ms="3.5",
        silicon_data_source=source.format("source_file=2026-03-25.csv"),
    )  # fmt: skip
    return [SourceRow(1, "dump", dump.cells), SourceRow(2, "2026-03-25.csv", table.cells)]


@pytest.mark.parametrize(
    ("concurrency", "values", "answer"),
    [(1214, {True}, "yes"), (2192, {False}, "no"), (15, {True, False}, "unsure"), (7, set(), "unsure")],
)
def test_configurations_tell_multi_token_prediction(concurrency: int, values: set[bool], answer: str) -> None:
    row = a_disaggregated_row(concurrency, silicon_ttft_ms="150.0", silicon_tpot_ms="6.5")
    assert mtp_values(row) == values
    assert mtp_of([row], History([])) == {1: answer}


def test_another_measurement_of_a_setting_of_the_dump_has_multi_token_prediction() -> None:
    rows = a_pair(15, {"prefill_num_workers": "1", "decode_num_workers": "5"})
    assert mtp_of(rows, History([])) == {1: "no", 2: "yes"}
    elsewhere = a_pair(15, {"prefill_num_workers": "1", "decode_num_workers": "4"})
    assert mtp_of(elsewhere, History([])) == {1: "no", 2: "unsure"}


@needs_raw
def test_the_dump_has_no_run_that_only_configurations_with_multi_token_prediction_match() -> None:
    dump = [row for row in load_source_rows(BESIDE / SAMPLE) if row.origin == "dump" and row.is_disaggregated]
    values = [mtp_values(row) for row in dump]
    assert sum(found == {False} for found in values) > 100
    assert {True} not in values


@needs_raw
def test_stated_counts_match_configurations_and_notes() -> None:
    rows = load_source_rows(BESIDE / SAMPLE)
    resolved = resolve_rows(rows, load_history(BESIDE / HISTORY))
    apart = [row for row in rows if row.is_disaggregated]
    both = [(_stated_workers(row), workers_of(row)) for row in apart]
    counts = [[[s.n_worker for s in workers] for workers in pair if workers] for pair in both if None not in pair]
    assert all(stated == looked_up for stated, looked_up in counts)
    n_filled = sum(v.row.is_disaggregated and not v.rejection and not _stated_workers(v.row) for v in resolved)
    notes = " ".join(load_campaign_info("silicon").notes)
    assert f"all {len(counts)} rows that state their counts" in notes
    assert f"{n_filled} measurements whose source does not say how many workers" in notes


def test_counts_in_notes_match_rows() -> None:
    index, notes = load_silicon_index(), " ".join(load_campaign_info("silicon").notes)
    copies = index[index["set_aside"] == "duplicate"]["mode"].value_counts()
    assert f"{copies['agg']} aggregated and {copies['disagg']} disaggregated rows repeat" in notes
    assert f"The other {(index['set_aside'] == 'worker_count_unknown').sum()} are set aside" in notes
    rows = load_campaigns(["silicon"])
    minimax = rows[rows["model"].str.contains("MiniMax") & (rows["kv_precision"] == "")]
    assert set(minimax["weight_precision"]) == {"fp8"}
    assert f"{len(minimax)} measurements of MiniMax-M2.5 in FP8" in notes
    assert f"{rows['note'].str.contains('mtp unsure').sum()} measurements remain unsure" in notes
    apart = rows[rows["n_prefill_accelerator"].notna()]
    number = apart["note"].str.extract(r"row (\d+)")[0].astype(int)
    mtp = index.set_index("row").loc[number, "mtp"].value_counts()
    assert f"Of the {len(apart)} measurements {mtp['yes']} have it" in notes
    assert f"{mtp['no']} have none, and {mtp['unsure']} are unsure" in notes
    assert (apart["speculation"] == "mtp").sum() == mtp["yes"]
    for fault, n in index.loc[index["set_aside"] == "", "fault"].value_counts().drop("").items():
        assert f"{fault} ({n}" in notes
