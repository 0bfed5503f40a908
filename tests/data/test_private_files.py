from pathlib import Path

import pytest

from roofcast.data.private_files import make_private_file, make_private_folder


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_new_folders_and_files_are_private(tmp_path: Path) -> None:
    folder = make_private_folder(tmp_path / "parent" / "home", "marker")
    assert mode_of(folder) == 0o700
    assert mode_of(make_private_file(folder / "file")) == 0o600


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o775, 0o775), (0o700, 0o700)])
def test_an_older_folder_is_closed_unless_its_group_may_write(before: int, after: int, tmp_path: Path) -> None:
    tmp_path.chmod(before)
    (tmp_path / "marker").touch()
    make_private_folder(tmp_path, "marker")
    assert mode_of(tmp_path) == after


def test_a_folder_of_something_else_stays_open(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert mode_of(make_private_folder(tmp_path, "marker")) == 0o755


def test_an_older_file_is_closed_with_its_content(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("rows")
    file.chmod(0o644)
    assert mode_of(make_private_file(file)) == 0o600
    assert file.read_text() == "rows"
