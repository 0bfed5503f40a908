"""Memo of kernel times, for fits that evaluate the estimate of the same queries many times."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

T = TypeVar("T")

N_RECENT: Final = 6
"""Results of one name that are stored: those of a prefill, of its last chunk and of a decode step, twice."""


class Memo:
    """Results of pure functions of arrays, for their most recent inputs.

    Examples
    --------
    >>> memo, calls = Memo(), []
    >>> memo("sum", lambda: calls.append(1) or 3.0, np.array([1.0, 2.0]))
    3.0
    >>> memo("sum", lambda: calls.append(1) or 3.0, np.array([1.0, 2.0])), len(calls)
    (3.0, 1)
    """

    def __init__(self) -> None:
        self._results: dict[str, deque[tuple[tuple[object, ...], Any]]] = {}

    def __call__(self, name: str, compute: Callable[[], T], *inputs: object) -> T:
        """Return what `compute` returns, or what it returned for equal inputs; it must depend on nothing else."""
        recent = self._results.setdefault(name, deque(maxlen=N_RECENT))
        for known, result in recent:
            if all(map(_is_equal, known, inputs)):
                return result  # type: ignore[no-any-return]
        recent.append((inputs, compute()))
        return recent[-1][1]  # type: ignore[no-any-return]


def _is_equal(one: object, other: object) -> bool:
    return one is other or (
        isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    )
