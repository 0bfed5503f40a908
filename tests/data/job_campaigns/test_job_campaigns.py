from pathlib import Path

import pandas as pd
import pytest

from builders.build import TOPICS
from builders.build_result import load_rejected_rows
from roofcast.data import job_campaigns
from roofcast.data.errors import UnknownNameError
from roofcast.data.job_campaigns import (
    FIRST_TRAINING_CAMPAIGNS,
    TRAINING_CAMPAIGNS,
    TRAINING_JUDGES,
    job_catalog,
    load_job_campaign_info,
    load_job_campaigns,
    load_job_judges,
    load_job_licence,
    load_job_rejected_counts,
)
from roofcast.data.measurements.job_schema import TRAINING_COLUMNS
from roofcast.data.measurements.job_validation import (
    token_per_step,
    training_row_ids,
    validate_training_measurements,
)

REASONS = {
    "duplicate", "not_training", "unknown_accelerator", "unknown_model", "no_outcome", "superseded", "placeholder",
    "no_sequence_length", "above_peak", "above_capacity", "malformed", "inconsistent", "impossible_split",
    "not_a_run", "copied_baseline", "repeated_run", "unpacked", "near_peak", "superseded_release",
    "settings_not_stated",
}  # fmt: skip


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return load_job_campaigns()


@pytest.mark.parametrize("name", TRAINING_CAMPAIGNS)
def test_every_campaign_is_complete(name: str, runs: pd.DataFrame) -> None:
    info = load_job_campaign_info(name)
    rows = runs[runs["campaign"] == name]
    counts = load_job_rejected_counts(name)
    assert info.name == name
    assert len(rows) == info.n_row == len(set(training_row_ids(rows)))
    assert info.n_rejected == sum(counts.values())
    assert counts == load_rejected_rows(name)["reason"].value_counts().to_dict()
    assert set(counts) <= REASONS
    assert info.source.startswith("https://")
    assert info.attribution
    assert info.notes


def test_rows_and_columns(runs: pd.DataFrame) -> None:
    assert tuple(runs.columns) == TRAINING_COLUMNS
    assert list(dict.fromkeys(runs["campaign"])) == list(TRAINING_CAMPAIGNS)
    assert len(runs) >= 7_900
    pd.testing.assert_frame_equal(runs, validate_training_measurements(runs))


def test_every_name_is_known(runs: pd.DataFrame) -> None:
    catalog = job_catalog()
    assert set(runs["model"]) <= set(catalog.models)
    assert set(runs["accelerator"]) <= set(catalog.accelerators)


def test_derived_values_follow_from_the_others(runs: pd.DataFrame) -> None:
    derived = runs[runs["derived"] != ""]
    ratio = derived["throughput_token_per_s"] * derived["step_time_s"] / token_per_step(derived)
    assert ratio.between(1 - 1e-4, 1 + 1e-4).all()
    assert set(derived["derived"]) == {"step_time_s", "throughput_token_per_s"}


def test_memory_fits_the_accelerator(runs: pd.DataFrame) -> None:
    capacity = runs["accelerator"].map(lambda name: job_catalog().accelerator(name).memory_byte)
    share = (runs["memory_byte_per_accelerator"] / capacity).dropna()
    assert len(share) > 300
    assert share.between(0.001, 1.02).all()


def test_parallel_sizes_count_accelerators(runs: pd.DataFrame) -> None:
    split = runs[["tp", "pp", "cp", "dp"]].fillna(1).prod(axis=1)
    assert (runs["n_accelerator"] % split == 0).all()
    is_told = runs[["tp", "pp", "dp"]].notna().all(axis=1)
    assert is_told.sum() > 300
    assert (split == runs["n_accelerator"])[is_told].all()


def test_flop_of_two_columns_agree_where_both_are_measured(runs: pd.DataFrame) -> None:
    both = runs.dropna(subset=["model_flop_per_s_per_accelerator", "throughput_token_per_s"])
    plain = both[both["campaign"].isin(["nemo_megatron_bridge", "tpu_recipes"]) & (both["method"] == "pretrain")]
    n_active = plain["model"].map(lambda name: job_catalog().model(name).n_param_active)
    ratio = (
        plain["model_flop_per_s_per_accelerator"]
        * plain["n_accelerator"]
        / (6.0 * n_active * plain["throughput_token_per_s"])
    )
    assert len(ratio) > 300
    assert 0.95 < ratio.median() < 1.3


def test_some_runs_did_not_fit(runs: pd.DataFrame) -> None:
    assert (runs["status"] == "out_of_memory").sum() > 30


@pytest.mark.parametrize(
    "load",
    [load_job_campaign_info, load_job_licence, load_job_rejected_counts, lambda name: load_job_campaigns([name])],
)
def test_an_unknown_campaign_lists_near_misses(load: object) -> None:
    with pytest.raises(UnknownNameError, match="campaign: no 'torchtunes' is known; did you mean 'torchtune'"):
        load("torchtunes")  # type: ignore[operator]


def test_folders_recipes_and_registry_agree() -> None:
    folder = Path(job_campaigns.__file__).parent
    names = (*TRAINING_CAMPAIGNS, *TRAINING_JUDGES)
    assert {file.parent.name for file in folder.glob("*/campaign.toml")} == set(names)
    recipes = next(topic.recipes for topic in TOPICS if topic.package == "job_campaigns")
    assert sorted(recipes) == sorted(names)


def test_the_first_campaigns_never_change() -> None:
    assert TRAINING_CAMPAIGNS[: len(FIRST_TRAINING_CAMPAIGNS)] == FIRST_TRAINING_CAMPAIGNS
    assert len(FIRST_TRAINING_CAMPAIGNS) == 21


def test_judges_are_no_campaigns(runs: pd.DataFrame) -> None:
    judged = load_job_judges()
    assert set(judged["campaign"]) == set(TRAINING_JUDGES)
    assert not set(runs["campaign"]) & set(TRAINING_JUDGES)
    assert set(judged["model"]) <= set(job_catalog().models)


def test_every_row_has_a_stack(runs: pd.DataFrame) -> None:
    assert (runs["stack"] != "").all()
    assert runs["stack"].nunique() > 50
