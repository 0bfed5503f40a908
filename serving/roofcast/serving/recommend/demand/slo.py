"""Service-level objectives: the grammar ``metric:statistic<=value unit`` and its limits."""

import math
import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.specs import STATISTICS
from roofcast.data.units import ms_from_s, s_from_ms
from roofcast.serving.display_names import metric_name
from roofcast.serving.request_fields import unknown_name_error

RATE_OF_USER: Final = "throughput_per_user"
METRIC_OF: Final = {
    "ttft": "ttft_s",
    "nttft": "nttft_s_per_token",
    "tpot": "tpot_s",
    "itl": "itl_s",
    "e2e": "e2e_s",
    "throughput": "output_throughput_token_per_s",
    RATE_OF_USER: "tpot_s",
}
"""Metric of each name in the grammar."""

FLOORS: Final = ("throughput", RATE_OF_USER)
"""Names whose limit is a lower bound, in tokens per second; the others are latencies."""

PREFILL_METRICS: Final = frozenset({"ttft_s", "nttft_s_per_token", "e2e_s"})
"""Metrics that include queueing and the request's own prefill."""

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


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on one statistic of one metric.

    - `statistic`: Over requests (TTFT, nTTFT, TPOT, E2E), token gaps (ITL) or the run (throughput).
    - `value`: In the metric's SI unit.
    - `text`: As the caller wrote it.
    - `is_floor`: Whether it is a lower bound, on the throughput of the whole deployment.

    - `quantity`: Metric and statistic.
    """

    metric: str
    statistic: str
    value: float
    text: str
    is_floor: bool = False
    quantity: tuple[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantity", (self.metric, self.statistic))

    @property
    def unit(self) -> str:
        """Unit of the value."""
        if self.is_floor:
            return "token/s"
        return "s/token" if self.metric.endswith("_per_token") else "s"

    @property
    def is_rate_of_user(self) -> bool:
        """Whether it is written as the output rate of a user, `throughput_per_user`, and stored as a TPOT."""
        return self.text.lower().lstrip().startswith(RATE_OF_USER)


def parse_limit(text: str) -> Limit:
    """Return the limit that a text states.

    The default statistic is p95. `throughput_per_user>=25`, 25 tokens per second for 95 of 100 requests, is stored as
    a TPOT of at most 1/25 s. `throughput` is that of the whole deployment, and only has a mean.

    Raises `InputError` if the text does not follow the grammar, the sign is wrong for the metric or the value out of
    range; `UnknownNameError` if the metric or statistic is unknown.

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
    if name in FLOORS and match["sign"][0] == "<":
        raise InputError("limits", f"{name} needs a lower bound: write {name}>=..., got {text[:60]!r}")
    if name not in FLOORS and match["sign"][0] == ">":
        raise InputError("limits", f"{name} needs an upper bound: write {name}<=..., got {text[:60]!r}")
    read = _parse_floor if name in FLOORS else _parse_latency
    return read(name, statistic, float(match["value"]), match["unit"], text)


def describe_limit(limit: Limit) -> str:
    """Return a limit in words.

    Examples
    --------
    >>> [describe_limit(parse_limit(text)) for text in ("ttft:p95<=500ms", "throughput>=2000")]
    ['TTFT p95 up to 500 ms', 'throughput from 2,000 tokens/s']
    >>> describe_limit(parse_limit("throughput_per_user:p50>=25"))
    'throughput per user p50 from 25 tokens/s'
    """
    if limit.is_rate_of_user:
        return f"throughput per user {limit.statistic} from {_decimal(float(f'{1.0 / limit.value:.10g}'))} tokens/s"
    if limit.is_floor:
        return f"throughput from {_decimal(limit.value)} tokens/s"
    return f"{metric_name(limit.metric)} {limit.statistic} up to {_latency(limit)}"


def loosen_limit(limit: Limit, factor: float) -> tuple[Limit, str]:
    """Return a limit on a latency that is looser by a factor, and both values in words.

    The rate of a user is looser at a lower rate, of three digits that are not above it.

    Examples
    --------
    >>> loosen_limit(parse_limit("ttft:p95<=500ms"), 1.5)[1]
    'TTFT p95 up to 750 ms instead of 500 ms'
    >>> loosen_limit(parse_limit("throughput_per_user:p50>=25"), 1.5)[1]
    'throughput per user p50 down to 16.6 tokens/s instead of 25 tokens/s'
    """
    if limit.is_rate_of_user:
        rate = float(f"{1.0 / limit.value:.10g}")
        lower = floor_to_three_digits(rate / factor)
        text = f"down to {_decimal(lower)} tokens/s instead of {_decimal(rate)} tokens/s"
        return replace(limit, value=1.0 / lower), f"throughput per user {limit.statistic} {text}"
    looser = replace(limit, value=limit.value * factor)
    name = metric_name(limit.metric)
    return looser, f"{name} {limit.statistic} up to {_latency(looser)} instead of {_latency(limit)}"


def floor_to_three_digits(value: float) -> float:
    """Return the largest number of three digits that is not above a positive one.

    Examples
    --------
    >>> floor_to_three_digits(16.667), floor_to_three_digits(12345.0), floor_to_three_digits(0.3)
    (16.6, 12300.0, 0.3)
    """
    digits = 2 - math.floor(math.log10(value))
    rounded = round(value, digits)
    return rounded if rounded <= value else round(rounded - 10.0**-digits, digits)


def _latency(limit: Limit) -> str:
    if limit.value >= 1:
        return f"{_decimal(limit.value)} {limit.unit}"
    return f"{_decimal(ms_from_s(limit.value))} m{limit.unit}"


def _decimal(value: float) -> str:
    return f"{Decimal(f'{value:.10g}'):,f}"


def _parse_latency(name: str, statistic: str | None, number: float, unit: str, text: str) -> Limit:
    if unit not in {"ms", "s"}:
        raise InputError("limits", f"needs its time in ms or s, such as ttft<=500ms, got {text[:60]!r}")
    value_s = s_from_ms(number) if unit == "ms" else number
    if not 0 < value_s <= MAX_LIMIT_S:
        raise InputError("limits", f"must lie between 0 and {MAX_LIMIT_S:g} s, got {text[:60]!r}")
    return Limit(METRIC_OF[name], statistic or DEFAULT_STATISTIC, value_s, text.strip())


def _parse_floor(name: str, statistic: str | None, number: float, unit: str, text: str) -> Limit:
    if unit not in _SPEED_UNITS:
        raise InputError("limits", f"{name} is in tokens per second: write {name}>={number:g}, got {text[:60]!r}")
    low = 1 / MAX_LIMIT_S
    if not low <= number <= MAX_LIMIT_TOKEN_PER_S:
        bounds = f"{low:.2g} and {MAX_LIMIT_TOKEN_PER_S:g} tokens/s"
        raise InputError("limits", f"must lie between {bounds}, got {text[:60]!r}")
    if name == RATE_OF_USER:
        return Limit(METRIC_OF[name], statistic or DEFAULT_STATISTIC, 1.0 / number, text.strip())
    if statistic not in {None, "mean"}:
        raise InputError("limits", f"throughput has a mean only: write throughput>={number:g}")
    return Limit(METRIC_OF[name], "mean", number, text.strip(), is_floor=True)
