"""Folder of prometheus_client's multiprocess mode."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client reads it when it is first imported."""


@contextmanager
def prometheus_multiproc_dir() -> Iterator[None]:
    """Provide an empty folder for the metrics of all processes started in the block; it is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="roofcast-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER_VARIABLE]
