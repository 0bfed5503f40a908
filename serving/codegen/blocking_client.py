"""Generator of the blocking client: the asynchronous one without `async` and `await`."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

HEAD: Final = '"""Blocking client; generated from `roofcast.client.asynchronous` by `make client`."""\n'

_REPLACEMENTS: Final = (
    (r'\A""".*?"""\n', HEAD),
    (r"\bimport asyncio\n", ""),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bAsync(Client|BaseTransport)\b", r"\1"),
    (r"\b(async|await) ", ""),
)


def blocking_source(source: str) -> str:
    """Return the source of the blocking client from that of the asynchronous client."""
    for pattern, replacement in _REPLACEMENTS:
        source = re.sub(pattern, replacement, source, flags=re.DOTALL)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "blocking.py", "-"]
    formatted = subprocess.run(command, input=source, capture_output=True, text=True, check=True)  # noqa: S603  (our own)
    return formatted.stdout
