"""Operator times of one pass through the model: a prefill or a decode step."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import PRIORS
from roofcast.features.engine.host_weights import added_s
from roofcast.features.engine.kernel_times import (
    ACTIVATION_BYTE,
    decode_attention_s,
    gemm_s,
    joint_s,
    moe_s,
    prefill_attention_s,
)
from roofcast.features.engine.memory import context_token
from roofcast.features.engine.pass_communication import (
    EngineInputs,
    merge_s,
    pass_link_s,
    ring_s,
)
from roofcast.features.queries import FloatArray, Queries

_UNFUSED_KERNEL_RATIO: Final = 1.8
"""Kernels of a layer of Hugging Face's transformers relative to engines with fused ones: it takes 0.84 to 0.94 ms a
layer for models of 0.5 to 32 billion weights in bf16, whose kernels are shorter than that."""

_IS_TRANSFORMERS: Final = np.array([engine == "transformers" for engine in ENGINES])


@dataclass(frozen=True, slots=True)
class PassTime:
    """Time of one pass by operator, in seconds, each of shape (n_row,); the pass takes their sum.

    Notes
    -----
    Times are added, not overlapped: on one stream a kernel starts when the previous one has ended.
    """

    dense_s: FloatArray
    expert_s: FloatArray
    attention_s: FloatArray
    elementwise_s: FloatArray
    link_s: FloatArray
    overhead_s: FloatArray
    host_s: FloatArray
    """What weights in the memory of the host add."""

    @property
    def total_s(self) -> FloatArray:
        """Time of the pass."""
        parts = self.dense_s + self.expert_s + self.attention_s + self.elementwise_s
        return parts + self.link_s + self.overhead_s + self.host_s


@dataclass(frozen=True, slots=True)
class _Tokens:
    n_token: FloatArray
    n_last: FloatArray
    n_layer: FloatArray
    product_ratio: FloatArray | float = 1.0


def estimate_step(s: EngineInputs, batch: FloatArray) -> PassTime:
    """Return the operator times of a decode step of `batch` requests on each attention rank."""
    d, c = s.d, s.c
    n_token = batch * (1 + d["config.n_draft_token"])
    context = context_token(d) / d["config.cp"]

    def attention(window: FloatArray, suffix: str) -> FloatArray:
        n_head, n_kv_head = _heads(d, suffix)
        return decode_attention_s(
            n_sequence=batch,
            n_context=context,
            n_head=n_head * (1 + d["config.n_draft_token"]),
            n_kv_head=n_kv_head,
            qk_dim=d[f"model.decode_qk_dim{suffix}"],
            v_dim=d[f"model.decode_v_dim{suffix}"],
            window=window,
            kv_width=d[f"model.kv_width_layer{suffix}"] / d[f"model.n_kv_head{suffix}"],
            kv_byte=d["config.kv_byte_per_element"],
            flop_per_s=d["hardware.attention_flop_per_s"],
            bandwidth_byte_per_s=d["hardware.bandwidth_byte_per_s"],
            efficiency=s.k.decode_attention,
        )

    def attended() -> FloatArray:
        moved_byte = 2 * d["model.state_byte"] + d["model.index_byte"] * context
        moved_s = batch * moved_byte / d["config.tp"] / d["hardware.bandwidth_byte_per_s"]
        return _attended(d, d["model.n_full_layer"], attention) + moved_s

    waited = d["config.host_ratio"]
    overhead = c["step_overhead_s"] + waited * c["host_step_s"]
    overhead = overhead + (c["sequence_overhead_s"] + waited * c["host_sequence_s"]) * batch
    tokens = _Tokens(n_token, n_token, d["model.n_layer"])
    padded = np.where(d["config.flash_attention"] > 0.5, 1.0, c["padded_attention_ratio"])
    is_split = d["config.cp"] > 1
    merged = merge_s(s, batch) if is_split.any() else np.zeros_like(batch)
    attention_s = c["decode_attention_ratio"] * padded * s.recall("decode attention", attended, batch)
    return _pass(s, tokens, attention_s, overhead, merged)


def estimate_prefill(s: EngineInputs, n_prompt: FloatArray) -> PassTime:
    """Return the operator times of the prefill of `n_prompt` requests together on each attention rank."""
    s = s.of_prefill()
    d, c = s.d, s.c
    is_encoder = d["model.n_encoder_layer"] > 0
    n_input = d["workload.n_input_token"]
    n_token = new_token(d)

    def attention(window: FloatArray, suffix: str) -> FloatArray:
        n_head, n_kv_head = _heads(d, suffix)
        is_latent = d["model.n_mla_layer"] > 0
        dims = [d[f"model.{name}"] for name in ("qk_dim", "v_dim")]
        if suffix:
            own = (d[f"model.decode_{name}{suffix}"] for name in ("qk_dim", "v_dim"))
            dims = [np.where(is_latent, *pair) for pair in zip(dims, own, strict=True)]
        return prefill_attention_s(
            n_sequence=n_prompt / d["config.cp"],
            n_query=n_token,
            n_context=n_input,
            n_head=n_head,
            n_kv_head=n_kv_head,
            qk_dim=dims[0],
            v_dim=dims[1],
            window=window,
            kv_byte=d["config.kv_byte_per_element"],
            flop_per_s=d["hardware.attention_flop_per_s"],
            bandwidth_byte_per_s=d["hardware.bandwidth_byte_per_s"],
            efficiency=s.k.prefill_attention,
        )

    def attended() -> FloatArray:
        n_full = np.where(is_encoder, 2 * d["model.n_encoder_layer"], d["model.n_full_layer"])
        return _attended(d, n_full, attention)

    n_layer = np.where(is_encoder, d["model.n_encoder_layer"], d["model.n_layer"])
    tokens = _Tokens(n_prompt * n_token / d["config.cp"], n_prompt, n_layer)
    attention_s = c["prefill_attention_ratio"] * s.recall("prefill attention", attended, n_prompt)
    none = np.zeros_like(n_token)
    ring = ring_s(s, tokens.n_token, attention_s) if (d["config.cp"] > 1).any() else none
    return _pass(s, replace(tokens, product_ratio=c["prefill_ratio"]), attention_s, none, ring)


def prompt_in_step(prefill: PassTime, step: PassTime, is_mixed: FloatArray) -> FloatArray:
    """Return the time that a prompt adds to a decode step: shape (n_row,).

    Notes
    -----
    A mixed step reads the weights once for the prompt and for the tokens of running requests, so a short prompt adds
    little; its products add up as `joint_s` adds what overlaps. Unlike a decode-only step it replays no graph of the
    whole model, which costs the launches of a pass. Where prompts and decoding
    alternate, it adds its whole pass.

    References
    ----------
    A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", OSDI 2024, section 4.
    """
    dense = joint_s(prefill.dense_s, step.dense_s) - step.dense_s
    expert = joint_s(prefill.expert_s, step.expert_s) - step.expert_s
    added = dense + expert + prefill.attention_s + prefill.elementwise_s + prefill.link_s + prefill.overhead_s
    added = added + joint_s(prefill.host_s, step.host_s) - step.host_s
    return np.where(is_mixed > 0, added, prefill.total_s)


def new_token(d: Queries) -> FloatArray:
    """Return the prompt tokens outside the prefix cache; the last token is always computed."""
    return np.maximum(d["workload.n_input_token"] * (1 - d["workload.prefix_cache_ratio"]), 1.0)


def alone_s(s: EngineInputs, prefill: PassTime, n_prompt: FloatArray) -> FloatArray:
    """Return the time of a prefill while the other ranks that share its experts prefill nothing."""
    return prefill.total_s - prefill.expert_s + alone_expert_s(s, n_prompt)


def alone_expert_s(s: EngineInputs, n_prompt: FloatArray) -> FloatArray:
    """Return the time of the routed experts in a prefill while the other ranks prefill nothing."""
    s = s.of_prefill()
    d = s.d
    n_own = np.minimum(d["config.expert_rank"] / d["config.tp"], d["config.cp"])
    return (
        s.c["expert_ratio"]
        * s.c["prefill_ratio"]
        * kernel_age(s)
        * expert_s(s, n_prompt * new_token(d) / d["config.cp"] * n_own)
    )


def _attended(d: Queries, n_full: FloatArray, attention: Callable[[FloatArray, str], FloatArray]) -> FloatArray:
    """Return the time of all layers of attention; `attention` gives that of one by its window and column suffix."""
    n_sparse = np.minimum(d["model.n_sparse_layer"], n_full)
    total = np.zeros_like(n_full)
    if (n_full > n_sparse).any():
        total = (n_full - n_sparse) * attention(np.zeros_like(n_full), "")
    if (n_sparse > 0).any():
        total = total + n_sparse * attention(d["model.sparse_top_k"], "")
    if (d["model.n_sliding_layer"] > 0).any():
        total = total + d["model.n_sliding_layer"] * attention(d["model.sliding_window"], "_sliding")
    return total


def _heads(d: Queries, suffix: str) -> tuple[FloatArray, FloatArray]:
    n_head, n_kv_head = d[f"model.n_head{suffix}"], d[f"model.n_kv_head{suffix}"]
    return n_head / d["config.tp"], np.maximum(n_kv_head / d["config.tp"], 1.0)


def _pass(
    s: EngineInputs,
    tokens: _Tokens,
    attention_s: FloatArray,
    overhead_s: FloatArray,
    link_s: FloatArray,
) -> PassTime:
    d, c = s.d, s.c
    n_token, n_layer = tokens.n_token, tokens.n_layer
    layer = np.where(d["config.flash_attention"] > 0.5, c["layer_overhead_s"], c["padded_layer_overhead_s"])
    launch_s = (
        layer * n_layer
        + c["moe_overhead_s"] * d["model.n_moe_layer"]
        + c["mla_overhead_s"] * d["model.n_mla_layer"]
        + c["sparse_overhead_s"] * d["model.n_sparse_layer"]
        + c["linear_overhead_s"] * d["model.n_linear_layer"]
    )
    moved_byte = c["elementwise_ratio"] * ACTIVATION_BYTE * d["model.hidden_size"] * n_layer * n_token
    gathered = n_token * d["config.expert_rank"] / d["config.tp"]
    dense = s.recall("dense", lambda: _dense_s(s, tokens) + _adapter_s(s, tokens), n_token, tokens.n_last, n_layer)
    of_links = c["link_ratio"], c["link_latency_ratio"], c["exchange_ratio"]
    links = s.recall("links", lambda: pass_link_s(s, n_token, n_layer), n_token, n_layer, *of_links)
    slower = kernel_age(s)
    dense = c["dense_ratio"] * tokens.product_ratio * slower * dense
    expert = c["expert_ratio"] * tokens.product_ratio * slower * expert_s(s, gathered)
    attention_s = slower * attention_s
    elementwise = moved_byte / d["hardware.bandwidth_byte_per_s"]
    is_eager = d["config.is_eager"] > 0.5
    if is_eager.any():
        computing_s = dense + expert + attention_s + elementwise + link_s + links + launch_s
        idle_s = np.maximum(eager_launch_s(s, n_layer) - computing_s, 0.0)
        launch_s = np.where(is_eager, launch_s + idle_s, launch_s)
    return PassTime(
        dense_s=dense,
        expert_s=expert,
        attention_s=attention_s,
        elementwise_s=elementwise,
        link_s=link_s + links,
        overhead_s=overhead_s + launch_s,
        host_s=added_s(d, n_token, gathered, dense, expert),
    )


def kernel_age(s: EngineInputs) -> FloatArray:
    """Return the time of kernels relative to those of the engine's newest release: shape (n_row,)."""
    d, c = s.d, s.c
    return np.exp(c["amd_drift"] * d["hardware.is_amd"] * d["config.age_year"])


def eager_launch_s(s: EngineInputs, n_layer: FloatArray) -> FloatArray:
    """Return the host time to launch all kernels of a pass one by one.

    Notes
    -----
    The host runs ahead of the accelerator, so a pass takes the longer of launching and computing. Layers of experts,
    latent, sparse and linear attention launch more kernels, in proportion to the priors of their overheads. Engines
    run models for which they have no fused attention with the layers of transformers.

    References
    ----------
    V. Nguyen et al., "Accelerating PyTorch with CUDA Graphs", pytorch.org, 2021.
    """
    d = s.d
    kernels = n_layer
    for name in ("moe", "mla", "sparse", "linear"):
        extra = PRIORS[f"{name}_overhead_s"].median / PRIORS["layer_overhead_s"].median
        kernels = kernels + extra * d[f"model.n_{name}_layer"]
    is_unfused = _IS_TRANSFORMERS[d["config.engine"].astype(np.intp)] | (d["config.flash_attention"] < 0.5)
    return np.where(is_unfused, _UNFUSED_KERNEL_RATIO, 1.0) * s.c["eager_layer_s"] * kernels


def _dense_s(s: EngineInputs, tokens: _Tokens) -> FloatArray:
    d, n_token = s.d, tokens.n_token
    tp, hidden = d["config.tp"], d["model.hidden_size"]

    def product(m: FloatArray, n: FloatArray, depth: FloatArray) -> FloatArray:
        return gemm_s(
            m,
            n,
            depth,
            weight_byte=d["config.dense_byte_per_element"],
            activation_byte=d["config.activation_byte_per_element"],
            flop_per_s=d["hardware.dense_flop_per_s"],
            bandwidth_byte_per_s=d["hardware.bandwidth_byte_per_s"],
            efficiency=s.k.dense,
        )

    mixer = product(n_token, d["model.mixer_in_width"] / tp, hidden)
    mixer = mixer + product(n_token, hidden, d["model.mixer_out_width"] / tp)
    width = d["model.mlp_width"] / tp
    mlp = product(n_token, (d["model.n_mlp_matrix"] - 1) * width, hidden) + product(n_token, hidden, width)
    head = gemm_s(
        tokens.n_last,
        d["model.vocab_size"] / tp,
        hidden,
        weight_byte=d["config.head_byte_per_element"],
        activation_byte=ACTIVATION_BYTE,
        flop_per_s=d["hardware.attention_flop_per_s"],
        bandwidth_byte_per_s=d["hardware.bandwidth_byte_per_s"],
        efficiency=s.k.head,
    )
    return tokens.n_layer * mixer + d["model.n_mlp_layer"] * mlp + head


def _adapter_s(s: EngineInputs, tokens: _Tokens) -> FloatArray:
    """Return the time of a LoRA adapter on the four projections of attention: down to its rank and up again.

    References
    ----------
    E. J. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022, section 4.1.
    """
    d, n_token = s.d, tokens.n_token
    rank = d["config.lora_rank"]
    if not (rank > 0).any():
        return np.zeros_like(n_token)
    pair = [
        gemm_s(
            n_token,
            n,
            depth,
            weight_byte=ACTIVATION_BYTE,
            activation_byte=ACTIVATION_BYTE,
            flop_per_s=d["hardware.attention_flop_per_s"],
            bandwidth_byte_per_s=d["hardware.bandwidth_byte_per_s"],
            efficiency=s.k.head,
        )
        for n, depth in ((rank, d["model.hidden_size"]), (d["model.hidden_size"] / d["config.tp"], rank))
    ]
    return np.where(rank > 0, 4 * tokens.n_layer * (pair[0] + pair[1]), 0.0)


def expert_s(s: EngineInputs, n_token: FloatArray) -> FloatArray:
    """Return the time of all routed experts on the busiest accelerator, for `n_token` tokens of all ranks."""
    return s.recall("experts", lambda: _expert_s(s, n_token), n_token)


def _expert_s(s: EngineInputs, n_token: FloatArray) -> FloatArray:
    d = s.d
    if not (d["model.n_moe_layer"] > 0).any():
        return np.zeros_like(n_token)
    rank, ep = d["config.expert_rank"], d["config.ep"]
    layer = moe_s(
        n_token,
        hidden=d["model.hidden_size"],
        width=d["model.moe_width"],
        n_expert=d["model.n_expert"],
        top_k=d["model.n_expert_per_token"],
        tp=rank / ep,
        ep=ep,
        weight_byte=d["config.weight_byte_per_element"],
        flop_per_s=d["hardware.flop_per_s"],
        bandwidth_byte_per_s=d["hardware.bandwidth_byte_per_s"],
        efficiency=s.k.expert,
        n_matrix=d["model.n_mlp_matrix"],
    )
    return d["model.n_moe_layer"] * layer
