"""Files, folders and archives of benchmark results, opened one at a time; lines of open files."""

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from roofcast.data.errors import SchemaError

MAX_MEMBER_BYTE: Final = 512 * 2**20
MAX_HEADER_BYTE: Final = 64 * 2**10
MAX_START_BYTE: Final = 2**20
_CHUNK_BYTE: Final = 2**20

_DECOMPRESSORS: Final[dict[bytes, Callable[[BinaryIO], Any]]] = {
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
}
_ARCHIVE_SUFFIXES: Final = (".tar.xz", ".tar.gz", ".tar.bz2", ".tgz")
_ARCHIVE_ERRORS: Final = (tarfile.TarError, lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile)


@dataclass(frozen=True)
class Source:
    """An open file and its name for messages, which need not be that of a file on disk."""

    name: str
    stream: BinaryIO

    def start(self) -> bytes:
        """Return up to `MAX_START_BYTE` first bytes; reading continues at the first."""
        start = self.stream.read(MAX_START_BYTE)
        self.stream.seek(0)
        return start


def iter_sources(paths: Sequence[Path], *suffixes: str) -> Generator[Source, None, None]:
    """Yield each file, each file of a folder and each member of a tar archive, by name within a folder.

    A file is closed when the next is yielded or the generator is closed; close it where reading may fail. One archive
    member at a time is held in memory. Within folders, to any depth, and archives, files with one of the suffixes are
    read, ``.csv`` by default.

    Raises `SchemaError` if a path is missing or unreadable, a folder or archive holds no such file, or an archive is
    damaged.
    """
    for file in files_of(paths, *suffixes):
        try:
            with file.open("rb") as stream:
                if is_archive(file):
                    yield from _iter_members(stream, file.name, suffixes or (".csv",))
                else:
                    yield Source(file.name, stream)
        except OSError as error:
            raise _unreadable(file, error) from error


def files_of(paths: Sequence[Path], *suffixes: str) -> list[Path]:
    """Return the files among `paths`, and those of their folders with one of the suffixes (``.csv`` by default).

    Archives are among them.

    Raises `SchemaError` if a path is missing or neither file nor folder, or a folder holds no such file.
    """
    files: list[Path] = []
    accepted = suffixes or (".csv",)
    for path in paths:
        if path.is_dir():
            matches = [
                p for p in sorted(path.rglob("*")) if p.is_file() and _matches(p.name, *accepted, *_ARCHIVE_SUFFIXES)
            ]
            if not matches:
                raise SchemaError("", f"the folder holds no {_any_of(accepted)} file", path.name)
            files += matches
        elif path.is_file():
            files.append(path)
        elif path.exists():
            raise SchemaError("", "must be a file or a folder", str(path))
        else:
            raise SchemaError("", "no such file or folder", str(path))
    if not files:
        raise SchemaError("", "give at least one file")
    return files


def without_twins(files: Sequence[Path], preferred: str) -> list[Path]:
    """Return the files without those that have a twin: a file of the same stem with the preferred suffix.

    Examples
    --------
    >>> [file.name for file in without_twins([Path("a.csv"), Path("a.json"), Path("b.csv")], ".json")]
    ['a.json', 'b.csv']
    """
    twins = {file for file in files if file.suffix == preferred}
    return [file for file in files if file in twins or file.with_suffix(preferred) not in twins]


def is_archive(file: Path) -> bool:
    """Return whether the file is compressed, as archives of results are."""
    with file.open("rb") as stream:
        return is_compressed(stream.read(6))


def is_compressed(start: bytes) -> bool:
    """Return whether a file with these first bytes is compressed: xz, gzip or bzip2."""
    return start.startswith(tuple(_DECOMPRESSORS))


def start_of(file: Path, *suffixes: str) -> bytes:
    """Return up to `MAX_START_BYTE` first bytes of a file or of the first member of an archive.

    Raises `SchemaError` if the file cannot be read or is a damaged archive, or one that holds no such member.
    """
    with contextlib.closing(iter_sources([file], *suffixes)) as sources:
        return next((source.start() for source in sources), b"")


def header_of(start: bytes) -> list[str]:
    """Return the column names of a CSV file by its first bytes; none if it has no such line."""
    line = start[:MAX_HEADER_BYTE].partition(b"\n")[0]
    if b"\0" in line:
        return []
    try:
        return next(csv.reader([line.decode("utf-8-sig")]), [])
    except (UnicodeDecodeError, csv.Error):
        return []


def iter_lines(source: Source, max_byte: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that is not blank, one in memory at a time.

    Raises `SchemaError` if a line is longer than `max_byte`.
    """
    line = 0
    while content := source.stream.readline(max_byte + 1):
        line += 1
        if len(content) > max_byte:
            raise SchemaError("", f"a line must be at most {max_byte} bytes long", source.name, line)
        if content.strip():
            yield line, content
        else:
            line += _skip_blank_lines(source.stream)


def _skip_blank_lines(stream: BinaryIO) -> int:
    n_line, size = 0, 256
    while chunk := stream.read(size):
        rest = chunk.lstrip()
        n_line += chunk.count(b"\n", 0, len(chunk) - len(rest))
        if rest:
            stream.seek(-len(rest), io.SEEK_CUR)
            break
        size = min(2 * size, _CHUNK_BYTE)
    return n_line


def _iter_members(stream: BinaryIO, name: str, suffixes: tuple[str, ...]) -> Iterator[Source]:
    n_member = 0
    try:
        with _decompressed(stream) as content, tarfile.open(fileobj=content, mode="r|") as archive:
            for member in archive:
                if not member.isfile() or not _matches(Path(member.name).name, *suffixes):
                    continue
                n_member += 1
                yield _member_source(archive, member, name)
            while content.read(_CHUNK_BYTE):
                pass  # the decompressor verifies the checksum at the end
    except _ARCHIVE_ERRORS as error:
        raise SchemaError("", "is no tar archive, or a damaged or truncated one", name) from error
    if not n_member:
        raise SchemaError("", f"the archive holds no {_any_of(suffixes)} file", name)


def _decompressed(stream: BinaryIO) -> Any:
    start = stream.read(6)
    stream.seek(0)
    return next(open_ for magic, open_ in _DECOMPRESSORS.items() if start.startswith(magic))(stream)


def _member_source(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> Source:
    place = f"{name}:{Path(member.name).name}"
    if member.size > MAX_MEMBER_BYTE:
        raise SchemaError("", f"must be at most {MAX_MEMBER_BYTE} bytes, got {member.size}", place)
    content = archive.extractfile(member)
    return Source(place, io.BytesIO(content.read() if content else b""))


def _matches(name: str, *suffixes: str) -> bool:
    return name.lower().endswith(suffixes) and not name.startswith(".")


def _any_of(suffixes: tuple[str, ...]) -> str:
    return " or ".join(f"*{suffix}" for suffix in suffixes)


def _unreadable(file: Path, error: OSError) -> SchemaError:
    return SchemaError("", f"cannot be read: {error.strerror or error}", file.name)
