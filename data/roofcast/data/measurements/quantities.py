"""Definitions of the measured quantities, and conversions of other quantities to them.

The tables of `docs/METRICS.md` are written from this module. A conversion is *derived* if it computes a quantity
from other observed ones; a change of unit, or from one accelerator to the deployment, is not. Rows name their derived
columns in `derived`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.units import S_PER_MS, S_PER_NS, S_PER_US

SPREAD: Final = "mean and percentiles"
MEAN_ONLY: Final = "mean"


@dataclass(frozen=True)
class Quantity:
    """A measured quantity: its column, the samples of its statistics, and its meaning."""

    column: str
    symbol: str
    over: str
    statistics: str
    meaning: str


QUANTITIES: Final = tuple(
    Quantity(*fields)
    for fields in (
        ("ttft_s", "TTFT", "requests", SPREAD,
         "From sending a request to its first output token, seen by the client: network and queue are included."),
        ("nttft_s_per_token", "nTTFT", "requests", SPREAD,
         "TTFT of a request over its own input tokens."),
        ("tpot_s", "TPOT", "requests", SPREAD,
         "(E2E - TTFT) / (output tokens - 1) of a request: the first token is left out. None for one output token."),
        ("itl_s", "ITL", "gaps", SPREAD,
         "Time between two consecutive arrivals of output; the gaps of all requests form one sample."),
        ("e2e_s", "E2E", "requests", SPREAD,
         "From sending a request to its last output token, seen by the client."),
        ("output_throughput_token_per_s", "output throughput", "run", MEAN_ONLY,
         "Output tokens of completed requests over the run's duration, of the whole deployment."),
        ("total_throughput_token_per_s", "total throughput", "run", MEAN_ONLY,
         "Input and output tokens of completed requests over the run's duration, of the whole deployment."),
        ("request_throughput_per_s", "request throughput", "run", MEAN_ONLY,
         "Completed requests over the run's duration: the reached rate, not the request rate of the load."),
        ("power_w", "power", "run", MEAN_ONLY,
         "Mean electric power of all accelerators together."),
        ("memory_byte", "memory", "run", MEAN_ONLY,
         "Peak memory in use of all accelerators together."),
    )
)  # fmt: skip
"""Every outcome column. Statistics are over completed requests of the measured phase."""

MEAN_ONLY_COLUMNS: Final = tuple(q.column for q in QUANTITIES if q.statistics == MEAN_ONLY)
"""Outcomes of a run as a whole, only in its row of statistic `mean`."""

LOAD_MEANINGS: Final = {
    "closed_loop": "`concurrency` requests are in flight at any time: the next is sent when one ends.",
    "open_loop": "`request_rate` requests are sent per second, independent of completions.",
    "static_batch": "`concurrency` requests start together as one batch; the next starts when the last of them ends.",
    "offline": "All requests are sent at once and wait in the engine's queue; throughput alone is comparable.",
}

STATISTIC_MEANINGS: Final = {
    "mean": "arithmetic mean; the only row with throughputs",
    "p50": "median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
}

S_PER_UNIT: Final = {
    "ns": S_PER_NS, "us": S_PER_US, "ms": S_PER_MS, "s": 1.0, "sec": 1.0, "seconds": 1.0,
}  # fmt: skip
"""Seconds by unit, as benchmark clients write units."""


def s_from_unit(value: float, unit: str) -> float:
    """Return seconds of a time with its unit.

    Raises
    ------
    InputError
        If the unit is not in `S_PER_UNIT`.

    Examples
    --------
    >>> s_from_unit(250.0, "ms")
    0.25
    """
    if unit not in S_PER_UNIT:
        raise InputError("unit", f"must be one of {', '.join(S_PER_UNIT)}, got {unit[:60]!r}")
    return value * S_PER_UNIT[unit]


def tpot_from_inclusive(tpot_with_first_s: float, ttft_s: float, n_output_token: float) -> float:
    """Return TPOT from one that counts the first token and its wait: derived.

    Exact for a request, and for means over requests of one output length. NaN for one output token.

    Examples
    --------
    Four tokens in 1.6 s, the first of them after 1 s:

    >>> round(tpot_from_inclusive(0.4, ttft_s=1.0, n_output_token=4), 6)
    0.2
    """
    return tpot_from_e2e(tpot_with_first_s * n_output_token, ttft_s, n_output_token)


def tpot_from_e2e(e2e_s: float, ttft_s: float, n_output_token: float) -> float:
    """Return TPOT from E2E and TTFT: derived, except of a single request, where it is the definition.

    Examples
    --------
    >>> round(tpot_from_e2e(1.6, ttft_s=1.0, n_output_token=4), 6)
    0.2
    >>> tpot_from_e2e(1.6, ttft_s=1.6, n_output_token=1)
    nan
    """
    return (e2e_s - ttft_s) / (n_output_token - 1) if n_output_token > 1 else math.nan


def tpot_from_user_speed(speed_token_per_s: float) -> float:
    """Return TPOT from the output tokens per second of one user, after the first token: derived.

    For one request: the mean of speeds is not the inverse of the mean TPOT.

    Examples
    --------
    >>> tpot_from_user_speed(50.0)
    0.02
    """
    return 1.0 / speed_token_per_s if speed_token_per_s > 0 else math.nan


def e2e_from_parts(ttft_s: float, tpot_s: float, n_output_token: float) -> float:
    """Return E2E from TTFT and TPOT: derived, and for means only, since percentiles do not add up.

    Examples
    --------
    >>> e2e_from_parts(ttft_s=1.0, tpot_s=0.25, n_output_token=5)
    2.0
    """
    return ttft_s + tpot_s * max(n_output_token - 1, 0.0)


def deployment_throughput(per_accelerator: float, n_accelerator: float) -> float:
    """Return the throughput of the deployment from that of one accelerator: a change of reference, not derived.

    Examples
    --------
    >>> deployment_throughput(125.0, n_accelerator=8)
    1000.0
    """
    return per_accelerator * n_accelerator


def total_from_output_throughput(output_token_per_s: float, n_input_token: float, n_output_token: float) -> float:
    """Return total throughput from output throughput and mean request lengths: derived.

    Examples
    --------
    >>> total_from_output_throughput(100.0, n_input_token=300, n_output_token=100)
    400.0
    """
    return output_token_per_s * (n_input_token + n_output_token) / n_output_token


def output_from_total_throughput(total_token_per_s: float, n_input_token: float, n_output_token: float) -> float:
    """Return output throughput from total throughput and mean request lengths: derived.

    Examples
    --------
    >>> output_from_total_throughput(400.0, n_input_token=300, n_output_token=100)
    100.0
    """
    return total_token_per_s * n_output_token / (n_input_token + n_output_token)


def request_from_output_throughput(output_token_per_s: float, n_output_token: float) -> float:
    """Return request throughput from output throughput and mean output length: derived.

    Examples
    --------
    >>> request_from_output_throughput(400.0, n_output_token=100)
    4.0
    """
    return output_token_per_s / n_output_token


def static_batch_throughput(n_batch: float, n_token: float, latency_s: float) -> float:
    """Return the throughput of a static batch: derived.

    Parameters
    ----------
    n_batch
        Requests of the batch.
    n_token
        Counted tokens of each: output for output throughput, input and output for total throughput.
    latency_s
        From the start of the batch to its last token.

    Examples
    --------
    >>> static_batch_throughput(16, n_token=128, latency_s=4.0)
    512.0
    """
    return n_batch * n_token / latency_s


def closed_loop_throughput(concurrency: float, n_token: float, e2e_s: float) -> float:
    """Return the throughput of a closed loop from its mean E2E, by Little's law: derived.

    Parameters
    ----------
    concurrency
        Requests in flight.
    n_token
        Mean counted tokens of a request.
    e2e_s
        Mean over requests.

    References
    ----------
    J. D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 9(3), 1961.

    Examples
    --------
    >>> closed_loop_throughput(8, n_token=100, e2e_s=2.0)
    400.0
    """
    return concurrency * n_token / e2e_s


@dataclass(frozen=True)
class Conversion:
    """A conversion of a published quantity to one of the table; `holds` states for which statistic or load."""

    function: Callable[..., float]
    gives: str
    formula: str
    holds: str
    is_derived: bool = True


CONVERSIONS: Final = tuple(
    Conversion(*fields)
    for fields in (
        (tpot_from_inclusive, "tpot_s", "(TPOT with first x OSL - TTFT) / (OSL - 1)", "request; mean at one OSL"),
        (tpot_from_e2e, "tpot_s", "(E2E - TTFT) / (OSL - 1)", "request; mean at one OSL"),
        (tpot_from_user_speed, "tpot_s", "1 / speed of one user", "request"),
        (e2e_from_parts, "e2e_s", "TTFT + TPOT x (OSL - 1)", "request; mean"),
        (deployment_throughput, "output_throughput_token_per_s", "per accelerator x accelerators", "always", False),
        (total_from_output_throughput, "total_throughput_token_per_s", "output x (ISL + OSL) / OSL", "mean lengths"),
        (output_from_total_throughput, "output_throughput_token_per_s", "total x OSL / (ISL + OSL)", "mean lengths"),
        (request_from_output_throughput, "request_throughput_per_s", "output throughput / OSL", "mean lengths"),
        (static_batch_throughput, "output_throughput_token_per_s", "batch x tokens / latency", "static batch"),
        (closed_loop_throughput, "output_throughput_token_per_s", "concurrency x OSL / E2E", "closed loop, mean"),
    )
)
"""Every conversion. ISL and OSL are mean request lengths."""
