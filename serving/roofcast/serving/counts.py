"""Counts and amounts in words."""

from __future__ import annotations

from roofcast.data.units import ms_from_s


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


def metric_text(metric: str) -> str:
    """Return the name of a metric without its unit, as limits name it.

    Examples
    --------
    >>> metric_text("ttft_s"), metric_text("output_throughput_token_per_s")
    ('ttft', 'output_throughput')
    """
    for unit in ("_token_per_s", "_per_s", "_s_per_token", "_s", "_w"):
        if metric.endswith(unit):
            return metric.removesuffix(unit)
    return metric


def quantity_text(metric: str, value: float) -> str:
    """Return a figure of a metric with its unit.

    Examples
    --------
    >>> quantity_text("ttft_s", 0.2425), quantity_text("e2e_s", 8.438), quantity_text("power_w", 867.6)
    ('242 ms', '8.44 s', '868 W')
    >>> quantity_text("output_throughput_token_per_s", 1203)
    '1,203 tokens/s'
    """
    unit = metric.removeprefix(metric_text(metric))
    if unit == "_s":
        return f"{three_digits(ms_from_s(value))} ms" if value < 1 else f"{three_digits(value)} s"
    return f"{three_digits(value)}{_UNITS.get(unit, '')}"


_UNITS = {"_token_per_s": " tokens/s", "_per_s": "/s", "_s_per_token": " s/token", "_w": " W"}
