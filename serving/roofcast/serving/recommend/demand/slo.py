"""Service-level objectives: the grammar ``metric:statistic<=value unit`` and its meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError
from roofcast.data.specs import STATISTICS
from roofcast.data.units import s_from_ms
from roofcast.serving.predict.unknown_names import unknown_name_error

METRIC_OF: Final = {
    "ttft": "ttft_s",
    "nttft": "nttft_s_per_token",
    "tpot": "tpot_s",
    "itl": "itl_s",
    "e2e": "e2e_s",
    "throughput": "output_throughput_token_per_s",
    "throughput_per_user": "tpot_s",
}
"""Names that people use, to the metric predicted."""

FLOORS: Final = ("throughput", "throughput_per_user")
"""Names of `METRIC_OF` that are wanted high, in tokens per second; the others are latencies."""

DEFAULT_STATISTIC: Final = "p95"
MAX_LIMIT_S: Final = 86_400.0
MAX_LIMIT_TOKEN_PER_S: Final = 1e9

_GRAMMAR: Final = re.compile(
    r"\s*(?P<metric>[a-z0-9_]+)\s*(?::\s*(?P<statistic>[a-z0-9]+))?\s*(?P<sign>[<>]=?)\s*"
    r"(?P<value>\d{1,30}(?:\.\d{1,30})?)\s*(?P<unit>[a-z]*(?:/s)?)\s*",
    re.ASCII,
)
_SHAPE: Final = "must look like 'ttft:p95<=500ms', 'e2e:mean<=20s' or 'throughput>=2000'"
_SPEED_UNITS: Final = ("", "tok/s", "token/s", "tokens/s")
_NAME_OF: Final = {metric: name for name, metric in reversed(METRIC_OF.items())}


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on one statistic of one metric: an upper one on a latency, a lower one on throughput.

    Parameters
    ----------
    metric
        One of the predictor's metrics.
    statistic
        Of requests (TTFT, nTTFT, TPOT, E2E), of single gaps (ITL) or of the run (throughput).
    value
        Greatest or least value allowed, in the metric's SI unit.
    text
        As the caller wrote it.
    is_floor
        Whether it is a lower limit; throughput is that of the whole deployment.
    """

    metric: str
    statistic: str
    value: float
    text: str
    is_floor: bool = False

    @property
    def value_s(self) -> float:
        """The value of an upper limit, in seconds; of nTTFT in seconds per token."""
        return self.value

    @property
    def unit(self) -> str:
        """The unit of the value."""
        if self.is_floor:
            return "token/s"
        return "s/token" if self.metric.endswith("_per_token") else "s"

    def excess(self, predicted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return predictions over the limit, of a floor the limit over predictions: above 1 misses it.

        Examples
        --------
        >>> parse_limit("throughput>=2000").excess(np.array([1000.0, 4000.0])).tolist()
        [2.0, 0.5]
        """
        if not self.is_floor:
            return predicted / self.value
        excess = np.full(np.shape(predicted), np.inf)
        np.divide(self.value, predicted, out=excess, where=predicted > 0)
        return excess


def parse_limit(text: str) -> Limit:
    """Return the limit that a text states.

    Without a statistic a latency is limited at its 95th percentile, and so is the speed of a user:
    `throughput_per_user>=25` wants 95 of 100 requests at 25 tokens a second or more, and is kept as what it says of
    TPOT, at most 1/25 s. `throughput` is of the whole deployment and has a mean alone.

    Raises
    ------
    InputError
        If the text does not follow the grammar, the limit is from the wrong side or the value is absurd.
    UnknownNameError
        If metric or statistic are unknown.

    Examples
    --------
    >>> limit = parse_limit("ttft:p95<=500ms")
    >>> limit.metric, limit.statistic, limit.value
    ('ttft_s', 'p95', 0.5)
    >>> limit = parse_limit("throughput_per_user:p50 >= 25 tok/s")
    >>> limit.metric, limit.statistic, limit.value, limit.is_floor
    ('tpot_s', 'p50', 0.04, False)
    """
    match = _GRAMMAR.fullmatch(text.lower())
    if match is None:
        raise InputError("limits", f"{_SHAPE}, got {text[:60]!r}")
    name, statistic = match["metric"], match["statistic"]
    if name not in METRIC_OF:
        raise unknown_name_error("limits.metric", name, METRIC_OF)
    if statistic is not None and statistic not in STATISTICS:
        raise unknown_name_error("limits.statistic", statistic, STATISTICS)
    _check_side(name, match["sign"], text)
    number = float(match["value"])
    if name in FLOORS:
        return _floor(name, statistic, number, match["unit"], text)
    value_s = _seconds(number, match["unit"], text)
    return Limit(METRIC_OF[name], statistic or DEFAULT_STATISTIC, value_s, text.strip())


def format_limit(limit: Limit) -> str:
    """Return a text that `parse_limit` reads as the same limit, in SI units.

    Examples
    --------
    >>> format_limit(parse_limit(" TTFT <= 500 ms "))
    'ttft:p95<=0.5s'
    >>> format_limit(parse_limit("throughput > 2000"))
    'throughput:mean>=2000'
    """
    number = np.format_float_positional(limit.value, trim="-")
    sign, unit = (">=", "") if limit.is_floor else ("<=", "s")
    return f"{_NAME_OF[limit.metric]}:{limit.statistic}{sign}{number}{unit}"


def _check_side(name: str, sign: str, text: str) -> None:
    is_floor = name in FLOORS
    if is_floor and sign[0] == "<":
        raise InputError("limits", f"{name} is wanted high: write {name}>=..., got {text[:60]!r}")
    if not is_floor and sign[0] == ">":
        raise InputError("limits", f"{name} is wanted low: write {name}<=..., got {text[:60]!r}")


def _seconds(number: float, unit: str, text: str) -> float:
    if unit not in {"ms", "s"}:
        raise InputError("limits", f"needs its time in ms or s, such as ttft<=500ms, got {text[:60]!r}")
    value_s = s_from_ms(number) if unit == "ms" else number
    if not 0 < value_s <= MAX_LIMIT_S:
        raise InputError("limits", f"must lie between 0 and {MAX_LIMIT_S:g} s, got {text[:60]!r}")
    return value_s


def _floor(name: str, statistic: str | None, number: float, unit: str, text: str) -> Limit:
    if unit not in _SPEED_UNITS:
        raise InputError("limits", f"{name} is in tokens per second: write {name}>={number:g}, got {text[:60]!r}")
    least = 1 / MAX_LIMIT_S
    if not least <= number <= MAX_LIMIT_TOKEN_PER_S:
        bounds = f"{least:.2g} and {MAX_LIMIT_TOKEN_PER_S:g} tokens/s"
        raise InputError("limits", f"must lie between {bounds}, got {text[:60]!r}")
    if name == "throughput_per_user":
        return Limit(METRIC_OF[name], statistic or DEFAULT_STATISTIC, 1.0 / number, text.strip())
    if statistic not in {None, "mean"}:
        raise InputError("limits", f"throughput is one figure of the run: write throughput>={number:g}")
    return Limit(METRIC_OF[name], "mean", number, text.strip(), is_floor=True)
