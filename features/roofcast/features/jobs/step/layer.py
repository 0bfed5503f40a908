"""Operator times of a layer and of the output head for one micro-batch, forward and backward."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from roofcast.features.engine.kernel_times import gemm_s, prefill_attention_s
from roofcast.features.engine.kernels.efficiency import GemmEfficiency
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.step.job_coefficients import NEW_ATTENTION, StepCoefficients
from roofcast.features.jobs.step.local_parameters import local_parameters
from roofcast.features.queries import FloatArray

ELEMENT_BYTE: Final = 2.0
NORM_PASS: Final = 10.0
"""Passes over the hidden vector of a layer, forward: two norms (two each) and two residual additions (three each)."""

SCORE_PASS: Final = (4.0, 6.0)
"""Passes over stored attention scores, forward and backward: products and softmax that write and read them."""

ADAPTER_PASS: Final = 3.0
"""Passes over an adapter's input and output: dropout, product and addition, one kernel each."""

LOGIT_BYTE: Final = 4.0
LOGIT_PASS: Final = (3.0, 3.0)
"""Passes over the logits in 32 bits, forward and backward: conversion, softmax, gradient."""


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Seconds by operator, each of shape (n_row,)."""

    dense_s: FloatArray
    expert_s: FloatArray
    attention_s: FloatArray
    elementwise_s: FloatArray

    @property
    def total_s(self) -> FloatArray:
        """Sum over the operators."""
        return self.dense_s + self.expert_s + self.attention_s + self.elementwise_s


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Mean layer and output head of one micro-batch on one accelerator; communication not included."""

    forward: OperatorTime
    backward: OperatorTime
    head_forward_s: FloatArray
    head_backward_s: FloatArray


def micro_batch_token(runs: JobRuns) -> FloatArray:
    """Return the tokens of a micro-batch on one context-parallel rank: shape (n_row,)."""
    return runs.plan.micro_batch * runs.job.n_token / runs.plan.cp


def estimate_layer(runs: JobRuns, c: StepCoefficients) -> LayerTime:
    """Return the operator times of the mean layer and of the head for one micro-batch.

    Notes
    -----
    Products run at the efficiency of the inference kernels: forward once, and backward once for the gradient of the
    input and once for that of the weight, with dimensions swapped. Frozen weights have no gradient. Routed experts
    are grouped products: as many as the rank has experts, with an even share of the token-expert pairs each.

    References
    ----------
    J. Kaplan et al., "Scaling Laws for Neural Language Models", 2020, section 2.1 (operations forward and backward).
    """
    dense = _dense(runs, c)
    expert = _experts(runs, c)
    attention = _attention(runs, c)
    elementwise = _elementwise(runs, c)
    ratio = c.framework_ratio(runs.job.framework)
    forward, backward = (
        OperatorTime(*(ratio * part[i] for part in (dense, expert, attention, elementwise))) for i in (0, 1)
    )
    head = _head(runs, c)
    return LayerTime(forward, backward, *head)


def _product(
    runs: JobRuns, c: StepCoefficients, m: FloatArray, n: FloatArray, k: FloatArray, *, is_head: bool = False
) -> tuple[FloatArray, FloatArray]:
    h = runs.hardware
    efficiency = h.half_gemm if is_head else h.gemm
    peak = h.half_flop_per_s if is_head else h.flop_per_s
    is_eight_bit = np.zeros_like(m) if is_head else runs.job.is_eight_bit
    ratio = (
        c.value("gemm_ratio") * c.family_ratio(h.family) * np.where(is_eight_bit > 0, c.value("eight_bit_ratio"), 1.0)
    )
    byte = np.where(is_eight_bit > 0, 1.0, runs.job.element_byte)

    def product_s(rows: FloatArray, columns: FloatArray, depth: FloatArray) -> FloatArray:
        return gemm_s(
            rows, columns, depth, weight_byte=byte, activation_byte=byte, flop_per_s=peak,
            bandwidth_byte_per_s=h.bandwidth_byte_per_s, efficiency=efficiency,
        )  # fmt: skip

    weight_s = np.where(runs.job.is_frozen > 0, 0.0, product_s(k, n, m))
    backward_s = product_s(m, k, n) + weight_s
    return ratio * product_s(m, n, k), ratio * c.value("backward_ratio") * backward_s


def _dense(runs: JobRuns, c: StepCoefficients) -> tuple[FloatArray, FloatArray]:
    s, tp, m = runs.model, runs.plan.tp, micro_batch_token(runs)
    mlp_share = s.n_mlp_layer / s.n_layer
    up_width = np.maximum((s.n_mlp_matrix - 1.0) * s.mlp_width, 1.0)
    shapes = (
        (1.0, s.mixer_in_width / tp, s.hidden_size),
        (1.0, s.hidden_size, s.mixer_out_width / tp),
        (mlp_share, up_width / tp, s.hidden_size),
        (mlp_share, s.hidden_size, np.maximum(s.mlp_width, 1.0) / tp),
    )
    forward, backward = np.zeros_like(m), np.zeros_like(m)
    for share, n, k in shapes:
        product = _product(runs, c, m, n, k)
        forward, backward = forward + share * product[0], backward + share * product[1]
    unpack_s = _unpack_s(runs, c, local_parameters(runs.model, runs.plan).layer_dense)
    return forward + unpack_s, backward + unpack_s


def _unpack_s(runs: JobRuns, c: StepCoefficients, n_weight: FloatArray) -> FloatArray:
    """Return the time to unpack a layer's quantised weights to 16 bits, once for each pass, whatever the tokens.

    References
    ----------
    T. Dettmers et al., "QLoRA", 2023, section 3, equation 5 (each product dequantises its weight).
    """
    byte = n_weight * (runs.job.frozen_byte + runs.job.element_byte)
    return runs.job.is_quantised * c.value("dequantise_ratio") * byte / runs.hardware.bandwidth_byte_per_s


def expert_split(runs: JobRuns) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return local experts, token-expert pairs on a rank, and parts into which an expert's width is split.

    With expert parallelism experts are whole and the tensor-parallel ranks take different tokens; without it, each
    expert is split as a dense MLP is.
    """
    is_spread = runs.plan.ep > 1.0
    tensor_split = np.where(is_spread, 1.0, runs.plan.tp)
    n_local = np.maximum(runs.model.n_expert / runs.plan.ep, 1.0)
    pair = micro_batch_token(runs) * runs.model.n_expert_per_token * tensor_split / runs.plan.tp
    return n_local, pair, tensor_split


def _experts(runs: JobRuns, c: StepCoefficients) -> tuple[FloatArray, FloatArray]:
    s = runs.model
    none = np.zeros_like(s.n_layer)
    if not (s.n_moe_layer > 0).any():
        return none, none
    n_local, pair, split = expert_split(runs)
    rows = np.maximum(pair / n_local, 1.0)
    width = np.maximum(s.moe_width, 1.0) / split
    grouped = replace(runs, hardware=replace(runs.hardware, gemm=_without_launch(runs.hardware.gemm)))
    up = _product(grouped, c, rows, (s.n_mlp_matrix - 1.0) * width, s.hidden_size)
    down = _product(grouped, c, rows, s.hidden_size, width)
    passes_s = c.value("dispatch_pass") * _pass_s(runs, pair * s.dispatch_width)
    share = np.where(s.n_moe_layer > 0, s.n_moe_layer / s.n_layer, 0.0)
    n_product = c.value("expert_ratio") * n_local
    unpack_s = _unpack_s(runs, c, local_parameters(s, runs.plan).layer_expert)
    forward = share * (n_product * (up[0] + down[0]) + passes_s) + unpack_s
    backward = share * (n_product * (up[1] + down[1]) + 2.0 * passes_s) + unpack_s
    return forward, backward


def _without_launch(efficiency: GemmEfficiency) -> GemmEfficiency:
    return replace(efficiency, launch_s=0.0)


def _attention(runs: JobRuns, c: StepCoefficients) -> tuple[FloatArray, FloatArray]:
    # Unfused attention computes all pairs of tokens, including those that the causal mask hides.
    s, h, job, plan = runs.model, runs.hardware, runs.job, runs.plan

    def attention_s(window: FloatArray) -> FloatArray:
        return prefill_attention_s(
            n_sequence=np.maximum(plan.micro_batch, 1.0), n_query=job.n_token,
            n_context=job.n_token * (1.5 - 0.5 * s.is_causal * job.is_flash), n_head=s.n_head / plan.tp,
            n_kv_head=np.maximum(s.n_kv_head / plan.tp, 1.0), qk_dim=s.qk_dim, v_dim=s.v_dim, window=window,
            kv_byte=job.element_byte, flop_per_s=h.half_flop_per_s, bandwidth_byte_per_s=h.bandwidth_byte_per_s,
            efficiency=h.attention,
        )  # fmt: skip

    rank_share = np.minimum(plan.micro_batch, 1.0) / plan.cp / s.n_layer
    core = s.n_full_layer * attention_s(s.sparse_top_k)
    if (s.n_sliding_layer > 0).any():
        core = core + s.n_sliding_layer * attention_s(s.sliding_window)
    uneven = 1.0 + job.is_context_uneven * s.is_causal * (1.0 - 1.0 / plan.cp)
    is_old = (job.is_attention_portable > 0) & np.isin(h.family, NEW_ATTENTION)
    portable = np.where(is_old, c.value("portable_attention_ratio"), 1.0)
    is_misaligned = (job.is_flash < 1) & (s.qk_dim % 8.0 > 0)
    misaligned = np.where(is_misaligned, c.value("misaligned_ratio"), 1.0)
    core = c.value("attention_ratio") * rank_share * uneven * portable * misaligned * core
    token = micro_batch_token(runs)
    width = (s.mixer_in_width + s.mixer_out_width) / plan.tp
    linear = c.value("linear_ratio") * _pass_s(runs, token * width * s.n_linear_layer / s.n_layer)
    n_score = token * job.n_token * s.n_head / plan.tp * (1.0 - s.n_linear_layer / s.n_layer)
    eager = np.where(job.is_eager > 0, c.value("eager_score_ratio"), 1.0)
    scores_s = (1.0 - job.is_flash) * eager * _pass_s(runs, n_score)
    forward = core + linear + SCORE_PASS[0] * scores_s
    return forward, c.value("attention_backward_ratio") * core + 2.0 * linear + SCORE_PASS[1] * scores_s


def _pass_s(runs: JobRuns, n_element: FloatArray) -> FloatArray:
    return runs.job.element_byte * n_element / runs.hardware.bandwidth_byte_per_s


def _elementwise(runs: JobRuns, c: StepCoefficients) -> tuple[FloatArray, FloatArray]:
    s, job, plan = runs.model, runs.job, runs.plan
    token = micro_batch_token(runs)
    norm_split = np.where(plan.is_sequence_parallel > 0, plan.tp, 1.0)
    mlp_width = s.mlp_width * s.n_mlp_layer / s.n_layer
    split_width = s.mixer_in_width + s.n_mlp_matrix * mlp_width
    operand_width = 2.0 * s.hidden_size + s.mixer_out_width + mlp_width
    width = NORM_PASS * s.hidden_size / norm_split + 2.0 * split_width / plan.tp
    width = width + job.is_eight_bit * c.value("cast_pass") * operand_width / plan.tp
    adapter = ADAPTER_PASS * job.n_adapter_width / plan.tp
    eager = np.where(job.is_eager > 0, c.value("eager_ratio"), 1.0)
    byte_s = _pass_s(runs, token) * c.value("elementwise_ratio") * eager
    return byte_s * (width + adapter), 2.0 * byte_s * (width + adapter)


def _head(runs: JobRuns, c: StepCoefficients) -> tuple[FloatArray, FloatArray]:
    s, token = runs.model, micro_batch_token(runs)
    vocabulary = s.vocab_size / runs.plan.tp
    forward, backward = _product(runs, c, token, vocabulary, s.hidden_size, is_head=True)
    pass_s = LOGIT_BYTE * token * vocabulary / runs.hardware.bandwidth_byte_per_s
    return forward + LOGIT_PASS[0] * pass_s, backward + LOGIT_PASS[1] * pass_s
