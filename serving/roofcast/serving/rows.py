"""Between JSON rows and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from roofcast.data.errors import InputError


def table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows as a table of objects; a field that a row leaves out is None there.

    Raises
    ------
    InputError
        If a text holds what no database or file can: NUL or a lone surrogate.
    """
    for i, row in enumerate(rows):
        for name, value in row.items():
            for text in (name, value):
                if isinstance(text, str) and not _is_clean(text):
                    raise InputError(f"rows.{i}", "holds a NUL or a lone surrogate; send plain text")
    return pd.DataFrame(list(rows), dtype=object)


def _is_clean(text: str) -> bool:
    return "\x00" not in text and text.encode("utf-8", "replace").decode("utf-8") == text


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as JSON values; NaN becomes null."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        {str(name): getattr(value, "item", lambda value=value: value)() for name, value in row.items()}
        for row in plain.to_dict(orient="records")
    ]
