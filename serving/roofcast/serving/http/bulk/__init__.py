"""Bulk prediction over HTTP: many rows in one request, answered in chunks.

`media` lists the kinds of bodies, `ndjson` and `parquet` read and write them, `answers` connects reader, predictor
and writer, and `streaming` keeps them off the event loop.
"""

from __future__ import annotations

from typing import Final

WRONG_FILE: Final = 3
"""Exit status of `parquet_process` for a file that breaks its limits; the reason is on standard error."""
