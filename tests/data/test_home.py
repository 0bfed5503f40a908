from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from roofcast.data.errors import NotReadyError
from roofcast.data.home import roofcast_home


def test_home_is_the_chosen_folder_and_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFCAST_HOME", str(tmp_path / "a" / "b"))
    assert roofcast_home() == tmp_path / "a" / "b"
    assert roofcast_home().is_dir()


def test_home_is_absolute_whatever_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFCAST_HOME", "state")
    assert roofcast_home() == tmp_path / "state"


@pytest.mark.parametrize("chosen", [None, ""])
def test_home_is_the_platforms_by_default(
    chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROOFCAST_HOME", raising=False)
    if chosen is not None:
        monkeypatch.setenv("ROOFCAST_HOME", chosen)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: tmp_path / name)
    assert roofcast_home() == tmp_path / "roofcast"


def test_a_home_that_cannot_be_created_names_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROOFCAST_HOME", str(tmp_path / "file" / "state"))
    with pytest.raises(NotReadyError, match="set ROOFCAST_HOME to a folder that can be written"):
        roofcast_home()
