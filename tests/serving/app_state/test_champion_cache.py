import os
from pathlib import Path

import pytest

from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.app_state.champion_cache import FILE_NAME, ownership_problem
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service


def test_the_last_champion_resumes_only_if_no_other_user_can_write_its_files(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    assert build_service(settings).champions[INFERENCE].refresh()
    name = settings.home / FILE_NAME
    (bundle,) = (settings.home / "bundles").glob("*.roofcast")
    assert name.stat().st_mode & 0o777 == 0o600
    assert build_service(settings).champions[INFERENCE].resume()
    for file in (name, bundle):
        mode = file.stat().st_mode
        file.chmod(0o620)
        assert not build_service(settings).champions[INFERENCE].resume()
        assert f"{file} must not be writable by others" in caplog.text
        file.chmod(mode)
    assert build_service(settings).champions[INFERENCE].resume()


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.touch(0o600)
    assert not ownership_problem(file)
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert f"must belong to the user {mine + 1}" in ownership_problem(file)
