"""Time of a prefill and of the parts of a decode step, from operations, bytes and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roofcast.features.coefficients import Coefficients
from roofcast.features.memory import kv_replication, kv_token

FloatArray = npt.NDArray[np.float64]
Descriptors = Mapping[str, FloatArray]

ACTIVATION_BYTE = 2.0


@dataclass(frozen=True, slots=True)
class StepTime:
    """Parts of one decode step in seconds, each of shape (n_question,); a step is their sum.

    Notes
    -----
    Parts are added, not overlapped: on one stream a kernel starts when the one before it has ended.
    """

    weight_s: FloatArray
    kv_s: FloatArray
    link_s: FloatArray
    overhead_s: FloatArray

    @property
    def total_s(self) -> FloatArray:
        """The whole step."""
        return self.weight_s + self.kv_s + self.link_s + self.overhead_s


def touched_expert_ratio(n_expert: FloatArray, n_per_token: FloatArray, n_token: FloatArray) -> FloatArray:
    """Return the expected share of the experts that a batch of tokens reads.

    Notes
    -----
    With k of E experts drawn evenly for each of B tokens: ``1 - (1 - k / E) ** B``.

    Examples
    --------
    Two of eight experts, one token, then two:

    >>> import numpy as np
    >>> touched_expert_ratio(np.array([8.0, 8.0]), np.array([2.0, 2.0]), np.array([1.0, 2.0]))
    array([0.25  , 0.4375])
    """
    chosen = n_per_token / np.maximum(n_expert, 1.0)
    return 1.0 - (1.0 - np.minimum(chosen, 1.0)) ** n_token


def estimate_step(d: Descriptors, c: Coefficients, batch: FloatArray) -> StepTime:
    """Return the parts of a decode step that serves `batch` requests of one replica.

    Parameters
    ----------
    d, c
        Descriptors, each of shape (n_question,), and coefficients.
    batch : shape (n_question,)
        Requests that decode together, over all data-parallel ranks.

    Notes
    -----
    Data-parallel ranks hold a copy of the weights each and step side by side. A token passes the stages of a
    pipeline one after the other, so that pipeline parallelism adds memory but shortens no step.

    References
    ----------
    R. Pope et al., "Efficiently Scaling Transformer Inference", MLSys 2023.

    Examples
    --------
    14 GB of weights at 80 % of 2 TB/s take 8.75 ms:

    >>> import numpy as np
    >>> from roofcast.features.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> step = estimate_step(example_descriptors(), DEFAULT_COEFFICIENTS, np.ones(1))
    >>> round(1e3 * float(step.weight_s[0]), 3)
    8.75
    """
    per_rank = batch / d["config.dp"]
    tp = d["config.tp"]
    expert = d["model.n_param_expert"]
    touched = touched_expert_ratio(d["model.n_expert"], d["model.n_expert_per_token"], per_rank)
    byte = (d["model.n_param_dense"] + expert * touched) * d["config.weight_byte_per_element"]
    moving = byte / (tp * d["hardware.bandwidth_byte_per_s"] * c.weight_bandwidth_ratio)
    used = d["model.n_param_dense"] + expert * _chosen_ratio(d)
    computing = 2 * used * per_rank / (tp * d["hardware.flop_per_s"] * c.decode_flop_ratio)
    full, window = kv_token(d)
    element = d["model.kv_width"] * full + d["model.kv_width_sliding"] * window
    kv_byte = per_rank * element * d["config.kv_byte_per_element"] * kv_replication(d)
    kv = kv_byte / (tp * d["hardware.bandwidth_byte_per_s"] * c.kv_bandwidth_ratio)
    fused = d["config.flash_attention"] > 0.5
    layer = np.where(fused, c.layer_overhead_s, c.padded_layer_overhead_s)
    overhead = c.step_overhead_s + c.sequence_overhead_s * per_rank + layer * d["model.n_layer"]
    link = allreduce_s(d, c, per_rank) * 2 * d["model.n_layer"]
    return StepTime(np.maximum(moving, computing), kv, link, overhead)


def allreduce_s(d: Descriptors, c: Coefficients, n_token: FloatArray) -> FloatArray:
    """Return the time of one all-reduce of the activations of `n_token` tokens; 0 without tensor parallelism.

    Notes
    -----
    Alpha-beta model of a ring: a latency that grows with the logarithm of the ranks, and
    ``2 (n - 1) / n`` times the message over the link.

    References
    ----------
    R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of Collective Communication Operations in MPICH",
    IJHPCA 19(1), 2005.
    """
    tp = d["config.tp"]
    message = n_token * d["model.hidden_size"] * ACTIVATION_BYTE
    bandwidth = d["hardware.link_byte_per_s"] / 2 * c.link_ratio
    time = c.link_latency_s * np.log2(np.maximum(tp, 1.0)) + 2 * (tp - 1) / tp * message / bandwidth
    return np.where(tp > 1, time, 0.0)


def _chosen_ratio(d: Descriptors) -> FloatArray:
    return d["model.n_expert_per_token"] / np.maximum(d["model.n_expert"], 1.0)


def estimate_prefill_s(d: Descriptors, c: Coefficients) -> FloatArray:
    """Return the time of one request's prefill, in seconds: shape (n_question,).

    Two operations per weight and token, a quadratic attention term, the weights read once, launches and all-reduces,
    added up: matrix products of few rows reach neither the peak of compute nor that of bandwidth.

    References
    ----------
    J. Kaplan et al., "Scaling Laws for Neural Language Models", 2020, section 2.1 (operations per token).
    """
    n_token = d["workload.n_input_token"]
    tp = d["config.tp"]
    is_encoder = d["model.n_encoder_layer"] > 0
    used = d["model.n_param_dense"] + d["model.n_param_expert"] * _chosen_ratio(d)
    read = np.where(is_encoder, d["model.n_param_encoder"], used)
    attention = np.where(is_encoder, 4.0, 2.0) * d["model.attention_width"] * n_token**2
    flop = 2 * read * n_token + attention
    computing = flop / (tp * d["hardware.flop_per_s"] * c.prefill_flop_ratio)
    touched = touched_expert_ratio(d["model.n_expert"], d["model.n_expert_per_token"], n_token)
    weight = d["model.n_param_dense"] + d["model.n_param_encoder"] + d["model.n_param_expert"] * touched
    byte = weight * d["config.weight_byte_per_element"]
    moving = byte / (tp * d["hardware.bandwidth_byte_per_s"] * c.weight_bandwidth_ratio)
    fused = d["config.flash_attention"] > 0.5
    layer = np.where(fused, c.layer_overhead_s, c.padded_layer_overhead_s)
    n_layer = d["model.n_layer"] + d["model.n_encoder_layer"]
    link = allreduce_s(d, c, n_token) * 2 * n_layer
    return computing + moving + layer * n_layer + link
