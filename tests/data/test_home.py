from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from roofcast.data.errors import NotReadyError
from roofcast.data.home import roofcast_home


def test_the_state_folder_is_that_of_the_environment_and_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFCAST_HOME", str(tmp_path / "a" / "b"))
    assert roofcast_home() == tmp_path / "a" / "b"
    assert roofcast_home().is_dir()


def test_the_state_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFCAST_HOME", "state")
    assert roofcast_home() == tmp_path / "state"


@pytest.mark.parametrize("chosen", [None, ""])
def test_the_state_folder_is_the_platforms_by_default(
    chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROOFCAST_HOME", raising=False)
    if chosen is not None:
        monkeypatch.setenv("ROOFCAST_HOME", chosen)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: tmp_path / name)
    assert roofcast_home() == tmp_path / "roofcast"


def test_the_error_of_a_state_folder_that_cannot_be_created_says_how_to_fix_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROOFCAST_HOME", str(tmp_path / "file" / "state"))
    with pytest.raises(NotReadyError, match="set ROOFCAST_HOME to a folder that can be written"):
        roofcast_home()
