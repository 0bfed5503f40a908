"""Slices of held-out rows on which a candidate is significantly worse than a rival.

A paired bootstrap over lineages: both recipes predict the same rows, and whole lineages are drawn with replacement.
Many slices are tested at once, so the critical value is a quantile of the greatest statistic over all of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.dataset.targets import log_ratio

TOLERANCE: Final = 0.01
"""Relative increase of the error that counts as not worse."""

SIGNIFICANCE: Final = 0.05
"""Probability that any slice of an equal candidate is found worse, over all comparisons of a judgement."""

N_RESAMPLE: Final = 1000
N_BEYOND: Final = 20
"""Least number of resamples, in all and beyond the critical value."""

MIN_CLUSTER: Final = 5
"""A slice of fewer lineages (or else cells) is pooled with the other small ones; the pool is tested if it has this
many names, lineages or cells."""

REST: Final = "the others"
ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Regression:
    """Slice on which the candidate is worse: its mean absolute log error and the rival's."""

    metric: str
    kind: str
    name: str
    n_row: int
    candidate: float
    rival: float

    def __str__(self) -> str:
        place = f"{self.kind} {self.name}" if self.kind != ALL else "all rows"
        return f"{self.metric} of {place}: {self.candidate:.4f} against {self.rival:.4f}, {self.n_row} rows"


@dataclass(frozen=True, slots=True)
class _Slice:
    metric: str
    kind: str
    name: str
    rows: pd.DataFrame
    cluster: str


def find_regressions(
    y: pd.DataFrame,
    candidate: pd.DataFrame,
    rival: pd.DataFrame,
    slices: pd.DataFrame,
    significance: float = SIGNIFICANCE,
) -> list[Regression]:
    """Return the slices on which the candidate is significantly worse than the rival by more than `TOLERANCE`.

    - `y`, `candidate`, `rival`: shape (n_row, n_metric). Measured values, and predictions of both; NaN rows are left
      out.
    - `slices`: shape (n_row, n_column). `lineage` and `cell` of each row, which are resampled, and in every other
      column its slice.
    - `significance`: Probability that any slice of an equal candidate is found worse by this comparison.

    Notes
    -----
    The statistic of a slice is the mean over clusters, weighted by the root of their rows, of
    ``candidate - (1 + TOLERANCE) * rival``, over its bootstrap standard error. Its critical value is the quantile
    ``1 - significance`` of the greatest centred statistic of all slices.

    References
    ----------
    B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 16.
    J. P. Romano and M. Wolf, "Stepwise Multiple Testing as Formalized Data Snooping", Econometrica 73(4), 2005.
    """
    rng, n_resample = np.random.default_rng(0), max(N_RESAMPLE, math.ceil(N_BEYOND / significance))
    statistics: list[tuple[_Slice, float]] = []
    greatest = np.zeros(n_resample)
    for part in _all_slices(y, candidate, rival, slices):
        excess, weight = _cluster_excess(part)
        mean, resampled = _bootstrap(excess, weight, rng, n_resample)
        error = float(resampled.std())
        if error <= 1e-12:
            is_certain = mean > 1e-12 and len(excess) >= MIN_CLUSTER
            statistics.append((part, np.inf if is_certain else 0.0))
            continue
        statistics.append((part, mean / error))
        np.maximum(greatest, (resampled - mean) / error, out=greatest)
    critical = float(np.quantile(greatest, 1 - significance))
    return [_regression(part) for part, statistic in statistics if statistic > critical]


def _all_slices(
    y: pd.DataFrame, candidate: pd.DataFrame, rival: pd.DataFrame, slices: pd.DataFrame
) -> Iterator[_Slice]:
    for metric in (name for name in rival if name in candidate):
        measured = y[metric].to_numpy(dtype=float)
        errors = {
            name: np.abs(log_ratio(measured, table[metric].to_numpy(dtype=float)))
            for name, table in (("candidate", candidate), ("rival", rival))
        }
        rows = slices.assign(**errors).dropna(subset=["candidate", "rival"])
        if rows.empty:
            continue
        yield _Slice(str(metric), ALL, "", rows, _cluster(rows) or "cell")
        for kind in slices.columns.difference(["lineage", "cell"]):
            small = []
            for name, part in rows.groupby(kind, sort=True):
                cluster = _cluster(part)
                if cluster:
                    yield _Slice(str(metric), str(kind), str(name), part, cluster)
                else:
                    small.append(part)
            rest = pd.concat(small) if small else rows.iloc[:0]
            cluster = _cluster(rest, str(kind), "lineage", "cell")
            if cluster:
                yield _Slice(str(metric), str(kind), REST, rest, cluster)


def _cluster(rows: pd.DataFrame, *columns: str) -> str:
    return next((name for name in columns or ("lineage", "cell") if rows[name].nunique() >= MIN_CLUSTER), "")


def _cluster_excess(part: _Slice) -> tuple[FloatArray, FloatArray]:
    excess = part.rows["candidate"] - (1 + TOLERANCE) * part.rows["rival"]
    groups = excess.groupby(part.rows[part.cluster])
    return groups.mean().to_numpy(dtype=float), np.sqrt(groups.size().to_numpy(dtype=float))


def _bootstrap(
    values: FloatArray, weight: FloatArray, rng: np.random.Generator, n_resample: int
) -> tuple[float, FloatArray]:
    n = len(values)
    drawn = rng.multinomial(n, np.full(n, 1 / n), n_resample) * weight
    return float(np.average(values, weights=weight)), np.asarray(drawn @ values / drawn.sum(axis=1))


def _regression(part: _Slice) -> Regression:
    errors = part.rows[["candidate", "rival"]].mean()
    return Regression(
        part.metric, part.kind, part.name, len(part.rows), float(errors["candidate"]), float(errors["rival"])
    )
