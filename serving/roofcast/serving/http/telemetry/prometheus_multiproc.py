"""Folder of prometheus_client's multiprocess mode."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from roofcast.data.errors import NotReadyError

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client reads it when it is first imported."""


METRIC_KINDS: Final = ("counter", "histogram")
"""Kinds of metrics that have a file in each process."""

FILE_BYTE: Final = 1 << 20
"""Size of a file: some 8,000 samples, more than all routes, methods and statuses have."""


@contextmanager
def prometheus_multiproc_dir() -> Iterator[None]:
    """Provide an empty folder for the metrics of all processes started in the block; it is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="roofcast-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER_VARIABLE]


def reserve_files(folder: Path) -> None:
    """Allocate the files of this process on disk before prometheus_client maps them into memory.

    Writing to a mapped file for which the disk has no space ends a process with SIGBUS.

    Raises `NotReadyError` if the disk is full.
    """
    for kind in METRIC_KINDS:
        try:
            with (folder / f"{kind}_{os.getpid()}.db").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, FILE_BYTE)
        except OSError as error:
            message = f"there is no space for metrics in {folder} ({error.strerror}); free some, or set TMPDIR"
            raise NotReadyError(message) from error
