"""Media types that schemathesis does not know: it loads this module, by ``SCHEMATHESIS_HOOKS``."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import strategies as st

from roofcast.serving.http.bulk.media import Kind


@schemathesis.serializer(Kind.NDJSON.value)
def lines(_context: Any, value: Any) -> bytes:
    """Return texts as they are, and an empty body for what is to be refused whole.

    Whatever JSON is written on a line is answered in its place; `test_fuzzed_inputs` has lines of every sort.
    """
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else b""


schemathesis.openapi.media_type(
    Kind.PARQUET.value, st.binary(max_size=64).map(lambda noise: b"PAR1" + noise + b"PAR1")
)
