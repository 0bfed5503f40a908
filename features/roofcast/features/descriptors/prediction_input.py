"""Cells of a table of questions, blanks filled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray = npt.NDArray[np.float64]
Cells = npt.NDArray[Any]

Questions = pd.DataFrame | Mapping[str, Cells]
"""A table of questions, or its columns as arrays, which single questions are sooner read from."""


def text(questions: Questions, name: str, default: object) -> npt.NDArray[np.object_]:
    """Return a column of names, `default` (one or one a question) where it is blank or missing."""
    filled: npt.NDArray[np.object_] = np.empty(n_question(questions), dtype=object)
    filled[:] = default
    if name in questions:
        given = np.asarray(questions[name], dtype=object)
        is_given = ~pd.isna(given)
        is_given[is_given] = given[is_given] != ""
        filled[is_given] = given[is_given]
    return filled


def number(questions: Questions, name: str, default: float | FloatArray) -> FloatArray:
    """Return a column of numbers, `default` (one or one a question) where it is blank or missing."""
    if name not in questions:
        return np.broadcast_to(np.asarray(default, dtype=float), n_question(questions)).copy()
    column = questions[name]
    given = column.to_numpy(dtype=float, na_value=np.nan) if isinstance(column, pd.Series) else column.astype(float)
    return np.where(np.isnan(given), default, given)


def n_question(questions: Questions) -> int:
    """Return how many questions there are."""
    return len(questions) if isinstance(questions, pd.DataFrame) else len(next(iter(questions.values()), ()))


def distinct(cells: Cells | pd.Series) -> tuple[npt.NDArray[np.intp], list[Hashable]]:
    """Return which of the values that there are each cell has, and these values as they come.

    Examples
    --------
    >>> distinct(np.array(["b", "a", "b"], dtype=object))
    (array([0, 1, 0]), ['b', 'a'])
    """
    place: dict[Hashable, int] = {}
    codes = [place.setdefault(cell, len(place)) for cell in cells.tolist()]
    return np.array(codes, dtype=np.intp), list(place)
