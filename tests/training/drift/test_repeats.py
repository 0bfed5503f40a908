"""Which measurements are repeats of which, and what differs between them."""

from typing import Any

import pytest

from roofcast.training.drift.repeats import find_repeats
from tests.training.drift.tables import imported, imported_rows, pairs_of

BEFORE: dict[str, Any] = {"tpot_s": 0.02, "date": "2026-11-15"}
AFTER: dict[str, Any] = {"tpot_s": 0.03, "date": "2026-11-23", "of": 1}


def test_a_later_run_repeats_the_latest_before_it() -> None:
    rows = imported(BEFORE, BEFORE | {"tpot_s": 0.025, "date": "2026-11-20"}, AFTER)
    (pair,) = pairs_of(rows).to_dict("records")
    assert (pair["before"], pair["after"], pair["date_before"], pair["row_before"]) == (0.025, 0.03, "2026-11-20", 1)
    assert pair["ratio"] == pytest.approx(1.2)


def test_rows_without_a_full_date_count_by_their_import() -> None:
    (pair,) = pairs_of(imported(BEFORE | {"date": "2026"}, AFTER | {"date": ""})).to_dict("records")
    assert (pair["date_before"], pair["date_after"]) == ("2026-11-01", "2026-11-02")


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 8}, {"n_accelerator": 2}, {"statistic": "p50"}, {"engine": "sglang"}, {"stack": "other"},
        {"uploader": "ci"}, {"n_input_token": 256}, {"date": "2026-11-14"}, {"tpot_s": None, "ttft_s": 0.1},
    ],
)  # fmt: skip
def test_other_configurations_stacks_and_metrics_are_no_repeats(change: dict[str, Any]) -> None:
    assert pairs_of(imported(BEFORE, AFTER | change)).empty


def test_rows_of_one_import_and_day_are_no_repeats() -> None:
    assert pairs_of(imported(BEFORE, BEFORE | {"tpot_s": 0.03, "note": "again"})).empty


def test_lengths_agree_to_two_digits_and_versions_may_differ() -> None:
    assert len(pairs_of(imported(BEFORE, AFTER | {"n_input_token": 128.4, "engine_version": "0.12.0"}))) == 1
    assert pairs_of(imported_rows(), is_new=False).empty


def test_the_repeats_of_a_night_stay_when_a_later_night_is_imported() -> None:
    night = imported(BEFORE, AFTER)
    both = imported(BEFORE, AFTER, AFTER | {"tpot_s": 0.04, "date": "2026-11-24", "of": 2})
    later = find_repeats(both, both["import_id"] == "import 1")
    assert later.to_dict("records") == pairs_of(night).to_dict("records")


SWEEP = (
    ("max_num_seqs", 64, 512), ("chunk_size_token", 2048, 8192), ("graphs", "on", "off"), ("n_request", 20, 200),
    ("length_variation", 0.0, 1.0), ("kv_precision", "bf16", "fp8"), ("prefix_cache_ratio", 0.0, 0.5),
)  # fmt: skip


@pytest.mark.parametrize(("name", "first", "second"), SWEEP)
def test_a_sweep_of_a_setting_is_compared_setting_by_setting(name: str, first: Any, second: Any) -> None:
    night = [{**BEFORE, name: first}, {**BEFORE, name: second, "tpot_s": 0.06}]
    rows = imported(*night, *({**row, "date": "2026-11-23", "of": 1} for row in night))
    pairs = pairs_of(rows)
    assert pairs["is_repeat"].tolist() == [True, True]
    assert sorted(pairs["ratio"]) == [1.0, 1.0]
    (pair,) = pairs_of(imported({**BEFORE, name: first}, {**AFTER, name: second})).to_dict("records")
    assert (pair["is_repeat"], pair["ratio"]) == (False, pytest.approx(1.5)), "runs of other settings alone"


def test_equal_settings_precede_later_runs_of_others() -> None:
    other = BEFORE | {"tpot_s": 0.05, "date": "2026-11-20", "max_num_seqs": 64}
    (pair,) = pairs_of(imported(BEFORE, other, AFTER)).to_dict("records")
    assert (pair["is_repeat"], pair["before"], pair["date_before"]) == (True, 0.02, "2026-11-15")


def test_the_number_of_requests_that_fit_into_a_duration_is_no_setting() -> None:
    timed = [{**BEFORE, "n_request": 301, "duration_s": 60.2}, {**AFTER, "n_request": 100, "duration_s": 60.1}]
    (pair,) = pairs_of(imported(*timed)).to_dict("records")
    assert pair["is_repeat"]
    counted = [{**BEFORE, "n_request": 300, "duration_s": 60.2}, {**AFTER, "n_request": 100, "duration_s": 31.0}]
    (pair,) = pairs_of(imported(*counted)).to_dict("records")
    assert not pair["is_repeat"]
