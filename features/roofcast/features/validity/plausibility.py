"""Measurements that break physical bounds or contradict each other: they are errors."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.measurements.speculation import speculates
from roofcast.data.units import ms_from_s
from roofcast.features.descriptors.prediction_input import column_arrays
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.queries import BoolArray, FloatArray, Queries, descriptor_arrays
from roofcast.features.validity.physical_bounds import flop_per_token, least_step_s, peak_flop_per_s

SLACK: Final = 0.9
"""Share of a bound below which a measurement breaks it; it allows for rounded data sheets and counts."""

CONSISTENT: Final = (0.5, 1.5)
"""Range of closed-loop throughput over the throughput implied by latency and concurrency."""

MONOTONE: Final = 0.7
"""Least ratio of a step's time to that with fewer requests in flight.

A larger batch never computes or reads less, so a step cannot be faster. Repeats of one run scatter by 2.5 to 4 %, the
ratio of two by up to 6 %; 30 % is five times as much, so one of the two runs is mislabelled.
"""

UNIT_TOLERANCE: Final = 5.0
"""Greatest error factor of the estimate of a whole file at which a wrong unit of time is recognised.

Milliseconds read as seconds are 1,000 times too long. An engine whose median latency is 200 times the estimate leaves
99.5 % of its machine idle, so a median of 200 to 5,000 times the estimate is in the wrong unit.
"""

SERIES: Final = (
    "campaign", "model", "accelerator", "n_accelerator", "engine", "engine_version", "weight_precision",
    "kv_precision", "tp", "pp", "dp", "ep", "moe_tp", "cp", "n_node", "n_prefill_accelerator", "n_decode_accelerator",
    "activation_precision", "speculation", "n_speculative_token", "prefix_caching", "lora_rank", "flash_attention",
    "load", "date", "software",
)  # fmt: skip
"""Columns that runs of one series share, besides request lengths to two digits; the concurrency differs, and so may
settings that a script derives from it (chunks, polling, waiting)."""

RUN: Final = (*SERIES, "n_input_token", "n_output_token", "concurrency")
"""Columns that the rows of one run share; they differ in statistic and outcomes."""

Violation = tuple[BoolArray, str]
"""Mask of the rows that break a rule, and its description."""


def implausible_rows(measurements: pd.DataFrame, descriptors: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that break a rule: columns `rule` and `detail`, of the first rule broken.

    `measurements` and `descriptors`: rows of the measurement table and their descriptors, on one index.
    """
    violations = pd.DataFrame({"rule": "", "detail": ""}, index=measurements.index, dtype=object)
    d = descriptor_arrays(descriptors)
    for rule, check in RULES.items():
        is_broken, detail = check(measurements, d)
        is_first = is_broken & (violations["rule"] == "").to_numpy()
        violations.loc[is_first, ["rule", "detail"]] = [rule, detail]
    return violations[violations["rule"] != ""]


def non_monotone_rows(measurements: pd.DataFrame) -> BoolArray:
    """Return which rows contradict their series: a step is much faster with more requests in flight.

    In a closed loop the mean time per token must not fall below `MONOTONE` times that with fewer requests, in a
    static batch the latency of the whole batch. The row of a series that contradicts the most others is removed
    first, until none contradict; rows with equally many contradictions are removed together. Percentiles are removed
    with the mean of their run.

    Returns
    -------
    shape (n_row,)
    """
    is_static = measurements["load"] == "static_batch"
    step = measurements["tpot_s"].fillna(measurements["itl_s"]).mask(is_static, measurements["e2e_s"])
    has_concurrency = measurements["load"].isin(["closed_loop", "static_batch"]) & measurements["concurrency"].notna()
    means = measurements[has_concurrency & (measurements["statistic"] == "mean") & (step > 0)]
    lengths = [means[name].map("{:.1e}".format) for name in ("n_input_token", "n_output_token")]
    position = pd.Series(np.arange(len(measurements)), index=measurements.index)
    is_out = np.zeros(len(measurements), dtype=bool)
    for _, series in means.groupby([*SERIES, *lengths], dropna=False, sort=False):
        if len(series) > 1:
            out = _contradictions(
                series["concurrency"].to_numpy(dtype=float), step[series.index].to_numpy(dtype=float)
            )
            is_out[position[series.index].to_numpy()[out]] = True
    run = measurements.groupby(list(RUN), dropna=False, sort=False).ngroup().to_numpy()
    is_percentile = (measurements["statistic"] != "mean").to_numpy()
    return is_out | (is_percentile & np.isin(run, run[is_out]))


def _contradictions(concurrency: FloatArray, step: FloatArray) -> BoolArray:
    is_more = concurrency[None, :] > concurrency[:, None]
    contradicts = is_more & (step[None, :] < MONOTONE * step[:, None])
    contradicts |= contradicts.T
    out = np.zeros(len(step), dtype=bool)
    while contradicts.any():
        n_other = contradicts.sum(axis=1)
        worst = n_other == n_other.max()
        out |= worst
        contradicts[worst] = contradicts[:, worst] = False
    return out


def millisecond_columns(measurements: pd.DataFrame, descriptors: pd.DataFrame) -> dict[str, float]:
    """Return the columns of seconds that hold milliseconds, each with its median ratio to the estimate.

    `measurements` and `descriptors`: rows that were published together, such as those of a file, and their
    descriptors, on one index.

    Notes
    -----
    Only means and medians count, and no unbounded queues (offline runs, saturating request rates), whose waits the
    estimate does not bound.
    """
    d = descriptor_arrays(descriptors)
    e = estimate(d, DEFAULT_COEFFICIENTS)
    is_bounded = (measurements["load"] != "offline").to_numpy() & ~e.is_saturated
    is_bounded &= measurements["statistic"].isin(["mean", "p50"]).to_numpy()
    estimates = {
        "ttft_s": e.ttft_s,
        "nttft_s_per_token": e.ttft_s / d["workload.n_input_token"],
        "itl_s": e.itl_s,
        "tpot_s": e.tpot_s,
        "e2e_s": e.e2e_s,
    }
    low, high = ms_from_s(1.0) / UNIT_TOLERANCE, ms_from_s(1.0) * UNIT_TOLERANCE
    ratios = {}
    for column, expected in estimates.items():
        measured = measurements[column].to_numpy(dtype=float)
        rows = is_bounded & (measured > 0)
        if rows.any():
            ratios[column] = float(np.median(measured[rows] / expected[rows]))
    return {column: ratio for column, ratio in ratios.items() if low < ratio < high}


def _faster_than_memory(rows: pd.DataFrame, d: Queries) -> Violation:
    gap = rows[["itl_s", "tpot_s"]].min(axis=1).to_numpy(dtype=float)
    is_plain = ~speculates(column_arrays(rows)) & rows["statistic"].isin(["mean", "p50"]).to_numpy()
    return is_plain & (gap < SLACK * least_step_s(d)), "a token came sooner than its weights can be read once"


def _faster_than_compute(rows: pd.DataFrame, d: Queries) -> Violation:
    is_encoder = d["model.n_encoder_layer"] > 0
    least = flop_per_token(d) * d["workload.n_input_token"] / peak_flop_per_s(d)
    is_cold = (rows["prefix_caching"] != "on").to_numpy() & ~(rows["prefix_cache_ratio"] > 0).to_numpy()
    is_mean = (rows["statistic"] == "mean").to_numpy()
    is_broken = is_mean & is_cold & ~is_encoder & (rows["ttft_s"].to_numpy(dtype=float) < SLACK * least)
    return is_broken, "the first token came sooner than the prompt can be computed at peak"


def _more_than_peak(rows: pd.DataFrame, d: Queries) -> Violation:
    least_flop_per_s = rows["output_throughput_token_per_s"].to_numpy(dtype=float) * flop_per_token(d)
    return least_flop_per_s * SLACK > peak_flop_per_s(d), "more tokens a second than the peak operations can make"


def _inconsistent_throughput(rows: pd.DataFrame, d: Queries) -> Violation:
    is_closed = (rows["load"] == "closed_loop").to_numpy() & (rows["statistic"] == "mean").to_numpy()
    is_measured = ~rows["derived"].str.contains("output_throughput_token_per_s", regex=False).to_numpy()
    n_output = d["workload.n_output_token"]
    gap = rows["tpot_s"].fillna(rows["itl_s"]).to_numpy(dtype=float)
    e2e = rows["ttft_s"].to_numpy(dtype=float) + (n_output - 1) * gap
    ratio = rows["output_throughput_token_per_s"].to_numpy(dtype=float) * e2e / (d["workload.concurrency"] * n_output)
    is_off = (ratio < CONSISTENT[0]) | (ratio > CONSISTENT[1])
    has_failed = (rows["n_failed"].fillna(0) > 0.1 * rows["n_request"].fillna(np.inf)).to_numpy()
    return is_closed & is_measured & is_off & ~has_failed, "throughput, latency and concurrency contradict each other"


RULES: Final[dict[str, Callable[[pd.DataFrame, Queries], Violation]]] = {
    "faster_than_memory": _faster_than_memory,
    "faster_than_compute": _faster_than_compute,
    "more_than_peak": _more_than_peak,
    "inconsistent_throughput": _inconsistent_throughput,
}
"""Rules by name."""
