import gzip
import os
import tarfile
from pathlib import Path

import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import sources
from roofcast.data.importers.sources import files_of, header_of, is_archive, iter_sources


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.csv").write_text("b,c\n")
    (folder / "deep" / "a.CSV").write_text("a\n")
    (folder / "notes.txt").write_text("x")
    (folder / ".hidden.csv").write_text("x")
    return folder


def pack(folder: Path, file: Path, mode: str = "w:xz") -> Path:
    with tarfile.open(file, mode) as archive:  # type: ignore[call-overload]
        archive.add(folder, arcname="runs")
    return file


def test_folders_are_searched_in_order(folder: Path) -> None:
    assert [file.name for file in files_of([folder])] == ["b.csv", "a.CSV"]
    assert [source.stream.read() for source in iter_sources([folder])] == [b"b,c\n", b"a\n"]


@pytest.mark.parametrize(("suffix", "mode"), [("xz", "w:xz"), ("gz", "w:gz"), ("bz2", "w:bz2")])
def test_archives_are_streamed(folder: Path, tmp_path: Path, suffix: str, mode: str) -> None:
    file = pack(folder, tmp_path / f"runs.tar.{suffix}", mode)
    assert is_archive(file)
    contents = {source.name: source.stream.read() for source in iter_sources([file])}
    assert contents == {f"runs.tar.{suffix}:b.csv": b"b,c\n", f"runs.tar.{suffix}:a.CSV": b"a\n"}


def test_an_archive_in_a_folder_is_read(folder: Path) -> None:
    pack(folder / "deep", folder / "more.tar.xz")
    assert [source.name for source in iter_sources([folder])] == ["b.csv", "a.CSV", "more.tar.xz:a.CSV"]


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_truncated_archives_are_refused(folder: Path, tmp_path: Path, share: float) -> None:
    file = pack(folder, tmp_path / "runs.tar.xz")
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(SchemaError, match=r"runs\.tar\.xz: is no tar archive, or a damaged or truncated one"):
        list(iter_sources([file]))


def test_a_compressed_file_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.csv.gz"
    file.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(SchemaError, match="is no tar archive"):
        list(iter_sources([file]))


def test_an_archive_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SchemaError, match=r"the archive holds no \*\.csv file"):
        list(iter_sources([pack(tmp_path / "empty", tmp_path / "empty.tar.xz")]))


def test_a_member_that_is_too_large_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_MEMBER_BYTE", 3)
    with pytest.raises(SchemaError, match=r"runs\.tar\.xz:b\.csv: must be at most 3 bytes, got 4"):
        list(iter_sources([pack(folder, tmp_path / "runs.tar.xz")]))


def test_missing_paths_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file or folder"):
        files_of([tmp_path / "nothing.csv"])
    with pytest.raises(SchemaError, match=r"the folder holds no \*\.csv file"):
        files_of([tmp_path])
    with pytest.raises(SchemaError, match="give at least one file"):
        files_of([])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SchemaError, match="must be a file or a folder"):
        files_of([tmp_path / "pipe"])


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.csv"
    file.touch()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SchemaError, match=r"run\.csv: cannot be read: Permission denied"):
        list(iter_sources([file]))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"a,b\n1,2\n", ["a", "b"]),
        (b"\xef\xbb\xbfa,b\r\n", ["a", "b"]),
        (b"", []),
        (b"\x00\x01\x02", []),
        (b"\xff\xfe\xfd", []),
        (b"a" * 200_000, []),
    ],
)
def test_the_header_of_any_file_is_read(content: bytes, names: list[str]) -> None:
    header = header_of(content)
    assert header == names or (not names and len(header) <= 1)
