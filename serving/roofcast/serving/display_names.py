"""Codes, counts and amounts in words, for people. JSON keeps the codes."""

import datetime as dt
import tomllib
from pathlib import Path
from typing import Final

from roofcast.data.prices.regions import UNKNOWN_REGION
from roofcast.data.units import ms_from_s

_NAMES: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("display_names.toml").read_text(encoding="utf-8")
)
_UNITS: Final = ("_token_per_s", "_per_s", "_s_per_token", "_s", "_w")


def engine_name(engine: str) -> str:
    """Return the name of an engine as its makers write it; the code of one without an entry.

    Examples
    --------
    >>> engine_name("trtllm"), engine_name("llama.cpp")
    ('TensorRT-LLM', 'llama.cpp')
    """
    return _NAMES["engines"].get(engine, engine)


OBJECTIVE_NAMES: Final = _NAMES["objectives"]
"""Names of objectives by code."""

OPERATOR_NAMES: Final = _NAMES["operators"]
"""Names of operators by code, the default first."""


def precision_name(precision: str, weight_bit: float | None = None) -> str:
    """Return the name of a precision, with the bits of a weight where they are not its usual ones.

    Examples
    --------
    >>> precision_name("bf16")
    'BF16'
    """
    return precision.upper() + (f" of {weight_bit:.3g} bits a weight" if weight_bit else "")


def provider_name(provider: str) -> str:
    """Return the name of a provider; the code of one without an entry.

    Examples
    --------
    >>> provider_name("gcp"), provider_name("my-cloud")
    ('Google Cloud', 'my-cloud')
    """
    return _NAMES["providers"].get(provider, provider)


def region_name(region: str) -> str:
    """Return the name of a region; price lists that name none have the code `unknown`.

    Examples
    --------
    >>> region_name("eu-west-1"), region_name("unknown")
    ('eu-west-1', 'region not stated')
    """
    return "region not stated" if region == UNKNOWN_REGION else region


def pricing_name(pricing: str) -> str:
    """Return the name of a kind of price.

    Examples
    --------
    >>> pricing_name("on_demand"), pricing_name("spot")
    ('on demand', 'spot')
    """
    return _NAMES["pricing"].get(pricing, pricing)


def metric_name(metric: str) -> str:
    """Return the name of a metric, of a column or as limits name it.

    Examples
    --------
    >>> metric_name("ttft_s"), metric_name("nttft"), metric_name("output_throughput_token_per_s")
    ('TTFT', 'nTTFT', 'output throughput')
    """
    name = without_unit(metric)
    return _NAMES["metrics"].get(name, name.replace("_", " "))


def without_unit(metric: str) -> str:
    """Return the column of a metric without its unit.

    Examples
    --------
    >>> without_unit("ttft_s"), without_unit("output_throughput_token_per_s")
    ('ttft', 'output_throughput')
    """
    for unit in _UNITS:
        if metric.endswith(unit):
            return metric.removesuffix(unit)
    return metric


CENTS_FROM: Final = 0.1
WHOLE_FROM: Final = 1000.0
"""US dollars from which a text has cents, and only whole dollars."""


def count_text(n: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one.

    Examples
    --------
    >>> count_text(1, "row"), count_text(1200, "row"), count_text(0.5, "user")
    ('1 row', '1,200 rows', '0.5 users')
    """
    return f"{n:,.10g} {noun}{'s' if n != 1 else ''}"


def three_digits(value: float) -> str:
    """Return a number in three digits, or all of those before the decimal point.

    Examples
    --------
    >>> three_digits(19.327), three_digits(1962.4), three_digits(0.04786), three_digits(999.7)
    ('19.3', '1,962', '0.0479', '1,000')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def usd_text(value: float) -> str:
    """Return US dollars in cents, in whole dollars from a thousand on, in three digits below ten cents.

    Examples
    --------
    >>> usd_text(9820.4), usd_text(4.4), usd_text(0.38), usd_text(0.072084), usd_text(0)
    ('9,820', '4.40', '0.38', '0.0721', '0.00')
    """
    if 0 < abs(value) < CENTS_FROM:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= WHOLE_FROM else f"{value:.2f}"


def quantity_text(metric: str, value: float) -> str:
    """Return a figure of a metric with its unit.

    Examples
    --------
    >>> quantity_text("ttft_s", 0.2425), quantity_text("e2e_s", 8.438), quantity_text("power_w", 867.6)
    ('242 ms', '8.44 s', '868 W')
    >>> quantity_text("output_throughput_token_per_s", 1203)
    '1,203 tokens/s'
    """
    unit = metric.removeprefix(without_unit(metric))
    if unit == "_s":
        return f"{three_digits(ms_from_s(value))} ms" if value < 1 else f"{three_digits(value)} s"
    return f"{three_digits(value)}{_UNIT_TEXTS.get(unit, '')}"


def interval_text(metric: str, value: float, low: float, high: float) -> str:
    """Return a figure of a metric with its interval, whose ends have a unit only if it is another.

    Examples
    --------
    >>> interval_text("ttft_s", 0.1481, 0.0703, 0.3114), interval_text("ttft_s", 0.257, 0.0645, 1.03)
    ('148 ms (70.3 to 311)', '257 ms (64.5 ms to 1.03 s)')
    """
    figure, *ends = (quantity_text(metric, one) for one in (value, low, high))
    unit = figure.lstrip("0123456789.,-")
    if all(end.endswith(unit) and end.removesuffix(unit)[-1].isdigit() for end in ends):
        ends = [end.removesuffix(unit) for end in ends]
    return f"{figure} ({' to '.join(ends)})"


_UNIT_TEXTS = {"_token_per_s": " tokens/s", "_per_s": "/s", "_s_per_token": " s/token", "_w": " W"}


def price_date_text(as_of: str, today: dt.date) -> str:
    """Return the date of a price with its age.

    Examples
    --------
    >>> price_date_text("2026-05-24", dt.date(2026, 11, 27))
    'price of 2026-05-24 (187 days old)'
    """
    return f"price of {as_of} ({count_text((today - dt.date.fromisoformat(as_of)).days, 'day')} old)"
