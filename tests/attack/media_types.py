"""Media types that schemathesis does not know: it loads this module, by ``SCHEMATHESIS_HOOKS``."""

from __future__ import annotations

import json
from typing import Any

import schemathesis
from hypothesis import strategies as st

from roofcast.serving.bulk.media import Kind


@schemathesis.serializer(Kind.NDJSON.value)
def lines(_context: Any, value: Any) -> bytes:
    """Return texts as they are, and what is to be wrong as JSON on one line."""
    return value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()


schemathesis.openapi.media_type(
    Kind.PARQUET.value, st.binary(max_size=64).map(lambda noise: b"PAR1" + noise + b"PAR1")
)
