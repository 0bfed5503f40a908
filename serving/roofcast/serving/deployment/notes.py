"""Comments of an artefact: what each argument is for, and what is left to fill in."""

import textwrap
from collections.abc import Iterable
from typing import Final

from roofcast.serving.deployment.platforms import REPLACE

_WIDTH: Final = 100

_PURPOSES: Final = {
    "accelerators that share each layer": ("--tensor-parallel-size", "--tp-size", "--tp_size"),
    "groups of layers, one after another": ("--pipeline-parallel-size", "--pp-size", "--pp_size"),
    "copies of the attention, which share the experts": ("--data-parallel-size", "--dp-size"),
    "experts are spread over accelerators": ("--enable-expert-parallel", "--ep-size", "--ep_size"),
    "the longest prompt with its response; more takes cache memory": (
        "--max-model-len", "--context-length", "--max_seq_len",
    ),
    "most requests in flight: those within the limits, with room for random arrivals if any; others wait": (
        "--max-num-seqs", "--max-running-requests", "--max_batch_size",
    ),
    "share of the accelerator's memory that the prediction counts on": (
        "--gpu-memory-utilization", "--mem-fraction-static", "--kv_cache_free_gpu_memory_fraction",
    ),
    "precision of the weights, as predicted": ("--quantization", "--dtype"),
    "precision of the KV cache, as predicted": ("--kv-cache-dtype", "--kv_cache_dtype"),
    "speculative decoding, as predicted": ("--speculative-config", "--speculative-algorithm"),
}  # fmt: skip
_PURPOSE: Final = {name: text for text, names in _PURPOSES.items() for name in names}

FILL_IN: Final = (
    "namespace: that of `kubectl apply --namespace NAME --filename FILE`; the manifest names none",
    "token: for a checkpoint that asks for a login, `kubectl create secret generic huggingface --namespace NAME "
    "--from-literal=token=$HF_TOKEN`",
    "nodes: the labels in nodeSelector are to be those of yours",
    "weights: an emptyDir is filled again at each start; a persistent volume claim keeps them",
)
"""What a manifest leaves to its user."""


def option_notes(options: Iterable[tuple[str, ...]]) -> str:
    """Return a comment for each option whose name does not say what it is for.

    Examples
    --------
    >>> print(option_notes([("vllm", "serve", "m"), ("--tensor-parallel-size", "2")]), end="")
    # --tensor-parallel-size: accelerators that share each layer
    """
    return "".join(_comment(f"{option[0]}: {_PURPOSE[option[0]]}") for option in options if option[0] in _PURPOSE)


def manifest_notes(text: str) -> str:
    """Return the comments on what to fill in of a manifest."""
    placeholder = [f"image and labels: replace `{REPLACE}`"] if REPLACE in text else []
    return _comment("to fill in") + "".join(_comment(f"- {one}") for one in (*placeholder, *FILL_IN))


def _comment(text: str) -> str:
    lines = textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False, break_long_words=False
    )
    return "".join(f"{line}\n" for line in lines)
