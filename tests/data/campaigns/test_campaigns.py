from pathlib import Path

import pandas as pd
import pytest

from builders.build_result import load_rejected_rows
from builders.campaigns.assembly import contradiction_of
from roofcast.data import campaigns
from roofcast.data.campaigns import (
    CAMPAIGNS,
    load_campaign_info,
    load_campaigns,
    load_licence,
    load_rejected_counts,
)
from roofcast.data.errors import UnknownNameError
from roofcast.data.measurements.schema import MEASUREMENT_COLUMNS
from roofcast.data.measurements.validation import row_ids, validate_measurements

UNVERIFIED = {
    "dstack", "mlc", "etched_trtllm_llama70b", "threads_vllm", "threads_local_engines", "dgx_spark_jvr0x",
    "inferencex_2026_06", "rocm_atom", "akamas", "anud18_qwen36", "anyscale_ray_serve", "gloria_h200",
    "progmastermind_mi300x", "tokey_a100", "llmfit_localmaxxing",
}  # fmt: skip
"""Campaigns whose source has no licence file."""


def test_every_campaign_is_complete() -> None:
    for name in CAMPAIGNS:
        info = load_campaign_info(name)
        rows = load_campaigns([name])
        assert info.name == name
        assert set(rows["campaign"]) == {name}
        assert len(rows) == info.n_row == len(set(row_ids(rows)))
        assert info.source.startswith("https://")
        assert info.attribution
        assert load_rejected_counts(name) == load_rejected_rows(name)["reason"].value_counts().to_dict()
        assert load_licence(name) or not info.licence_file


def test_all_campaigns_are_loaded_by_default() -> None:
    rows = load_campaigns()
    assert tuple(rows.columns) == MEASUREMENT_COLUMNS
    assert list(dict.fromkeys(rows["campaign"])) == list(CAMPAIGNS)
    pd.testing.assert_frame_equal(rows, validate_measurements(rows))


@pytest.mark.slow
def test_no_run_of_any_campaign_contradicts_itself() -> None:
    for name, rows in load_campaigns().groupby("campaign"):
        cells_by_row = [{str(k): v for k, v in row.items() if v == v} for row in rows.to_dict("records")]  # noqa: PLR0124
        assert contradiction_of(cells_by_row) == "", name


def test_every_campaign_says_how_attention_ran() -> None:
    for name in CAMPAIGNS:
        assert sum(note.startswith("flash_attention is") for note in load_campaign_info(name).notes) == 1, name


@pytest.mark.parametrize("load", [load_campaign_info, load_licence, lambda name: load_campaigns([name])])
def test_an_unknown_campaign_lists_near_misses(load: object) -> None:
    with pytest.raises(UnknownNameError, match="campaign: no 'llm_pilo' is known; did you mean 'llm_pilot'"):
        load("llm_pilo")  # type: ignore[operator]


def test_llm_pilot_has_every_published_point() -> None:
    rows = load_campaigns(["llm_pilot"])
    point = ["model", "accelerator", "n_accelerator", "concurrency"]
    middle = rows[rows["statistic"] == "p50"]
    assert len(middle) == len(middle.drop_duplicates(point)) == 528
    assert middle["nttft_s_per_token"].notna().all()
    assert middle["itl_s"].notna().all()
    assert middle["model"].nunique() == 10
    assert len(middle.drop_duplicates(["accelerator", "n_accelerator"])) == 14
    assert rows["note"].str.startswith("published medians alone").sum() == 2


def test_llm_pilots_latencies_hang_together() -> None:
    rows = load_campaigns(["llm_pilot"])
    mean = rows[rows["statistic"] == "mean"]
    assert len(mean) == 526
    assert (mean["e2e_s"] > mean["ttft_s"]).all()
    assert (mean["n_failed"] < mean["n_request"]).all()
    healthy = mean[mean["n_failed"] == 0]
    by_littles_law = healthy["concurrency"] * healthy["n_output_token"] / healthy["e2e_s"]
    ratio = by_littles_law / healthy["output_throughput_token_per_s"]
    assert ratio.between(0.98, 1.25).all()
    assert 1.0 < ratio.median() < 1.05


def test_the_folder_of_every_campaign_is_listed() -> None:
    folder = Path(campaigns.__file__).parent
    assert {file.parent.name for file in folder.glob("*/campaign.toml")} == set(CAMPAIGNS)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_licence_that_could_not_be_checked_says_so(name: str) -> None:
    info = load_campaign_info(name)
    is_told = any("licence is unverified" in note for note in info.notes)
    assert info.licence.endswith(" (unverified)") is is_told is (name in UNVERIFIED)
