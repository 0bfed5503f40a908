"""Bulk prediction over HTTP: many rows in one request, answered a few thousand at a time.

`media` says which kinds of bodies there are, `ndjson` and `parquet` read and write them, `answers` is the way from
one to the other, and `streaming` keeps it off the event loop.
"""

from __future__ import annotations

from typing import Final

WRONG_FILE: Final = 3
"""Exit status of `unpacking` if the file is not what it must be, of which it has told."""
