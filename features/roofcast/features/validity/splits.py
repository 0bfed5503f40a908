"""Which splits over accelerators a model admits."""

from __future__ import annotations

from typing import Final

from roofcast.data.specs import ModelSpec

UNEVEN_ENGINES: Final = ("deepspeed", "transformers-neuronx")
"""Engines that split attention heads in unequal parts, or pad them; measured so in the shipped campaigns."""

WHOLE_KV_HEADS: Final = ("vllm", "sglang")
"""Engines that split key-value heads evenly or give each accelerator one whole, and refuse anything between.

References
----------
vLLM 0.32, ``LlamaAttention`` in ``vllm/model_executor/models/llama.py``; SGLang 0.5, the same class in
``sglang/srt/models/llama.py``.
"""


def split_problem(model: ModelSpec, tp: float = 1, ep: float = 1, engine: str = "") -> str:
    """Return in a sentence why a model cannot be split so; empty if it can.

    Parameters
    ----------
    model
        Whose attention heads and experts are split.
    tp, ep
        Degrees of tensor and expert parallelism.
    engine
        That runs it; empty if unknown.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> llama = load_catalog().model("llama-3.1-8b")
    >>> split_problem(llama, tp=3)
    "tp: must divide the model's 32 attention heads, got 3"
    >>> split_problem(llama, ep=2)
    'ep: must be 1, as the model has no experts, got 2'
    """
    if model.n_head % tp and engine not in UNEVEN_ENGINES:
        return f"tp: must divide the model's {model.n_head} attention heads, got {tp:g}"
    is_shared = model.kv_lora_rank or engine not in WHOLE_KV_HEADS
    if not is_shared and model.n_kv_head % tp and tp % model.n_kv_head:
        return f"tp: must divide the model's {model.n_kv_head} key-value heads or be a multiple of them, got {tp:g}"
    if ep > 1 and not model.n_expert:
        return f"ep: must be 1, as the model has no experts, got {ep:g}"
    if ep > max(model.n_expert, 1):
        return f"ep: must be at most the model's {model.n_expert} experts, got {ep:g}"
    return ""


def assumed_split_problem(model: ModelSpec, tp: float, n_accelerator: float, engine: str = "") -> str:
    """Return in a sentence why the split that a blank `tp` is taken for cannot be; empty if it can.

    Parameters
    ----------
    model, engine
        As of `split_problem`.
    tp
        Tensor parallelism that was assumed.
    n_accelerator
        That it was assumed for.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> assumed_split_problem(load_catalog().model("llama-3.1-8b"), 3, 3)
    "tp: is blank, and 3 for 3 accelerators must divide the model's 32 attention heads; give tp, pp and dp"
    """
    problem = split_problem(model, tp, engine=engine)
    told = problem.removeprefix("tp: ").removesuffix(f", got {tp:g}")
    return (
        f"tp: is blank, and {tp:g} for {n_accelerator:g} accelerators {told}; give tp, pp and dp" if problem else ""
    )
