import logging
from pathlib import Path

import pytest

from roofcast.training.lifecycle.registry.champion_changes import FILE_NAME, read_changes, record_change


def test_changes_are_listed_newest_first_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        record_change(tmp_path, "promotion", "key:ci", "none", "1")
        record_change(tmp_path, "rollback", "the command line", "2", "1")
    assert [(one.action, one.caller, one.version) for one in read_changes(tmp_path, 10)] == [
        ("rollback", "the command line", "1"),
        ("promotion", "key:ci", "1"),
    ]
    assert "caller=key:ci" in caplog.text
    assert len(read_changes(tmp_path, 1)) == 1


def test_a_line_that_was_cut_off_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record_change(tmp_path, "promotion", "a retraining", "1", "2")
    with (tmp_path / FILE_NAME).open("a") as file:
        file.write('{"at": "2026')
    assert [one.version for one in read_changes(tmp_path, 10)] == ["2"]
    assert "champion change unreadable" in caplog.text
    record_change(tmp_path, "rollback", "key:ci", "2", "1")
    assert [one.version for one in read_changes(tmp_path, 10)] == ["1", "2"]


def test_a_change_that_cannot_be_recorded_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record_change(tmp_path / "none", "promotion", "a retraining", "1", "2")
    assert "not recorded" in caplog.text
