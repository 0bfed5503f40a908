"""Media types for schemathesis, which loads this module by ``SCHEMATHESIS_HOOKS``."""

from typing import Any

import schemathesis
from hypothesis import strategies as st

from roofcast.serving.http.body import Kind


@schemathesis.serializer(Kind.NDJSON.value)
def lines(_context: Any, value: Any) -> bytes:
    """Return a text as it is, and an empty body, which is refused, for other values.

    Every JSON value on a line has an answer on the same line: see `test_fuzzed_inputs`.
    """
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else b""


schemathesis.openapi.media_type(
    Kind.PARQUET.value, st.binary(max_size=64).map(lambda noise: b"PAR1" + noise + b"PAR1")
)
