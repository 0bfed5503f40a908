"""Hooks whose checks do not show in the shipped rows: they stop a build that does not agree with its source."""

from pathlib import Path

import pytest

from builders.campaigns.llm_pilot import check_medians
from builders.campaigns.silicon.scripts import SCRIPTS, Launch, setting_of
from builders.campaigns.vllm_bench_files import rows
from builders.published import RejectionError
from roofcast.data.errors import InputError


def test_different_median_stops_the_build() -> None:
    measured = [{"statistic": "mean", "itl_s": 9.0}, {"statistic": "p50", "itl_s": 0.15}]
    check_medians(measured, {"itl_s": 0.150001}, "a.csv:2")
    with pytest.raises(InputError, match=r"itl_s: 0\.15 is measured but 0\.1502 published in a\.csv:2"):
        check_medians(measured, {"itl_s": 0.1502}, "a.csv:2")


def test_result_file_that_contradicts_itself_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(RejectionError, match="implausible"):
        rows({"file": tmp_path / "a.json", "model_id": "a/b"}, {"engine": "vllm"})


@pytest.mark.parametrize(
    ("rule", "launch", "value"),
    [
        ("poll", Launch(1024, 1024, 16, 8, has_dp=False), 30),
        ("poll_of_8", Launch(1024, 1024, 64, 4, has_dp=False), 10),
        ("prompt_and_batch", Launch(1024, 1024, 64, 8, has_dp=False), 1152),
        ("mtp_chunk_of_4", Launch(1024, 1024, 64, 8, has_dp=True), 1152),
        ("first_mtp_chunk", Launch(1024, 1024, 64, 8, has_dp=True), 1984),
        ("60_if_dp", Launch(1024, 1024, 64, 8, has_dp=False), None),
        ("delayed", Launch(1024, 1024, 64, 8, has_dp=False), 40),
        ("share_by_load", Launch(1024, 1024, 256, 8, has_dp=True), 0.7),
        ("share_by_load", Launch(8192, 1024, 256, 4, has_dp=False), 0.75),
        ("mtp_batch_of_4", Launch(1024, 1024, 64, 8, has_dp=True), 16),
    ],
)
def test_setting_of_a_launch_script_follows_from_the_launch(rule: str, launch: Launch, value: float | None) -> None:
    assert setting_of("max_num_seqs", rule, launch) == value
    keys = ("file", "since", "until", "engine", "precisions", "systems")
    assert len(SCRIPTS) == len({tuple(script[key] for key in keys) for script in SCRIPTS})
