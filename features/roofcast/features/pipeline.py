"""Feature pipeline: from descriptors and their analytic estimate to the learner's columns."""

from collections.abc import Collection
from typing import Final

import numpy as np
import pandas as pd

from roofcast.features.columns import ENGINES, FEATURE_NAMES
from roofcast.features.engine.coefficients import CoefficientSource
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.engine.loop.latency_quantiles import latency_quantiles
from roofcast.features.queries import FloatArray, Queries, QueryTable, descriptor_arrays, query_index

METRICS: Final = ("ttft_s", "nttft_s_per_token", "itl_s", "tpot_s", "e2e_s", "output_throughput_token_per_s")
"""Predicted metrics, latencies first; throughput is the only one where more is better."""

MAX_REQUESTS_PER_SLOT: Final = 300.0
"""Upper bound of the feature `workload.n_wave_log`; longer runs show no effect of the startup burst."""

N_DECIMAL: Final = 6
"""Decimals of a feature. What is smaller differs between processors, whose logarithms and sums round differently, and
trees would split on it: shares of queueing below 1e-9 made predictions differ by .5 % between two processors."""

ENGINES_SEEN_WIDELY: Final = ("vllm", "sglang", "trtllm")
"""Engines measured on many LLMs and accelerators, with a flag each; the others differ by calibration alone."""


def estimate_metrics(d: Queries, e: Estimate) -> dict[str, FloatArray]:
    """Return the estimated mean of each of `METRICS`, each of shape (n_row,).

    The mean ITL averages all gaps, including those that contain a prefill of another request, so it equals TPOT. For
    percentiles the ITL is the gap without prefills.
    """
    return {
        "ttft_s": e.ttft_s,
        "nttft_s_per_token": e.ttft_s / d["workload.n_input_token"],
        "itl_s": np.where(d["workload.is_mean"] > 0, e.tpot_s, e.itl_s),
        "tpot_s": e.tpot_s,
        "e2e_s": e.e2e_s,
        "output_throughput_token_per_s": e.output_throughput_token_per_s,
    }


def estimate_statistics(
    d: Queries, c: CoefficientSource, e: Estimate, metrics: Collection[str] = METRICS
) -> dict[str, FloatArray]:
    """Return the estimate of the requested statistic of each row, by metric."""
    values = estimate_metrics(d, e)
    rows, quantiles = latency_quantiles(d, c, e)
    if len(rows):
        quantiles["nttft_s_per_token"] = quantiles["ttft_s"] / d["workload.n_input_token"][rows]
    for name, value in quantiles.items():
        values[name] = values[name].copy()
        values[name][rows] = value
    return {name: values[name] for name in METRICS if name in metrics}


def build_features(
    descriptors: QueryTable,
    coefficients: CoefficientSource,
    known: Estimate | None = None,
    metrics: Collection[str] = METRICS,
) -> tuple[pd.DataFrame, dict[str, FloatArray], Estimate]:
    """Return the learner's features, the estimates by metric and the analytic estimate.

    `known`: the analytic estimate if already computed; it does not depend on the statistic. `metrics`: to estimate.

    Returns
    -------
    shape (n_row, n_feature) with columns `FEATURE_NAMES`; arrays by metric; the analytic estimate
    """
    d = descriptor_arrays(descriptors)
    e = known or estimate(d, coefficients)
    features = pd.DataFrame(feature_matrix(d, e), query_index(descriptors), list(FEATURE_NAMES), copy=False)
    return features, estimate_statistics(d, coefficients, e, metrics), e


def feature_matrix(d: Queries, e: Estimate) -> FloatArray:
    """Return the columns `FEATURE_NAMES`, rounded to `N_DECIMAL`: shape (n_row, n_feature)."""
    columns = _query_columns(d) | _estimated_columns(d, e)
    return np.array([columns[name] for name in FEATURE_NAMES]).round(N_DECIMAL).T


def _query_columns(d: Queries) -> dict[str, FloatArray]:
    active_expert_ratio = d["model.n_expert_per_token"] / np.maximum(d["model.n_expert"], 1.0)
    bandwidth = d["hardware.bandwidth_byte_per_s"]
    is_open = ~np.isnan(d["workload.request_rate_per_s"])
    return {
        "model.n_layer_log": np.log(d["model.n_layer"]),
        "model.hidden_size_log": np.log(d["model.hidden_size"]),
        "model.is_encoder_decoder": (d["model.n_encoder_layer"] > 0).astype(float),
        "model.is_moe": (d["model.n_expert"] > 0) * 1.0,
        "model.is_mla": (d["model.n_mla_layer"] > 0) * 1.0,
        "model.is_linear": (d["model.n_linear_layer"] > 0) * 1.0,
        "model.active_ratio": 1 - d["model.n_param_expert"] * (1 - active_expert_ratio) / d["model.n_param"],
        "model.kv_ratio": d["model.kv_width_layer"] / np.maximum(d["model.n_head"] * d["model.qk_dim"], 1.0),
        "hardware.bandwidth_log": np.log(bandwidth * d["config.tp"]),
        "hardware.balance_log": np.log(d["hardware.flop_per_s"] / bandwidth),
        "hardware.link_ratio_log": np.log(d["hardware.link_byte_per_s"] / bandwidth) * (d["config.tp"] > 1),
        "config.tp_log": np.log(d["config.tp"]),
        "config.pp_log": np.log(d["config.pp"]),
        "config.dp_log": np.log(d["config.dp"]),
        "config.weight_byte_per_element": d["config.weight_byte_per_element"],
        "config.kv_byte_per_element": d["config.kv_byte_per_element"],
        "config.flash_attention": d["config.flash_attention"],
        **{f"config.is_{name}": (d["config.engine"] == ENGINES.index(name)) * 1.0 for name in ENGINES_SEEN_WIDELY},
        "config.n_draft_token": d["config.n_draft_token"],
        "config.poll_interval_step": d["config.poll_interval_step"],
        "config.date": d["config.date"],
        "workload.n_input_token_log": np.log(d["workload.n_input_token"]),
        "workload.n_output_token_log": np.log(d["workload.n_output_token"]),
        "workload.is_static": d["workload.is_static"],
        "workload.is_open": is_open * 1.0,
        "workload.is_offline": (~is_open & np.isnan(d["workload.concurrency"])) * 1.0,
        "workload.length_variation": d["workload.length_variation"],
        "workload.is_mean": d["workload.is_mean"],
        "workload.quantile": d["workload.quantile"],
    }


def _estimated_columns(d: Queries, e: Estimate) -> dict[str, FloatArray]:
    capacity = np.maximum(e.memory.capacity, 1e-2)
    step = e.step.total_s
    return {
        "workload.n_wave_log": np.log(np.minimum(e.n_wave, MAX_REQUESTS_PER_SLOT)),
        "workload.concurrency_log": np.log(np.maximum(e.concurrency / d["config.dp"], 1e-3)),
        "memory.weight_ratio": e.memory.weight_byte / np.maximum(e.memory.usable_byte, 1.0),
        "memory.pressure_log": np.log(e.concurrency / capacity),
        "memory.capacity_log": np.log(capacity),
        "roofline.batch_log": np.log(np.maximum(e.batch, 1e-3)),
        "roofline.queue_ratio": e.queue_s / e.ttft_s,
        "roofline.prefill_ratio": e.interference_s / e.tpot_s,
        "roofline.weight_time_ratio": e.step.dense_s / step,
        "roofline.expert_time_ratio": e.step.expert_s / step,
        "roofline.kv_time_ratio": e.step.attention_s / step,
        "roofline.overhead_ratio": e.step.overhead_s / step,
        "roofline.link_time_ratio": e.step.link_s / step,
        "roofline.step_log": np.log(step),
        "roofline.prefill_log": np.log(e.prefill_s),
    }
