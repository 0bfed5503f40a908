"""Electric power of the accelerators of one replica."""

from typing import Final

import numpy as np

from roofcast.features.analysis.breakdown import BOUNDS, Bound, OperatorTime, bound_seconds
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import FloatArray, Queries

DRAW: Final[dict[Bound, float]] = {"compute": 1.0, "memory": 0.65, "link": 0.4, "launch": 0.4, "queue": 0.2}
"""Share of the thermal design power drawn by bound; ``queue`` is idle.

References
----------
P. Patel et al., "Characterizing Power Management Opportunities for LLMs in the Cloud", ASPLOS 2024 (prefill draws up
to the design power, decode less); B. Ma et al., "The Illusion of Power Capping in LLM Decode", 2026, arXiv 2605.11999
(decode of an H200 draws 20 to 43 %); "The Model Parking Tax", 2026, arXiv 2605.23918 (idle boards with a loaded
model). The values are judgement within these ranges, informed by the 48 rows of Argonne's campaign.
"""


def replica_power_w(d: Queries, e: Estimate, parts: list[OperatorTime]) -> FloatArray:
    """Return the mean power of all accelerators of a replica under its load, in watts: shape (n_row,).

    It includes the accelerator boards, not their servers.

    `d`, `e` and `parts`: descriptors, their estimate and its `roofcast.features.analysis.breakdown.break_down`.

    Notes
    -----
    The accelerators run ``throughput / batch`` decode steps per second and as many prefills as requests complete, and
    are idle otherwise. Prefills that interrupt decoding count as prefills.

    Examples
    --------
    A higher concurrency draws more power:

    >>> from roofcast.features.engine.estimate import estimate
    >>> from roofcast.features.analysis.breakdown import break_down
    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> d = {name: np.repeat(values, 2) for name, values in example_descriptors().items()}
    >>> d["workload.concurrency"] = np.array([1.0, 32.0])
    >>> e = estimate(d, DEFAULT_COEFFICIENTS)
    >>> few, many = replica_power_w(d, e, break_down(d, DEFAULT_COEFFICIENTS, e))
    >>> bool(many > few)
    True
    """
    n_prompt = np.where(d["workload.is_static"] > 0, np.maximum(e.concurrency / d["config.dp"], 1.0), 1.0)
    prefill_per_s = e.request_throughput_per_s / n_prompt / d["config.dp"]
    token_per_s = e.output_throughput_token_per_s / np.maximum(e.batch, 1.0)
    seconds = {
        "prefill": (bound_seconds(parts, ("prefill",)), prefill_per_s),
        "decode": (bound_seconds(parts, ("decode",)), token_per_s),
    }
    busy, drawn = np.zeros_like(token_per_s), np.zeros_like(token_per_s)
    for by_bound, per_s in seconds.values():
        for bound in BOUNDS[:-1]:
            busy = busy + by_bound[bound] * per_s
            drawn = drawn + by_bound[bound] * per_s * DRAW[bound]
    over = np.maximum(busy, 1.0)
    share = drawn / over + DRAW["queue"] * np.maximum(1 - busy, 0.0)
    n_accelerator = d["config.n_accelerator"] + d["config.n_prefill_accelerator"]
    return n_accelerator * d["hardware.tdp_w"] * share
