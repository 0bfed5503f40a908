"""Service-level objectives: the grammar ``metric:statistic<=value unit`` and its meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import STATISTICS
from roofcast.data.units import s_from_ms

METRIC_OF: Final = {
    "ttft": "ttft_s",
    "nttft": "nttft_s_per_token",
    "tpot": "tpot_s",
    "itl": "itl_s",
    "e2e": "e2e_s",
}
"""Names that people use, to the metric predicted."""

DEFAULT_STATISTIC: Final = "p95"
MAX_LIMIT_S: Final = 86_400.0

_GRAMMAR: Final = re.compile(
    r"\s*(?P<metric>[a-z0-9]+)\s*(?::\s*(?P<statistic>[a-z0-9]+))?\s*<=?\s*(?P<value>\d{1,9}(?:\.\d{1,9})?)\s*(?P<unit>ms|s)\s*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Limit:
    """An upper limit on one statistic of one latency.

    Parameters
    ----------
    metric
        One of the predictor's metrics.
    statistic
        Of requests (TTFT, nTTFT, TPOT, E2E) or of single gaps (ITL).
    value_s
        Greatest value allowed, in seconds; of nTTFT in seconds per token.
    text
        As the caller wrote it.
    """

    metric: str
    statistic: str
    value_s: float
    text: str

    @property
    def unit(self) -> str:
        """The unit of the value."""
        return "s/token" if self.metric.endswith("_per_token") else "s"

    def excess(self, predicted_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return predictions over the limit: above 1 misses it."""
        return predicted_s / self.value_s


def parse_limit(text: str) -> Limit:
    """Return the limit that a text states; without a statistic it is on the 95th percentile.

    Raises
    ------
    InputError
        If the text does not follow the grammar or the value is absurd.
    UnknownNameError
        If metric or statistic are unknown.

    Examples
    --------
    >>> limit = parse_limit("ttft:p95<=500ms")
    >>> limit.metric, limit.statistic, limit.value_s
    ('ttft_s', 'p95', 0.5)
    """
    match = _GRAMMAR.fullmatch(text.lower())
    if match is None:
        raise InputError("limits", f"must look like 'ttft:p95<=500ms' or 'e2e:mean<=20s', got {text[:60]!r}")
    metric, statistic = match["metric"], match["statistic"] or DEFAULT_STATISTIC
    if metric not in METRIC_OF:
        raise UnknownNameError("limits.metric", metric, METRIC_OF)
    if statistic not in STATISTICS:
        raise UnknownNameError("limits.statistic", statistic, STATISTICS)
    value = float(match["value"])
    value_s = s_from_ms(value) if match["unit"] == "ms" else value
    if not 0 < value_s <= MAX_LIMIT_S:
        raise InputError("limits", f"must lie between 0 and {MAX_LIMIT_S:g} s, got {text[:60]!r}")
    return Limit(METRIC_OF[metric], statistic, value_s, text.strip())
