"""Conformal intervals whose promise is for a group never seen: an unseen LLM, not an unseen row."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import OutOfRangeError

FloatArray = npt.NDArray[np.float64]

LEAST: Final = 1e-9
"""Least quantile: intervals are never points, for spreads are read off their bounds."""


class GroupedConformal:
    """Quantiles of held-out errors in which a group weighs as the root of its rows.

    That is halfway between one vote a group and one vote a row: an LLM of two rows says less of the next one than an
    LLM of two hundred, but not a hundredth. If groups are exchangeable, and rows within a group too, a new group's
    row, the group drawn by such weights, has an error below ``quantile(level)`` with a probability that nears `level`
    as groups grow many and none outweighs the rest. Groups of equal size are covered ``level * n / (n + 1)`` at least
    by n of them; if large groups are the hard ones, less.

    Parameters
    ----------
    scores : shape (n_row,)
        Absolute errors of rows whose group was held out; NaN rows are left out.
    groups : shape (n_row,)

    References
    ----------
    R. Dunn, L. Wasserman and A. Ramdas, "Distribution-Free Prediction Sets for Two-Layer Hierarchical Models", JASA
    2023: the quantile of pooled groups.
    Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", 2023: the bound.
    """

    def __init__(self, scores: FloatArray, groups: pd.Series) -> None:
        known = ~np.isnan(scores)
        codes, names = pd.factorize(np.asarray(groups, dtype=object)[known])
        order = np.argsort(scores[known], kind="stable")
        size = np.bincount(codes, minlength=len(names))
        mass = (1.0 / np.sqrt(size))[codes] / np.sqrt(size).sum()
        self.n_group = len(names)
        self._scores = scores[known][order]
        self._cumulative = np.cumsum(mass[order])

    @property
    def highest_level(self) -> float:
        """Highest level that so many groups can tell of: groups / (groups + 1)."""
        return self.n_group / (self.n_group + 1.0)

    def quantile(self, level: float) -> float:
        """Return the error that a new group's row stays below with probability `level`.

        Raises
        ------
        OutOfRangeError
            If there are too few groups to promise `level`.

        Examples
        --------
        >>> import numpy as np
        >>> c = GroupedConformal(np.array([0.1, 0.2, 0.3, 0.4]), pd.Series(list("abcd")))
        >>> c.quantile(0.8), c.quantile(0.4)
        (0.4, 0.2)
        """
        if not 0 < level < 1:
            raise OutOfRangeError(f"level must lie between 0 and 1, got {level:g}")
        if level > self.highest_level + 1e-9:
            raise OutOfRangeError(
                f"a level of {level:g} needs {int(np.ceil(level / (1 - level) - 1e-9))} groups of measurements, "
                f"there are {self.n_group}; ask for at most {self.highest_level:.3f}"
            )
        position = int(np.searchsorted(self._cumulative, level - 1e-9))
        return max(float(self._scores[min(position, len(self._scores) - 1)]), LEAST)
