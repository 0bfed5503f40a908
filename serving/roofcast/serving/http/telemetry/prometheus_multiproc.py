"""Where several server processes count together."""

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
    """Give the processes that start within the block one folder to count in, empty at first and gone at the end."""
    with tempfile.TemporaryDirectory(prefix="roofcast-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER_VARIABLE]
