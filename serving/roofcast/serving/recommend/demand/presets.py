"""Workload presets with their sources, and log-normal request lengths."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, linear_regression
from typing import Final

from pydantic import BaseModel, ConfigDict

from roofcast.data.errors import InputError, UnknownNameError

MAX_TOKEN: Final = 10_000_000.0
_ROUNDING: Final = 1e-9
_N_INTERVAL: Final = 1000

_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)", re.ASCII)


class Preset(BaseModel):
    """An observed workload: mean lengths of a request in tokens, and where they are published."""

    name: str
    meaning: str
    n_input_token: float
    """With history and tools."""
    n_output_token: float
    observed: str
    """Year, or year and month, of the requests."""
    source: str
    basis: str
    """How the figures follow from the source."""
    length_variation: float | None = None
    """Coefficient of variation of output lengths; null if it is not published."""
    prefix_cache_ratio: float | None = None
    """Share of the input that was found in the prefix cache, or null."""
    think_time_s: float | None = None
    """Between a response and the next request; null if it was not measured."""
    think_source: str = ""
    think_basis: str = ""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


PRESETS: Final[Mapping[str, Preset]] = {
    name: Preset(name=name, **fields)
    for name, fields in tomllib.loads(Path(__file__).with_name("presets.toml").read_text(encoding="utf-8")).items()
}


def find_preset(name: str, field: str = "preset") -> Preset:
    """Return the preset of a name, in any case, with hyphens or underscores.

    Raises `UnknownNameError` if there is none; names `field`.

    Examples
    --------
    >>> find_preset("Long-Context").n_input_token
    9429.0
    """
    try:
        return PRESETS[name.strip().lower().replace("-", "_")]
    except KeyError:
        raise UnknownNameError(field, name, PRESETS) from None


@dataclass(frozen=True, slots=True)
class Lengths:
    """Log-normal distribution of request lengths.

    `mean`: in tokens. `variation`: coefficient of variation; 0 if all lengths are equal, NaN if unknown.
    """

    mean: float
    variation: float

    def percentile(self, name: str) -> float:
        """Return a percentile by its name, such as p95.

        Raises `InputError` if the name is not a percentile.

        Examples
        --------
        >>> round(Lengths(mean=500.0, variation=0.0).percentile("p95"), 6)
        500.0
        """
        return self._at(_normal_quantile(name))

    def share_above(self, n_token: float) -> float:
        """Return the share of requests that are longer than `n_token`.

        Examples
        --------
        Half of the requests are longer than the median:

        >>> lengths = lengths_from_percentiles({"p50": 300, "p95": 1200})
        >>> round(lengths.share_above(300), 6), round(lengths.share_above(1200), 6), lengths.share_above(0)
        (0.5, 0.05, 1.0)
        """
        variance = math.log1p(self.variation**2)
        if n_token <= 0 or not variance:
            return float(self.mean > n_token)
        return NormalDist().cdf((math.log(self.mean / n_token) - variance / 2) / math.sqrt(variance))

    def share_above_with(self, other: Lengths, n_token: float) -> float:
        """Return the share of requests in which this part and another are together longer than `n_token`.

        Notes
        -----
        The parts are independent. The survival function of the part of larger standard deviation is averaged over the
        midpoint quantiles of a thousand equally likely intervals of the other part.

        Examples
        --------
        >>> lengths = lengths_from_percentiles({"p50": 100, "p95": 400})
        >>> round(Lengths(900.0, 0.0).share_above_with(lengths, 1000), 6)
        0.5
        """
        narrow, wide = sorted((self, other), key=lambda lengths: lengths.mean * lengths.variation)
        midpoints = (NormalDist().inv_cdf((i + 0.5) / _N_INTERVAL) for i in range(_N_INTERVAL))
        return math.fsum(wide.share_above(n_token - narrow._at(z)) for z in midpoints) / _N_INTERVAL

    def _at(self, z: float) -> float:
        variance = math.log1p(self.variation**2)
        return self.mean * math.exp(z * math.sqrt(variance) - variance / 2)


def lengths_from_percentiles(percentiles: Mapping[str, float]) -> Lengths:
    """Return the log-normal distribution through two percentiles, or the least-squares fit to more.

    `percentiles`: tokens by names such as ``p50`` and ``p95``; at least two. Raises `InputError` if there are fewer
    than two, a name is not a percentile, lengths do not rise with it, or are out of range.

    Notes
    -----
    The logarithm of a log-normal length is linear in the normal quantile, ``mu + s z``. Its mean is
    ``exp(mu + s^2 / 2)``, its coefficient of variation ``sqrt(exp(s^2) - 1)``.

    References
    ----------
    N. L. Johnson, S. Kotz and N. Balakrishnan, "Continuous Univariate Distributions", vol. 1, chapter 14, 1994.

    Examples
    --------
    Half of the requests up to 100 tokens, and as many between 37 and 100 as between 100 and 272 (a factor of e):

    >>> lengths = lengths_from_percentiles({"p15.866": 100 / 2.71828, "p50": 100, "p84.134": 271.828})
    >>> round(lengths.mean), round(lengths.variation, 2)
    (165, 1.31)
    """
    if len(percentiles) < 2:
        raise InputError("", "needs at least two percentiles, such as {'p50': 300, 'p95': 1200}")
    points = sorted((_normal_quantile(name), float(value), name) for name, value in percentiles.items())
    for _, value, name in points:
        if not 0 < value <= MAX_TOKEN:
            raise InputError(name, f"must lie between 0 and {MAX_TOKEN:,.12g} tokens, got {value:g}")
    for (z, low, first), (z_next, high, second) in pairwise(points):
        if z == z_next:
            raise InputError(second, f"is the same as {first}; give each percentile once")
        if high < low:
            raise InputError(second, f"must not be less than {first}, which is {low:g}, got {high:g}")
    slope, middle = linear_regression([z for z, _, _ in points], [math.log(value) for _, value, _ in points])
    variance = slope**2
    log_mean = middle + variance / 2
    if log_mean > math.log(MAX_TOKEN):
        raise InputError("", f"imply a mean above {MAX_TOKEN:,.12g} tokens; check the last one")
    if log_mean < -_ROUNDING:
        raise InputError("", "imply a mean of less than one token; check the first one, or give the median")
    return Lengths(math.exp(log_mean), math.sqrt(math.expm1(variance)))


def _normal_quantile(name: str) -> float:
    match = _PERCENTILE.fullmatch(name)
    if match is None or not 0 < float(match[1]) < 100:
        raise InputError(name[:40], "is not a percentile; write p50, p95 or p99.9")
    return NormalDist().inv_cdf(float(match[1]) / 100)
