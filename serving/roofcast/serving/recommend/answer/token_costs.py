"""Token costs: cost per request, shared between prompt and response by accelerator time."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roofcast.data.units import S_PER_H, TOKEN_PER_MTOKEN
from roofcast.features.analysis.breakdown import BOUNDS, OperatorTime, Phase, bound_seconds
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import FloatArray
from roofcast.serving.recommend.demand.demand import Demand


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """US dollars per million input tokens, output tokens, and tokens of both kinds."""

    input: float
    output: float
    total: float


def token_costs(
    demand: Demand, usd_per_h: float, in_flight: float, request_rate_per_s: float, input_ratio: float
) -> TokenCosts:
    """Return the token costs at the load given; instances are also paid for off the peak.

    - `usd_per_h`: Of the whole deployment; without a load of one replica.
    - `in_flight`, `request_rate_per_s`: Requests in flight on a replica at its share of the peak, and those completed
      per second. They give the rate of one user, which is taken to be the same off the peak.
    - `input_ratio`: The prompt's share of a request's cost, from `prefill_share`.

    Notes
    -----
    The cost of a request is the cost over the request rate. Input tokens at the input price and output tokens at the
    output price add up to it.

    Examples
    --------
    3.6 dollars an hour for one request per second, a quarter of its cost for the prompt:

    >>> demand = Demand(500, 100, None, 1.0, ())
    >>> costs = token_costs(demand, 3.6, 2.0, 1.0, 0.25)
    >>> round(costs.input, 6), round(costs.output, 6)
    (0.5, 7.5)
    >>> round((500 * costs.input + 100 * costs.output) / 1e6, 6)
    0.001
    """
    load = demand.peak_load / demand.peak_factor
    served = demand.served_load(in_flight, request_rate_per_s)
    rate = load if demand.users is None else request_rate_per_s * (1.0 if demand.is_endless else load / served)
    usd = usd_per_h / (rate * S_PER_H) * TOKEN_PER_MTOKEN
    return TokenCosts(
        input=usd * input_ratio / demand.n_input_token,
        output=usd * (1 - input_ratio) / demand.n_output_token,
        total=usd / (demand.n_input_token + demand.n_output_token),
    )


def prefill_share(d: Mapping[str, FloatArray], e: Estimate, parts: list[OperatorTime]) -> FloatArray:
    """Return the prompt's share of the accelerator time of a request: shape (n_row,), from 0 to 1.

    `d`: descriptors, none of a static batch. `e` and `parts`: their estimate and breakdown.

    Notes
    -----
    A prefill occupies one data-parallel rank, and one stage of a pipeline at a time, as others follow it; a decode
    step is shared by the requests on the rank. Waiting does not count,
    and prefills that interrupt decoding count as prefills, as in `roofcast.features.analysis.power`.

    References
    ----------
    R. S. Kaplan and S. R. Anderson, "Time-Driven Activity-Based Costing", Harvard Business Review 82(11), 2004:
    cost is allocated by the time that each activity takes of the resource.

    Examples
    --------
    >>> from roofcast.features.engine.estimate import estimate
    >>> from roofcast.features.analysis.breakdown import break_down
    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> d = {name: np.repeat(values, 2) for name, values in example_descriptors().items()}
    >>> d["workload.n_output_token"] = np.array([1000.0, 10.0])
    >>> e = estimate(d, DEFAULT_COEFFICIENTS)
    >>> long, short = prefill_share(d, e, break_down(d, DEFAULT_COEFFICIENTS, e))
    >>> bool(0 < long < short < 1)
    True
    """
    prompt = _work_s(parts, "prefill") / (d["config.dp"] * d["config.pp"])
    response = _work_s(parts, "decode") * d["workload.n_output_token"] / np.maximum(e.batch, 1.0)
    return np.asarray(prompt / (prompt + response), dtype=np.float64)


def _work_s(parts: list[OperatorTime], phase: Phase) -> FloatArray:
    seconds = bound_seconds(parts, (phase,))
    return np.asarray(sum(seconds[bound] for bound in BOUNDS if bound != "queue"), dtype=np.float64)
