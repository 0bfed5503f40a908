"""What a model admits: degrees of tensor, expert and data parallelism, and the length of a request."""

import math
from typing import Final

import numpy as np

from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec
from roofcast.features.queries import FloatArray, Queries

UNEVEN_ENGINES: Final = ("deepspeed", "transformers-neuronx")
"""Engines that split attention heads in unequal parts, or pad them; measured so in the shipped campaigns."""

EVEN_KV_HEAD_ENGINES: Final = ("vllm", "sglang")
"""Engines that either split key-value heads evenly or replicate each over the same number of accelerators.

References
----------
vLLM 0.32, ``LlamaAttention`` in ``vllm/model_executor/models/llama.py``; SGLang 0.5, the same class in
``sglang/srt/models/llama.py``.
"""

NO_ATTENTION_DP_ENGINES: Final = ("trtllm", "llama.cpp", "mlx-lm")
"""Engines whose command line has no data parallelism of attention: TensorRT-LLM needs a configuration file."""

NO_EXPERT_PARALLEL_ENGINES: Final = ("llama.cpp", "mlx-lm")
"""Engines that never spread whole experts.

References
----------
llama.cpp, ``tools/server/README.md``, ``--split-mode``: ``layer`` or ``row``.
"""


BLOCK: Final = 128
"""Rows and columns of a block of weights with one scale.

References
----------
Qwen3-235B-A22B-FP8, ``weight_block_size`` of its config; vLLM 0.33, ``validate_fp8_block_shape_moe`` in
``quantization/utils/fp8_utils.py``; SGLang 0.5.23, ``quantization/fp8.py``.
"""

_OF_BLOCKS: Final = ("qwen3_moe", "qwen3_next", "qwen3_5_moe", "qwen3_vl_moe", "qwen4_exp")


def block_error(model: ModelSpec, tp: float, ep: float, engine: str) -> InputError | None:
    """Return why the publisher's FP8 repository of a model cannot be split so by vLLM and SGLang; None if it can.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> qwen = load_catalog().model("Qwen3-235B-A22B")
    >>> print(block_error(qwen, 8, 1, "vllm"))
    tp: must leave experts of 1536 columns whole blocks of 128 in FP8, got 8; spread whole experts (ep), or split less
    >>> [block_error(qwen, tp, ep, "vllm") for tp, ep in ((4, 1), (8, 8))]
    [None, None]
    """
    has_blocks = engine in EVEN_KV_HEAD_ENGINES and model.model_type.startswith(_OF_BLOCKS)
    if not has_blocks or ep > 1 or not model.moe_intermediate_size or model.moe_intermediate_size % (BLOCK * tp) == 0:
        return None
    problem = (
        f"must leave experts of {model.moe_intermediate_size} columns whole blocks of {BLOCK} in FP8, got {tp:g}"
    )
    return InputError("tp", f"{problem}; spread whole experts (ep), or split less")


def split_error(model: ModelSpec, tp: float = 1, ep: float = 1, engine: str = "") -> InputError | None:
    """Return why a model cannot be split by these degrees of tensor and expert parallelism; None if it can.

    `engine`: blank if unknown.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> llama = load_catalog().model("llama-3.1-8b")
    >>> print(split_error(llama, tp=3))
    tp: must divide the model's 32 attention heads, got 3
    >>> print(split_error(llama, ep=2))
    ep: must be 1, as the model has no experts, got 2
    """
    if expected := _expected_tp(model, tp, engine):
        return InputError("tp", f"{expected}, got {tp:g}")
    if ep > 1 and not model.n_expert:
        return InputError("ep", f"must be 1, as the model has no experts, got {ep:g}")
    if ep > 1 and engine in NO_EXPERT_PARALLEL_ENGINES:
        return InputError("ep", f"must be 1: {engine} spreads no whole experts, got {ep:g}")
    if ep > max(model.n_expert, 1):
        return InputError("ep", f"must be at most the model's {model.n_expert} experts, got {ep:g}")
    return None


def assumed_split_error(model: ModelSpec, tp: float, n_accelerator: float, engine: str = "") -> InputError | None:
    """Return why the tensor parallelism assumed for a blank `tp` is impossible; None if it is possible.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> print(assumed_split_error(load_catalog().model("llama-3.1-8b"), 3, 3))
    tp: is blank, and 3 for 3 accelerators must divide the model's 32 attention heads; give tp, pp and dp
    """
    expected = _expected_tp(model, tp, engine)
    if not expected:
        return None
    return InputError("tp", f"is blank, and {tp:g} for {n_accelerator:g} accelerators {expected}; give tp, pp and dp")


def _expected_tp(model: ModelSpec, tp: float, engine: str) -> str:
    if model.n_head % tp and engine not in UNEVEN_ENGINES:
        return f"must divide the model's {model.n_head} attention heads"
    is_bound = not model.kv_lora_rank and engine in EVEN_KV_HEAD_ENGINES
    if is_bound and model.n_kv_head % tp and tp % model.n_kv_head:
        return f"must divide the model's {model.n_kv_head} key-value heads or be a multiple of them"
    return ""


def context_limit(model: ModelSpec) -> float:
    """Return the most tokens, input and output together, that a request may have; infinite if nothing bounds them.

    Encoder-decoders have relative position embeddings (T5), which work at any length: the length in their
    configuration is that of their training.

    References
    ----------
    C. Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", JMLR
    21(140), 2020, section 2.1.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> context_limit(load_catalog().model("llama-3.1-8b")), context_limit(load_catalog().model("google/flan-t5-xl"))
    (131072.0, inf)
    """
    is_bound = model.max_context_token > 0 and model.n_encoder_layer == 0
    return float(model.max_context_token) if is_bound else math.inf


def context_limits(d: Queries) -> FloatArray:
    """Return `context_limit` of each row of descriptors: shape (n_row,), tokens."""
    return np.where(d["model.n_encoder_layer"] > 0, np.inf, d["model.max_context_token"])


def context_error(model: ModelSpec, n_input_token: float, n_output_token: float) -> InputError | None:
    """Return why requests of these lengths cannot be served; None if they can.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> print(context_error(load_catalog().model("llama-3.1-8b"), 131_072, 1))
    n_input_token: 131072 with 1 output exceeds the model's context of 131072
    """
    limit = context_limit(model)
    if n_input_token + n_output_token <= limit:
        return None
    problem = f"{n_input_token:g} with {n_output_token:g} output exceeds the model's context of {limit:g}"
    return InputError("n_input_token", problem)


def reading_remark(model: ModelSpec) -> str:
    """Return what of a model's config was not understood, and what was left to its class; blank if nothing.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> model = load_catalog().model("llama-3.1-8b")
    >>> reading_remark(model.model_copy(update={"unread": ("memory_bank_rank",)}))
    "model: 'memory_bank_rank' of its config is not understood, so parts of it may be missing"
    """
    unread, assumed = ", ".join(map(repr, model.unread)), ", ".join(map(repr, model.assumed))
    parts = []
    if unread:
        parts.append(f"model: {unread} of its config is not understood, so parts of it may be missing")
    if assumed:
        parts.append(f"model: its config leaves {assumed} to the defaults of {model.model_type}")
    return "; ".join(parts)
