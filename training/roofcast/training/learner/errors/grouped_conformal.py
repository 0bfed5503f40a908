"""Conformal quantiles: the distribution of held-out scores, by which an interval's half-width is scaled."""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import OutOfRangeError

FloatArray = npt.NDArray[np.float64]

MIN_QUANTILE: Final = 1e-9
"""Floor of conformal quantiles: an interval never collapses to a point."""

MIN_OWNER: Final = 19
"""Owners of stacks whose scores alone support intervals of 95 %."""

WIDENING_LEVEL: Final = 0.8
"""Level at which the quantile of a population is compared with that of everyone."""

MIN_COMPETENT_OWNER: Final = 9
"""Owners of stacks of competent operators whose scores alone support intervals of 90 %."""

N_LEVEL: Final = 50
"""Levels from 0 to 1 at which the distribution of standardised errors is tabulated; it is linear between them."""


class GroupedConformal:
    """Group-weighted conformal distribution of absolute held-out scores.

    If groups are exchangeable, and rows within a group too, the score of a row of a new group, drawn by such weights,
    is below ``quantile(level)`` with a probability that approaches `level` as groups grow many and none dominates.
    For n groups of equal weight that probability is ``level * n / (n + 1)`` at least; with a `size_exponent` over 0
    it is lower if large groups are the hard ones.

    - `scores`: shape (n_row,). Absolute errors of rows whose group was held out; NaN rows are left out.
    - `groups`: shape (n_row,)
    - `size_exponent`: A group of n rows weighs ``n ** size_exponent``: 0 is one vote a group, 1 one vote a row.
    - `everyone`: Distribution of a wider population, from which quantiles come that these groups are too few for.

    References
    ----------
    R. Dunn, L. Wasserman and A. Ramdas, "Distribution-Free Prediction Sets for Two-Layer Hierarchical Models", JASA
    2023: the quantile of pooled groups.
    Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", 2023: the bound.
    """

    everyone: GroupedConformal | None = None

    def __init__(
        self,
        scores: FloatArray,
        groups: pd.Series,
        size_exponent: float = 0.5,
        everyone: GroupedConformal | None = None,
    ) -> None:
        known = ~np.isnan(scores)
        codes, names = pd.factorize(np.asarray(groups, dtype=object)[known])
        order = np.argsort(scores[known], kind="stable")
        size = np.bincount(codes, minlength=len(names))
        weight = size**size_exponent
        mass = (weight / size)[codes] / weight.sum()
        self.n_group = len(names)
        self._scores = scores[known][order]
        self._cumulative = np.cumsum(mass[order])
        self.everyone = everyone

    @property
    def highest_level(self) -> float:
        """Highest level that this many groups, or `everyone`, support: n / (n + 1)."""
        return max(self._own_level, self.everyone.highest_level if self.everyone else 0.0)

    @property
    def _own_level(self) -> float:
        return self.n_group / (self.n_group + 1.0)

    def quantile(self, level: float) -> float:
        """Return the score that a row of a new group stays below with probability `level`.

        Raises `OutOfRangeError` if there are too few groups for `level`.

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
                f"there are {self.n_group}; ask for at most {np.floor(self.highest_level * 10**3) / 10**3:.3f}"
            )
        own_level = min(level, self._own_level)
        index = int(np.searchsorted(self._cumulative, own_level - 1e-9))
        of_everyone = self.everyone.quantile(level) if self.everyone and level > self._own_level + 1e-9 else 0.0
        return max(float(self._scores[min(index, len(self._scores) - 1)]), of_everyone, MIN_QUANTILE)

    def p_below(self, z: FloatArray) -> FloatArray:
        """Return the probability that a signed standardised error is below `z`, of any shape.

        Errors are taken to be symmetric. Beyond the largest measured error the probability stays that of the highest
        level.

        Examples
        --------
        >>> import numpy as np
        >>> c = GroupedConformal(np.linspace(0.1, 2.0, 20), pd.Series(range(20)))
        >>> c.p_below(np.array([-1.0, 0.0, 1.0, 9.0])).round(2).tolist()
        [0.25, 0.5, 0.75, 0.98]
        """
        levels, quantiles = self._table
        return np.asarray(0.5 + np.sign(z) * np.interp(np.abs(z), quantiles, levels) / 2, dtype=np.float64)

    def z_at(self, confidence: float) -> float:
        """Return the signed standardised error not exceeded with probability `confidence`, at least one half."""
        return float(np.interp(2 * confidence - 1, *self._table))

    @cached_property
    def widening(self) -> float:
        """Factor on the standard deviations of queries that belong to `everyone` but not to these groups."""
        if self.everyone is None or self.everyone.highest_level < WIDENING_LEVEL:
            return 1.0
        return max(self.everyone.quantile(WIDENING_LEVEL) / self.quantile(WIDENING_LEVEL), 1.0)

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        highest = self.highest_level
        levels = [*(i / N_LEVEL for i in range(1, N_LEVEL) if i / N_LEVEL < highest), highest]
        return np.array([0.0, *levels]), np.array([0.0, *map(self.quantile, levels)])


class Origins(NamedTuple):
    """Where rows come from, shapes (n_row,): their lineage, the owner of their stack, and `competent_rows`."""

    lineage: pd.Series
    owner: pd.Series
    is_competent: pd.Series

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Origins:
        """Return the origins of some rows."""
        return Origins(*(values.iloc[rows] for values in self))


def pool_scores(scores: FloatArray, origins: Origins) -> GroupedConformal:
    """Return the conformal distribution of held-out scores: of stacks of competent operators, a vote an owner.

    Queries are about a stack that nobody measured, run by such an operator. `everyone` of the distribution is of all
    stacks; with fewer than `MIN_COMPETENT_OWNER` owners it is the distribution. With fewer than `MIN_OWNER` owners
    of any stack it is of lineages and stacks together.

    `scores`: shape (3, n_row): with the lineage held out on a measured stack, with the stack held out, and with the
    lineage held out where residuals do not shift predictions; NaN if unknown.
    """
    lineage, owner, is_competent = origins
    if owner[~np.isnan(scores[1])].nunique() >= MIN_OWNER:
        everyone = GroupedConformal(scores[1], owner, size_exponent=0.0)
    else:
        names = [group.astype(str).add(f" {i}") for i, group in enumerate((owner, lineage))]
        everyone = GroupedConformal(scores[1:].ravel(), pd.concat(names))
    competent = GroupedConformal(np.where(is_competent, scores[1], np.nan), owner, 0.0, everyone)
    return competent if competent.n_group >= MIN_COMPETENT_OWNER else everyone
