"""Cells of a table of questions, blanks filled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray = npt.NDArray[np.float64]


def text(questions: pd.DataFrame, name: str, default: object) -> npt.NDArray[np.object_]:
    """Return a column of names, `default` (one or one a question) where it is blank or missing."""
    fallback: npt.NDArray[np.object_] = np.empty(len(questions), dtype=object)
    fallback[:] = default
    if name not in questions:
        return fallback
    given = questions[name].astype(object)
    is_given = (given.notna() & (given != "")).to_numpy(dtype=bool)
    fallback[is_given] = given.to_numpy(dtype=object)[is_given]
    return fallback


def number(questions: pd.DataFrame, name: str, default: float | FloatArray) -> FloatArray:
    """Return a column of numbers, `default` (one or one a question) where it is blank or missing."""
    if name not in questions:
        return np.broadcast_to(np.asarray(default, dtype=float), len(questions)).copy()
    given = questions[name].to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isnan(given), default, given)
