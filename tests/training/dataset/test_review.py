from typing import Any

import pandas as pd
import pytest

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.job_campaigns import TRAINING_CAMPAIGNS
from roofcast.data.measurements.validation import validate_measurements
from roofcast.training.dataset.review import campaign_report, near_duplicates, review
from roofcast.training.dataset.training_set import build_training_set
from tests.builders import a_model, a_question, an_accelerator

MODELS = {a_model().id: a_model()}
ACCELERATORS = {an_accelerator().id: an_accelerator()}


def rows(*changes: dict[str, object]) -> pd.DataFrame:
    sound = a_question() | {"campaign": "ours", "ttft_s": 0.2, "tpot_s": 0.013}
    return validate_measurements(pd.DataFrame([sound | change for change in changes]))


def rules(*changes: dict[str, object]) -> dict[Any, str]:
    """Return the rule that sets each row aside."""
    return review(rows(*changes), MODELS, ACCELERATORS)["rule"].to_dict()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"status": "out_of_memory"}, "not_ok"),
        ({"model": "nobody/nothing"}, "unknown_model"),
        ({"accelerator": "abacus"}, "unknown_accelerator"),
        ({"n_accelerator": 4, "pp": 3}, "impossible_split"),
        ({"n_accelerator": 4, "tp": 2}, "impossible_split"),
        ({"ttft_s": 0.001}, "faster_than_compute"),
        ({"note": "row 7; faulty: placeholder_zero"}, "published_fault"),
        ({"concurrency": None, "request_rate": 1.0, "request_throughput_per_s": 0.8}, "beyond_capacity"),
        ({"concurrency": None, "request_rate": 1e4, "request_throughput_per_s": 1e4}, "beyond_estimate"),
    ],
)
def test_each_rule_sets_its_row_aside_and_only_that(change: dict[str, object], rule: str) -> None:
    found = review(rows({}, change, {"concurrency": 2, "ttft_s": 0.3}), MODELS, ACCELERATORS)
    assert found["rule"].to_dict() == {1: rule}
    assert found["detail"].str.len().min() > 0


@pytest.mark.parametrize(
    "change",
    [
        {"load": "static_batch"},
        {"load": "offline", "concurrency": None},
        {"concurrency": None, "request_rate": 1.0, "request_throughput_per_s": 0.95},
        {"n_accelerator": 3, "n_prefill_accelerator": 1, "n_decode_accelerator": 2},
        {"n_accelerator": 5, "n_prefill_accelerator": 1, "n_decode_accelerator": 4, "tp": 2},
    ],
    ids=["static batch", "offline queue", "request rate", "prefill apart", "decode workers apart"],
)
def test_loads_and_deployments_of_all_kinds_are_learnt_from(change: dict[str, object]) -> None:
    assert review(rows({}, change | {"ttft_s": None, "tpot_s": 0.02}), MODELS, ACCELERATORS).empty
    data = build_training_set(rows(change | {"ttft_s": None, "tpot_s": 0.02}), MODELS, ACCELERATORS)
    assert data.y["tpot_s"].tolist() == [0.02]


def test_nothing_left_names_the_rules() -> None:
    with pytest.raises(InputError, match=r"none can be used for training \(not_ok, faster_than_compute\)"):
        build_training_set(rows({"status": "failed"}, {"ttft_s": 0.001}), MODELS, ACCELERATORS)


@pytest.mark.slow  # reviews every shipped campaign, as test_review_rules does once
def test_the_report_accounts_for_every_row() -> None:
    report = campaign_report(load_catalog()).set_index("campaign")
    counts = ("n_read", "n_rejected", "n_kept", "n_learnable")
    assert report.loc[["llm_pilot"], list(counts)].to_numpy().tolist() == [[528, 0, 2632, 2632]]
    assert report.loc["bigscience", "not_learnt"] == "training_run 221"
    assert report.index.tolist() == [*CAMPAIGNS, *TRAINING_CAMPAIGNS]
    for _, row in report.iterrows():
        for count, rules in (
            (row["n_rejected"], row["rejected"]),
            (row["n_kept"] - row["n_learnable"], row["not_learnt"]),
        ):
            assert count == sum(int(part.rpartition(" ")[2]) for part in rules.split(", ") if part)


def test_a_run_that_fell_behind_is_set_aside_with_all_its_statistics() -> None:
    asked: dict[str, object] = {"concurrency": None, "request_rate": 2.0}
    behind = asked | {"request_throughput_per_s": 1.0}, asked | {"statistic": "p95"}
    assert rules(*behind, {}) == {0: "beyond_capacity", 1: "beyond_capacity"}


def test_a_row_out_of_its_series_is_set_aside_with_its_percentiles() -> None:
    fast: dict[str, object] = {"concurrency": 9, "tpot_s": 0.008}
    tail: dict[str, object] = {"statistic": "p95"}
    sound: list[dict[str, object]] = [{"concurrency": 1}, {"concurrency": 2}]
    assert rules(*sound, fast, fast | tail, tail) == {2: "not_monotone", 3: "not_monotone"}
    apart: dict[str, object] = {"n_accelerator": 3, "n_prefill_accelerator": 1, "n_decode_accelerator": 2}
    assert rules({}, apart, apart | fast) == {}, "a disaggregated row is in no series"


def test_a_copy_names_the_row_that_stands_for_it() -> None:
    own = {"ttft_s": 0.20000, "tpot_s": 0.0130000, "note": "first"}
    theirs = {"ttft_s": 0.20004, "tpot_s": 0.0130003, "campaign": "theirs", "tp": 1}
    found = review(rows(own, theirs, theirs | {"tpot_s": 0.0131}), MODELS, ACCELERATORS)
    assert found["rule"].to_dict() == {1: "near_duplicate"}
    assert found["detail"].tolist() == ["repeats ours, first"]


@pytest.mark.parametrize(
    ("change", "is_copy"),
    [
        ({}, True),
        ({"campaign": "theirs"}, True),
        ({"tpot_s": 0.01300005}, True),
        ({"tpot_s": 0.0130009}, False),  # a single outcome that agrees to four digits may do so by chance
        ({"n_input_token": 1030.0}, True),
        ({"n_input_token": 2000.0}, False),
        ({"tp": 2.0, "n_accelerator": 2.0}, False),
        ({"concurrency": 3}, False),
        ({"weight_precision": "fp8"}, False),
        ({"derived": "tpot_s"}, False),
        ({"output_throughput_token_per_s": 100.0}, True),
    ],
)
def test_a_single_outcome_must_agree_wholly(change: dict[str, object], is_copy: bool) -> None:
    alone: dict[str, object] = {"ttft_s": None, "tpot_s": 0.013, "n_input_token": 1000.0, "weight_precision": "fp16"}
    assert list(near_duplicates(rows(alone, alone | change)).index) == [1] * is_copy


def test_throughputs_of_an_open_loop_are_no_evidence() -> None:
    asked: dict[str, object] = {"ttft_s": None, "tpot_s": None, "concurrency": None, "request_rate": 2.0}
    served = asked | {"request_throughput_per_s": 2.0, "output_throughput_token_per_s": 400.0}
    assert near_duplicates(rows(served, served)).empty
