"""Distribution of challenger / champion over the same questions, as counts in bins of a fixed width.

Counts add up over server processes and restarts, and their number is bounded however many questions are asked.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field

from roofcast.data.specs import Spec

Key = tuple[str, str, str, int]
"""Kind and name of a group, metric, and bin."""

BIN_RATIO: Final = 1.02
"""Width of a bin: a quantile is known to half of it, 1 %."""

MAX_BIN: Final = 50
"""The outermost bins hold all ratios beyond 2.7 and its inverse."""

ANSWERED: Final = "answered"
"""In place of a metric: bin 0 where both answer, 1 and -1 where the challenger or the champion alone does."""

LEVELS: Final = (0.05, 0.5, 0.95)


class AnswerRatios(Spec):
    """Ratios of the challenger's answers to the champion's, of one group and metric."""

    kind: str
    name: str
    metric: str
    n_row: int
    low_ratio: Annotated[float, Field(description="Quantile .05, to 1 %; beyond 2.7 and its inverse it says 2.7.")]
    median_ratio: float
    high_ratio: Annotated[float, Field(description="Quantile .95.")]


def bin_ratios(challenger: npt.ArrayLike, champion: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the bin of each ratio; 0 holds ratios within 1 % of one.

    Examples
    --------
    >>> bin_ratios([1.0, 1.02, 0.5, 1e9], 1.0).tolist()
    [0, 1, -35, 50]
    """
    logs = np.log(np.asarray(challenger, dtype=float) / np.asarray(champion, dtype=float))
    bins: npt.NDArray[np.int64] = np.clip(np.rint(logs / np.log(BIN_RATIO)), -MAX_BIN, MAX_BIN).astype(np.int64)
    return bins


def summarize(counts: Mapping[Key, int]) -> list[AnswerRatios]:
    """Return the quantiles of each group and metric.

    Examples
    --------
    >>> (one,) = summarize({("all", "", "ttft_s", 0): 97, ("all", "", "ttft_s", 10): 3})
    >>> one.n_row, one.median_ratio, one.high_ratio
    (100, 1.0, 1.0)
    """
    summaries = []
    for (kind, name, metric), part in groupby(sorted(counts.items()), key=lambda item: item[0][:3]):
        if metric == ANSWERED:
            continue
        bins, n = (np.array(values) for values in zip(*((key[3], n) for key, n in part), strict=True))
        share = np.cumsum(n) / n.sum()
        low, median, high = (float(BIN_RATIO ** bins[np.searchsorted(share, level)]) for level in LEVELS)
        summaries.append(
            AnswerRatios(
                kind=kind,
                name=name,
                metric=metric,
                n_row=int(n.sum()),
                low_ratio=low,
                median_ratio=median,
                high_ratio=high,
            )
        )
    return summaries
