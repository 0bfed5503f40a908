"""Percentile ratios: quantiles of each metric over its mean, from the queueing model."""

from collections.abc import Collection
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from roofcast.features.engine.coefficients import CoefficientSource
from roofcast.features.engine.estimate import Estimate
from roofcast.features.engine.kernel_times import touched_expert
from roofcast.features.engine.loop.closed_loop import Loop, Requests, closed_loop
from roofcast.features.engine.loop.open_loop import open_loop
from roofcast.features.engine.loop.percentiles import e2e_quantile, itl_quantile, tpot_quantile, ttft_quantile
from roofcast.features.engine.memory import n_slot
from roofcast.features.queries import FloatArray, IndexArray, Queries

_MAX_SPREAD = 0.9
_LARGEST_RATIO = 50.0
QUANTILE_METRICS: Final = ("ttft_s", "itl_s", "tpot_s", "e2e_s")
"""Metrics with quantiles from the queueing model."""


def quantile_ratios(
    d: Queries, c: CoefficientSource, e: Estimate, metrics: Collection[str] = QUANTILE_METRICS
) -> dict[str, FloatArray]:
    """Return the ratio of quantile to mean by metric; 1 for means and static batches.

    Notes
    -----
    The calibrated estimate gives the mean, `loop.percentiles` the shape: uniform lengths of the given variation, a
    steady state, and prefills that interrupt decoding. The ratio of ITL refers to the gap without prefills. Beyond
    saturation the queue grows evenly during the run.

    Returns
    -------
    arrays of shape (n_row,) by metric
    """
    ratios = {name: np.ones(len(e.ttft_s)) for name in QUANTILE_METRICS if name in metrics}
    has_quantile = (d["workload.is_mean"] < 0.5) & (d["workload.is_static"] < 0.5)
    if not has_quantile.any():
        return ratios
    is_open = np.isnan(d["workload.concurrency"]) & ~np.isnan(d["workload.request_rate_per_s"])
    for q, at_rate in product(np.unique(d["workload.quantile"][has_quantile]), (False, True)):
        rows = np.flatnonzero(has_quantile & (d["workload.quantile"] == q) & (is_open == at_rate))
        if not len(rows):
            continue
        loop = _loop(d, c, e, rows, at_rate=at_rate)
        for name, ratio in ratios.items():
            quantile, mean = _quantile(name, loop, float(q))
            mean = mean + e.startup_s[rows] if name in ("ttft_s", "e2e_s") else mean
            ratio[rows] = np.clip(quantile / mean, 1 / _LARGEST_RATIO, _LARGEST_RATIO)
        for name in ratios.keys() & {"ttft_s", "e2e_s"}:
            growing = (2 * q - 1) * e.queue_s[rows] / getattr(e, name)[rows]
            ratios[name][rows] = np.where(e.is_saturated[rows], 1 + growing, ratios[name][rows])
    return ratios


def _quantile(metric: str, loop: Loop, q: float) -> tuple[FloatArray, FloatArray]:
    if metric == "ttft_s":
        return ttft_quantile(loop, q), loop.ttft_s
    if metric == "tpot_s":
        return tpot_quantile(loop, q), loop.tpot_s
    if metric == "e2e_s":
        return e2e_quantile(loop, q), loop.e2e_s
    return np.maximum(itl_quantile(loop, q), loop.step_s) if q > 0.5 else loop.step_s, loop.step_s


def _loop(d: Queries, c: CoefficientSource, e: Estimate, rows: IndexArray, *, at_rate: bool) -> Loop:
    variation = d["workload.length_variation"][rows]
    width = variation * np.sqrt(12.0)
    n_rank = d["config.dp"][rows]
    gap, whole = e.itl_s[rows], e.prompt_s[rows]
    prefill = np.where(d["config.n_prefill_accelerator"][rows] > 0, 0.0, whole)
    requests = Requests(
        n_output=d["workload.n_output_token"][rows],
        prefill_s=prefill,
        fixed_s=np.maximum(
            e.ttft_s[rows] - e.queue_s[rows] - e.prompts_ahead_s[rows] - e.startup_s[rows] - prefill, 0.0
        ),
        n_chunk=np.zeros(len(rows)),
        n_together=np.maximum(d["config.chunk_token"][rows] / d["workload.n_input_token"][rows], 1.0),
        poll_step=d["config.poll_interval_step"][rows],
        interference_ratio=c.by_row(d["config.engine"])["prefill_interference"][rows],
        spread=np.minimum(width / (1 + width / 2), _MAX_SPREAD),
        requests_per_slot=np.where(np.isnan(known := d["workload.n_wave"][rows]), np.inf, known),
        length_variation=variation,
    )
    capacity = np.maximum(n_slot(d, e.memory)[rows] / n_rank, 1.0)
    if at_rate:
        rate = d["workload.request_rate_per_s"][rows] / n_rank
        loop = open_loop(rate, capacity, lambda _batch: gap, requests)
        slope = _step_slope_s(d, e, rows)
        return replace(loop, slope_s=loop.slope_s + slope, step_slope_s=slope)
    return closed_loop(e.concurrency[rows] / n_rank, capacity, lambda _batch: gap, requests)


def _step_slope_s(d: Queries, e: Estimate, rows: IndexArray) -> FloatArray:
    # Products of few tokens read the same weights whatever their number.
    step, n_expert, n_choice = e.step, d["model.n_expert"][rows], d["model.n_expert_per_token"][rows]
    batch = np.maximum(e.batch[rows] / d["config.dp"][rows], 1.0)
    touched, more = (touched_expert(n_expert, n_choice, n) for n in (batch, batch + 1))
    experts = np.where(n_expert > 0, more / np.maximum(touched, 1.0) - 1, 0.0)
    slope = step.attention_s[rows] / batch + step.expert_s[rows] * experts
    return np.asarray(slope * e.itl_s[rows] / step.total_s[rows])
