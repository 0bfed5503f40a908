"""What no machine can do and no run can show: physical bounds that a measurement must respect.

Bounds take data-sheet peaks, all accelerators and the least work, so that only errors break them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.units import ms_from_s
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import arrays

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Descriptors = Mapping[str, FloatArray]

SLACK: Final = 0.9
"""A bound is broken when a measurement is below this share of it: data sheets and counts are rounded."""

CONSISTENT: Final = (0.5, 1.5)
"""Closed-loop throughput over what latency and concurrency imply; outside, one of the three is wrong."""

MONOTONE: Final = 0.7
"""With more requests in flight, a step may take this share of the time that it took with fewer, and no less.

A larger batch never computes or reads less, so a step can only take longer. Repeats of one run scatter by 2.5 to 4 %,
the ratio of two by up to 6 %; 30 % is five times as much, so one of the two runs is not what it says.
"""

UNIT_TOLERANCE: Final = 5.0
"""How far off the estimate of a whole file may be, as a factor, for a wrong unit of time to stand out.

Milliseconds read as seconds are 1,000 times too long. The estimate counts what the machine must do and what engines
add to it, so an engine that took 200 times as long in the middle of all runs would leave 99.5 % of its machine idle:
latencies of 200 to 5,000 times the estimate are not slow but in the wrong unit.
"""

SERIES: Final = (
    "campaign", "model", "accelerator", "n_accelerator", "engine", "engine_version", "weight_precision",
    "kv_precision", "tp", "pp", "dp", "ep", "moe_tp", "cp", "n_node", "n_prefill_accelerator", "n_decode_accelerator",
    "activation_precision", "speculation", "n_speculative_token", "prefix_caching", "lora_rank", "flash_attention",
    "load", "date", "software",
)  # fmt: skip
"""What runs of one series share, besides their request lengths to two digits; only the requests in flight differ.
Settings that a script chooses by the load (chunks, polling, waiting) may differ too."""

RUN: Final = (*SERIES, "n_input_token", "n_output_token", "concurrency")
"""What the rows of one run of a series share: they differ in statistic and outcomes."""

Finding = tuple[BoolArray, str]


def check_plausibility(measurements: pd.DataFrame, descriptors: pd.DataFrame) -> pd.DataFrame:
    """Return the implausible rows: columns `rule` and `detail`, index of `measurements`; the first rule counts.

    Parameters
    ----------
    measurements, descriptors
        Rows of the measurement table and what `descriptor_table.describe` says of them, on one index.
    """
    found = pd.DataFrame({"rule": "", "detail": ""}, index=measurements.index, dtype=object)
    d = arrays(descriptors)
    for rule, check in RULES.items():
        broken, detail = check(measurements, d)
        new = broken & (found["rule"] == "").to_numpy()
        found.loc[new, ["rule", "detail"]] = [rule, detail]
    return found[found["rule"] != ""]


def not_monotone(measurements: pd.DataFrame) -> BoolArray:
    """Return which rows have no place in their series: a step is much faster with more requests in flight.

    In a closed loop it is the mean time per token that must not fall below `MONOTONE` times that with fewer requests,
    in a static batch the latency of the whole batch. Of a series, the row that contradicts the most others is taken
    out first, until none contradict; rows that contradict equally many are taken out together, since nothing tells
    which is right. The percentiles of a run go with its mean.

    Returns
    -------
    shape (n_row,)
    """
    is_static = measurements["load"] == "static_batch"
    step = measurements["tpot_s"].fillna(measurements["itl_s"]).mask(is_static, measurements["e2e_s"])
    has_place = measurements["load"].isin(["closed_loop", "static_batch"]) & measurements["concurrency"].notna()
    told = measurements[has_place & (measurements["statistic"] == "mean") & (step > 0)]
    lengths = [told[name].map("{:.1e}".format) for name in ("n_input_token", "n_output_token")]
    position = pd.Series(np.arange(len(measurements)), index=measurements.index)
    found = np.zeros(len(measurements), dtype=bool)
    for _, series in told.groupby([*SERIES, *lengths], dropna=False, sort=False):
        if len(series) > 1:
            out = _out_of_place(series["concurrency"].to_numpy(dtype=float), step[series.index].to_numpy(dtype=float))
            found[position[series.index].to_numpy()[out]] = True
    run = measurements.groupby(list(RUN), dropna=False, sort=False).ngroup().to_numpy()
    is_percentile = (measurements["statistic"] != "mean").to_numpy()
    return found | (is_percentile & np.isin(run, run[found]))


def _out_of_place(concurrency: FloatArray, step: FloatArray) -> BoolArray:
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


def in_milliseconds(measurements: pd.DataFrame, descriptors: pd.DataFrame) -> dict[str, float]:
    """Return how many times the estimate each column of seconds is that holds milliseconds; empty if none does.

    Parameters
    ----------
    measurements, descriptors
        Rows that were published together, such as those of a file, and what
        `roofcast.features.descriptors.descriptor_table.describe` says of them, on one index.

    Returns
    -------
    By column, the median over its means and medians. Queues without an end do not count, since no estimate bounds
    their waits: offline runs, and request rates beyond what the estimate takes to be served.
    """
    d = arrays(descriptors)
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
    least, most = ms_from_s(1.0) / UNIT_TOLERANCE, ms_from_s(1.0) * UNIT_TOLERANCE
    found = {}
    for column, expected in estimates.items():
        measured = measurements[column].to_numpy(dtype=float)
        told = is_bounded & (measured > 0)
        if told.any() and least < (middle := float(np.median(measured[told] / expected[told]))) < most:
            found[column] = middle
    return found


def least_step_s(d: Descriptors) -> FloatArray:
    """Return the time in which all accelerators together could read the weights that one token needs.

    Examples
    --------
    14 GB over 2 TB/s:

    >>> from roofcast.features.examples import example_descriptors
    >>> least_step_s(example_descriptors())
    array([0.007])
    """
    chosen = d["model.n_expert_per_token"] / np.maximum(d["model.n_expert"], 1.0)
    read = d["model.n_param_dense"] + d["model.n_param_expert"] * chosen
    bandwidth = d["config.n_accelerator"] * d["hardware.bandwidth_byte_per_s"]
    return read * d["config.weight_byte_per_element"] / bandwidth


def flop_per_token(d: Descriptors) -> FloatArray:
    """Return the least operations that one token takes: two for each weight that it uses."""
    chosen = d["model.n_expert_per_token"] / np.maximum(d["model.n_expert"], 1.0)
    return 2 * (d["model.n_param_dense"] + d["model.n_param_expert"] * chosen)


def _faster_than_memory(rows: pd.DataFrame, d: Descriptors) -> Finding:
    gap = rows[["itl_s", "tpot_s"]].min(axis=1).to_numpy(dtype=float)
    is_plain = (rows["speculation"] == "").to_numpy() & rows["statistic"].isin(["mean", "p50"]).to_numpy()
    broken = is_plain & (gap < SLACK * least_step_s(d))
    return broken, "a token came sooner than its weights can be read once"


def _faster_than_compute(rows: pd.DataFrame, d: Descriptors) -> Finding:
    peak = d["config.n_accelerator"] * d["hardware.flop_per_s"]
    is_encoder = d["model.n_encoder_layer"] > 0
    least = flop_per_token(d) * d["workload.n_input_token"] / peak
    is_cold = (rows["prefix_caching"] != "on").to_numpy() & ~(rows["prefix_cache_ratio"] > 0).to_numpy()
    is_mean = (rows["statistic"] == "mean").to_numpy()
    broken = is_mean & is_cold & ~is_encoder & (rows["ttft_s"].to_numpy(dtype=float) < SLACK * least)
    return broken, "the first token came sooner than the prompt can be computed at peak"


def _more_than_peak(rows: pd.DataFrame, d: Descriptors) -> Finding:
    peak = d["config.n_accelerator"] * d["hardware.flop_per_s"]
    broken = rows["output_throughput_token_per_s"].to_numpy(dtype=float) * flop_per_token(d) * SLACK > peak
    return broken, "more tokens a second than the peak operations can make"


def _inconsistent_throughput(rows: pd.DataFrame, d: Descriptors) -> Finding:
    is_closed = (rows["load"] == "closed_loop").to_numpy() & (rows["statistic"] == "mean").to_numpy()
    is_measured = ~rows["derived"].str.contains("output_throughput_token_per_s", regex=False).to_numpy()
    n_output = d["workload.n_output_token"]
    gap = rows["tpot_s"].fillna(rows["itl_s"]).to_numpy(dtype=float)
    e2e = rows["ttft_s"].to_numpy(dtype=float) + (n_output - 1) * gap
    ratio = rows["output_throughput_token_per_s"].to_numpy(dtype=float) * e2e / (d["workload.concurrency"] * n_output)
    is_off = (ratio < CONSISTENT[0]) | (ratio > CONSISTENT[1])
    has_failed = (rows["n_failed"].fillna(0) > 0.1 * rows["n_request"].fillna(np.inf)).to_numpy()
    return is_closed & is_measured & is_off & ~has_failed, "throughput, latency and concurrency contradict each other"


RULES: Final[dict[str, Callable[[pd.DataFrame, Descriptors], Finding]]] = {
    "faster_than_memory": _faster_than_memory,
    "faster_than_compute": _faster_than_compute,
    "more_than_peak": _more_than_peak,
    "inconsistent_throughput": _inconsistent_throughput,
}
"""Rules by the name under which a row is set aside."""
