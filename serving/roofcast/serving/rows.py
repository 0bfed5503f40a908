"""Between JSON rows and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd


def table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows as a table of objects; a field that a row leaves out is None there.

    Examples
    --------
    >>> table([{"model": "a"}, {"model": "b", "tp": 2}])["tp"].isna().tolist()
    [True, False]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: [row.get(name) for row in rows] for name in names}, dtype=object)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as JSON values; NaN becomes null."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        {str(name): getattr(value, "item", lambda value=value: value)() for name, value in row.items()}
        for row in plain.to_dict(orient="records")
    ]
