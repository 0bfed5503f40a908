from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.silicon.campaign import SAMPLE, ResolvedRow, build_silicon, output_throughput, resolve_rows
from builders.campaigns.silicon.geometry import Geometry, concurrency_of
from builders.campaigns.silicon.history import History, load_history
from builders.campaigns.silicon.index import build_index, main
from builders.campaigns.silicon.source import load_source_rows
from roofcast.data.campaigns import load_campaigns
from roofcast.data.campaigns.silicon_index import FAULTS, FILE, load_silicon_index, source_row
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.validation import row_ids

ROOT = Path(__file__).parents[3] / "samples" / "silicon"
HISTORY_FILE = ROOT / "silicon" / "inferencex_configurations.csv"
CORRECTIONS = Path(__file__).parents[5].parent / "shared" / "data" / "silicon" / "row_corrections.csv"


@pytest.fixture(scope="module")
def history() -> History:
    return load_history(HISTORY_FILE)


@pytest.fixture(scope="module")
def resolved(history: History) -> list[ResolvedRow]:
    return resolve_rows(load_source_rows(ROOT / SAMPLE), history)


@pytest.fixture(scope="module")
def result() -> pd.DataFrame:
    return build_silicon(ROOT).rows


def resolved_row(resolved: list[ResolvedRow], part: str) -> ResolvedRow:
    return next(v for v in resolved if part in v.row.id)


def geometry_on(resolved: list[ResolvedRow], part: str) -> Geometry:
    geometry = resolved_row(resolved, part).geometry
    assert geometry is not None
    return geometry


@pytest.mark.parametrize(
    ("part", "repaired"),
    [
        ("fp4_agg_1024x1024_c64_cfg178", (8, 8, 1, 8, 1)),  # dumped with 64 devices
        ("c64_tp8_0_ep8_0_1078", (8, 8, 1, 8, 1)),  # its copy, in a table that does not multiply
        ("c16_tp2_ep2_927", (2, 2, 1, 2, 1)),
        ("c512_cfg706", (2, 2, 1, 2, 1)),  # dumped with attention data parallel; the configuration says no
        ("c256_cfg707", (2, 1, 2, 2, 1)),  # the same numbers, but the configuration says yes
        ("h200_sxm_vllm_agg_2000x100_c11_tp2", (4, 2, 2, 1, 4)),  # tp below moe_tp
        ("b200_sxm_trtllm_agg_4000x1000_c80_tp8", (8, 1, 8, 8, 1)),  # batch x devices = concurrency
    ],
)
def test_devices_tp_dp_ep_and_moe_tp_are_repaired(
    resolved: list[ResolvedRow], part: str, repaired: tuple[int, ...]
) -> None:
    g = geometry_on(resolved, part)
    assert (g.n_accelerator, g.tp, g.dp, g.ep, g.moe_tp) == repaired


def test_total_of_prefill_and_decode_has_no_known_split(resolved: list[ResolvedRow]) -> None:
    geometry = geometry_on(resolved, "agg_1024x1024_c32_tp36")
    assert (geometry.n_accelerator, geometry.tp, geometry.moe_tp) == (36, None, None)


def test_disaggregated_devices_count_the_ranks_of_attention(resolved: list[ResolvedRow]) -> None:
    geometry = geometry_on(resolved, "dsr1_gb200_trtllm_fp8_disagg_1024x8192_c2048")
    assert (geometry.n_prefill, geometry.n_decode, geometry.n_accelerator) == (8, 32, 40)
    assert geometry.split == "prefill 1 x TP1 DP8, decode 1 x TP1 DP32"


def test_disaggregated_rows_without_worker_counts_are_rejected(resolved: list[ResolvedRow]) -> None:
    row_ = resolved_row(resolved, "glm_5_gb200_trtllm_fp4_disagg")
    assert row_.geometry is None
    assert row_.rejection == "worker_count_unknown"


@pytest.mark.parametrize(
    ("part", "concurrency"),
    [
        ("15000x500_c416_tp2_0", 13),  # 32 replicas
        ("4000x1000_c80_tp8", 80),
        ("2000x100_c11_tp2", 11),
        ("gb200_trtllm_agg_4000x1000_c_tp1", 144),  # no concurrency: the batch
        ("sglang_disagg_4000x1000_c_tpnone", 48 * 11),
        ("c64_cfg178", 64),
    ],
)
def test_concurrency_is_of_one_deployment(resolved: list[ResolvedRow], part: str, concurrency: int) -> None:
    assert concurrency_of(resolved_row(resolved, part).row, geometry_on(resolved, part)) == concurrency


@pytest.mark.parametrize(
    ("part", "mtp"),
    [
        ("c16_cfg87", "no"),  # its points are exactly those without
        ("c16_tp8_0_ep1_0_290", "yes"),  # the other row of the setting; the first is a copy of the one above
        ("c16_tp8_0_ep1_0_263", "no"),
        ("c128_tp8_0_ep1_0_300", "yes"),  # beyond the range without
        ("c16_tp8_0_ep8_0_1257", "yes"),  # measured the day before that configuration came in
        ("c16_cfg719", "no"),
        ("fp8_agg_1024x1024_c64_cfg716", "unsure"),
        ("c64_cfg178", "no"),
        ("2000x100_c11_tp2", "no"),
    ],
)
def test_multi_token_prediction_matches_public_configurations(
    resolved: list[ResolvedRow], part: str, mtp: str
) -> None:
    assert resolved_row(resolved, part).mtp == mtp


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ("c32_tp36_ep1", "disaggregated_total"),
        ("gb200_trtllm_agg_2000x500_c2_", "placeholder_zero"),
        ("_c512_tp8_ep1_1128", "never_configured"),
        ("b200_sxm_trtllm_agg_4000x1000_c80_tp8", "release_candidate"),
        ("gb200_trtllm_agg_4000x1000_c_tp1", "no_concurrency"),
        ("c64_cfg178", ""),
    ],
)
def test_faults_are_marked_by_rule(resolved: list[ResolvedRow], part: str, fault: str) -> None:
    assert resolved_row(resolved, part).fault == fault


def test_copies_are_detected_across_tables_and_rounding(resolved: list[ResolvedRow]) -> None:
    for copy, original in (("c64_tp8_0_ep8_0_1078", "c64_cfg178"), ("kimi_k2_5_gap", "c16_cfg635")):
        assert resolved_row(resolved, copy).original == resolved_row(resolved, original).row.number
        assert resolved_row(resolved, copy).rejection == "duplicate"


def test_blank_versions_come_from_configuration_of_the_day(history: History, resolved: list[ResolvedRow]) -> None:
    assert resolved_row(resolved, "c64_cfg178").version == "1.2.0rc6.post2"
    row = resolved_row(resolved, "c512_cfg706").row
    assert history.version(row) == "0.19.0"


def test_rows_have_means_true_lengths_and_derived_throughput(result: pd.DataFrame) -> None:
    row = result.iloc[0]
    assert (result["statistic"] == "mean").all()
    assert set(result["n_input_token"]) >= {921.6, 7372.8, 4000.0}
    expected = output_throughput(row["n_output_token"], row["concurrency"], row["ttft_s"], row["tpot_s"])
    assert row["output_throughput_token_per_s"] == pytest.approx(expected, rel=1e-5)
    assert (result["derived"] == "output_throughput_token_per_s").all()


def test_every_published_row_is_measurement_or_rejection() -> None:
    whole = build_silicon(ROOT)
    index = build_index(ROOT)
    assert whole.n_read == len(index) == len(whole.rows) + len(whole.rejected)
    assert set(whole.rejected["reason"]) == {"duplicate", "worker_count_unknown"}
    held = {source_row(note) for note in whole.rows["note"]}
    assert set(index.loc[index["set_aside"] != "worker_count_unknown", "measured_in"]) == held


def test_index_round_trips(tmp_path: Path) -> None:
    main(["--raw", str(ROOT), "--out", str(tmp_path)])
    assert len(pd.read_csv(tmp_path / FILE)) == 54


@pytest.mark.parametrize(("file", "column"), [(SAMPLE, "id"), ("silicon/inferencex_configurations.csv", "key")])
def test_missing_column_raises_schema_error(tmp_path: Path, file: str, column: str) -> None:
    broken = tmp_path / "broken.csv"
    pd.read_csv(ROOT / file, dtype=str).drop(columns=column).to_csv(broken, index=False)
    load = load_source_rows if file == SAMPLE else load_history
    with pytest.raises(SchemaError, match=column):
        load(broken)


def test_shipped_campaign_joins_with_index() -> None:
    rows, index = load_campaigns(["silicon"]), load_silicon_index()
    held = {source_row(note) for note in rows["note"]}
    aggregated = index[index["mode"] == "agg"]
    assert len(index) == 5221
    assert len(aggregated) == 3619
    assert set(aggregated["measured_in"]) <= held
    assert set(index["fault"]) == {"", *FAULTS}
    assert (aggregated["fault"] != "").mean() < 0.03
    assert len(set(row_ids(rows))) == len(rows)
    catalog = load_catalog()
    assert all(catalog.model(m).id == m for m in rows["model"].unique())
    assert all(catalog.accelerator(a).id == a for a in rows["accelerator"].unique())


@pytest.mark.skipif(not CORRECTIONS.is_file(), reason="the repairs to check against are not beside the checkout")
def test_shipped_index_matches_independent_repairs() -> None:
    theirs = pd.read_csv(CORRECTIONS).set_index("id")
    ours = load_silicon_index().set_index("id").loc[theirs.index]
    assert ((ours["fault"] != "") == theirs["fault"].notna()).all()
    assert (ours.loc[theirs["mtp"] == 1, "mtp"] == "yes").all()
    assert (ours.loc[theirs["mtp"] == 0, "mtp"] == "no").all()
