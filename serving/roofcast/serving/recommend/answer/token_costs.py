"""What tokens cost: the bill by requests, and what a request costs by its prompt and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roofcast.data.units import S_PER_H, TOKEN_PER_MTOKEN
from roofcast.features.analysis.breakdown import BOUNDS, OperatorTime, Phase, bound_seconds
from roofcast.features.engine.estimate import Estimate
from roofcast.serving.recommend.demand.demand import Demand

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """US dollars per million tokens: of prompts, of answers, and of both together."""

    input: float
    output: float
    every: float


def token_costs(
    demand: Demand, usd_per_h: float, in_flight: float, request_rate_per_s: float, input_ratio: float
) -> TokenCosts:
    """Return what tokens cost under the load that was given; the instances are paid for off the peak as well.

    Parameters
    ----------
    demand
        What is served.
    usd_per_h
        Of the whole deployment.
    in_flight, request_rate_per_s
        Requests in flight on a replica under its share of the peak, and those that it finishes; of users who think
        or wait they tell how often one sends, which is taken to be the same off the peak.
    input_ratio
        Share of a request's cost that is its prompt's, as `input_share` tells.

    Notes
    -----
    A request costs the bill over the requests. Its prompt and its answer share that, so that input tokens at the
    price of input and output tokens at the price of output add up to it.

    Examples
    --------
    3.6 dollars an hour for one request a second, of whose work a quarter is the prompt's:

    >>> demand = Demand(500, 100, None, 1.0, ())
    >>> costs = token_costs(demand, 3.6, 2.0, 1.0, 0.25)
    >>> round(costs.input, 6), round(costs.output, 6)
    (0.5, 7.5)
    >>> round((500 * costs.input + 100 * costs.output) / 1e6, 6)
    0.001
    """
    load = demand.peak_load / demand.peak_factor
    served = demand.served_load(in_flight, request_rate_per_s)
    rate = load if demand.users is None else request_rate_per_s * load / served
    usd = usd_per_h / (rate * S_PER_H) * TOKEN_PER_MTOKEN
    return TokenCosts(
        input=usd * input_ratio / demand.n_input_token,
        output=usd * (1 - input_ratio) / demand.n_output_token,
        every=usd / (demand.n_input_token + demand.n_output_token),
    )


def input_share(d: Mapping[str, FloatArray], e: Estimate, parts: list[OperatorTime]) -> FloatArray:
    """Return what share of the accelerators' work on a request is its prompt's: shape (n_question,), from 0 to 1.

    Parameters
    ----------
    d
        Descriptors, of which none is of a static batch.
    e, parts
        The estimate and what `roofcast.features.analysis.breakdown.break_down` says of it.

    Notes
    -----
    A prefill has a rank of attention to itself, a decode step is shared by the requests that run on one. Waiting is
    no work, and prefills that interrupt decoding count as prefills: so `roofcast.features.analysis.power` counts too.

    References
    ----------
    R. S. Kaplan and S. R. Anderson, "Time-Driven Activity-Based Costing", Harvard Business Review 82(11), 2004: a
    cost is shared by the time that each activity takes of what is paid for.

    Examples
    --------
    >>> from roofcast.features.engine.estimate import estimate
    >>> from roofcast.features.analysis.breakdown import break_down
    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> d = {name: np.repeat(values, 2) for name, values in example_descriptors().items()}
    >>> d["workload.n_output_token"] = np.array([1000.0, 10.0])
    >>> e = estimate(d, DEFAULT_COEFFICIENTS)
    >>> long, short = input_share(d, e, break_down(d, DEFAULT_COEFFICIENTS, e))
    >>> bool(0 < long < short < 1)
    True
    """
    prompt = _work_s(parts, "prefill") / d["config.dp"]
    answer = _work_s(parts, "decode") * d["workload.n_output_token"] / np.maximum(e.batch, 1.0)
    return np.asarray(prompt / (prompt + answer), dtype=np.float64)


def _work_s(parts: list[OperatorTime], phase: Phase) -> FloatArray:
    """Return the seconds of a phase without those of waiting."""
    seconds = bound_seconds(parts, (phase,))
    return np.asarray(sum(seconds[bound] for bound in BOUNDS if bound != "queue"), dtype=np.float64)
