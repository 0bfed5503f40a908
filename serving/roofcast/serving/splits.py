"""Which splits over accelerators a model admits."""

from __future__ import annotations

from typing import Final

from roofcast.data.specs import ModelSpec

UNEVEN_ENGINES: Final = ("deepspeed", "transformers-neuronx")
"""Engines that split attention heads in unequal parts, or pad them; measured so in the shipped campaigns."""


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
    if ep > 1 and not model.n_expert:
        return f"ep: must be 1, as the model has no experts, got {ep:g}"
    if ep > max(model.n_expert, 1):
        return f"ep: must be at most the model's {model.n_expert} experts, got {ep:g}"
    return ""
