"""Metrics that a question has not: latencies of a queue that grows without end, time per token of one token."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import BoolArray, Queries
from roofcast.serving.counts import quantity_text, three_digits

SATURATED: Final = "saturated"
"""Status of a question whose request rate is more than one replica sustains."""

LENGTH_REMARK: Final = "an answer of one token has no time per output token"


def undefined_metrics(queries: Queries, estimate: Estimate) -> Mapping[str, BoolArray]:
    """Return which rows have no value of a metric, by metric: shapes (n_row,)."""
    is_one = np.asarray(queries["workload.n_output_token"] <= 1, dtype=bool)
    return {
        "ttft_s": estimate.is_saturated,
        "e2e_s": estimate.is_saturated,
        "tpot_s": is_one,
        "itl_s": is_one,
    }


def saturation_text(queries: Queries, estimate: Estimate, i: int) -> str:
    """Return what becomes of a saturated replica: the rate that it holds, the growth of the queue, TTFT over time.

    Notes
    -----
    A request that arrives after ``t`` finds ``(rate - held) t`` others before it, which take ``(rate / held - 1) t``.
    """
    rate, ratio = float(queries["workload.request_rate_per_s"][i]), float(estimate.rate_ratio[i])
    served_s = float(estimate.ttft_s[i] - estimate.queue_s[i])
    after = [quantity_text("ttft_s", (ratio - 1) * t + served_s) for t in (60.0, 600.0)]
    held, growth = three_digits(rate / ratio), three_digits(rate - rate / ratio)
    return (
        f"request_rate: {rate:g}/s is more than one replica sustains, about {held}/s; the queue grows by {growth} "
        f"requests a second, TTFT is about {after[0]} after one minute and {after[1]} after ten; use more replicas"
    )
