"""What a job leaves open: framework and global batch, and what an answer assumes."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.analysis.power import DRAW
from roofcast.features.jobs.run_table import FROZEN_METHODS

FSDP: Final = "torchtitan"
MEGATRON: Final = "megatron-lm"
ADAPTERS: Final = "transformers"
"""Default frameworks of jobs with FSDP2, with Megatron-LM, and with PEFT and accelerate."""

FRAMEWORK_OF_VENDOR: Final = {"Google": "maxtext", "AWS": "neuronx-distributed"}

FINE_TUNING_SEQUENCE: Final = 128
"""Global batch of a fine-tuning: that of R. Taori et al., "Stanford Alpaca", 2023."""

PRETRAINING_TOKEN: Final = 4_194_304
"""Tokens of a global batch of pretraining: H. Touvron et al., "Llama 2", 2023, section 2.2."""


def default_framework(job: Mapping[str, Any], accelerator: AcceleratorSpec) -> str:
    """Return the framework that the settings of a job imply.

    Sequences of pretraining that the accelerators do not divide need other parallelism than of replicas; on one
    accelerator all weights are tuned with a plain trainer.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> h100 = load_catalog().accelerator("h100-sxm-80gb")
    >>> default_framework({"method": "full"}, h100), default_framework({"method": "full", "tp": 2.0}, h100)
    ('transformers', 'megatron-lm')
    """
    if accelerator.vendor in FRAMEWORK_OF_VENDOR:
        return FRAMEWORK_OF_VENDOR[accelerator.vendor]
    n, n_batch = job.get("n_accelerator", 1.0), job.get("n_global_batch_sequence", 0.0)
    is_split = any(job.get(name, 1.0) > 1 for name in ("tp", "pp", "vp", "cp", "ep"))
    if is_split or (job["method"] == "pretrain" and n_batch % n):
        return MEGATRON
    if job["method"] in FROZEN_METHODS or (job["method"] == "full" and n == 1.0):
        return ADAPTERS
    return {"zero2": "deepspeed", "zero3": "deepspeed", "zero1": MEGATRON}.get(str(job.get("sharding", "")), FSDP)


def default_batch(method: str, n_token: float) -> int:
    """Return the sequences of a global batch where it is not given: a power of two for pretraining.

    Examples
    --------
    >>> default_batch("lora", 2048), default_batch("pretrain", 4096)
    (128, 1024)
    """
    if method != "pretrain":
        return FINE_TUNING_SEQUENCE
    return int(2 ** max(int(PRETRAINING_TOKEN // n_token).bit_length() - 1, 0))


USUAL_ADAPTERS: Final = {
    "bottleneck": {"adapter_rank": "two bottlenecks of width 64 a layer"},
    "prompt-tuning": {"adapter_rank": "100 virtual tokens"},
}
"""Words for the defaults of `roofcast.features.jobs.methods`, by variant."""


def list_defaults(given: Collection[str], method: str, n_token: int, n_batch: int, adapter: str = "") -> list[str]:
    """Return the values of fields that a request does not have and that move the answer, in words.

    Examples
    --------
    >>> list_defaults({"model", "n_token", "n_epoch"}, "lora", 2048, 128)
    ['sequences of 2048 tokens', '128 sequences a step', 'adapters of rank 16', 'on queries and values']
    """
    texts = {"n_token_per_sequence": f"sequences of {n_token} tokens", "n_epoch": "one epoch"}
    texts["n_global_batch_sequence"] = f"{n_batch} sequences a step"
    if method in FROZEN_METHODS:
        lora = {"adapter_rank": "adapters of rank 16", "adapter_targets": "on queries and values"}
        texts |= USUAL_ADAPTERS.get(adapter, lora)
    return [text for name, text in texts.items() if name not in given]


LATENT_ADAPTERS: Final = (
    "adapters on keys or values are those of both projections of latent attention that give them (kv_a and kv_b)"
)


def list_assumptions(method: str, n_batch: int, *, has_batch: bool, is_latent: bool) -> list[str]:
    """Return what a recommendation assumes, in words.

    `is_latent`: whether LoRA changes multi-head latent attention.
    """
    states = "adapters and their optimizer states in 32 bits" if method in FROZEN_METHODS else "AdamW in 32 bits"
    return [
        "sequences are packed; time is that of optimizer steps, without start, evaluation and checkpoints",
        *([] if has_batch else [f"a step has {n_batch} sequences, as n_global_batch_sequence is not given"]),
        f"states: {states}; attention stores no scores",
        *([LATENT_ADAPTERS] if is_latent else []),
        f"boards draw {DRAW['compute']:.0%} of their design power while they multiply, {DRAW['link']:.0%} while they "
        f"wait for links, {DRAW['queue']:.0%} in pipeline bubbles; hosts and cooling are not counted",
        "several nodes are joined by the network that is usual for the accelerator, such as 400 Gbit/s each for H100",
    ]
