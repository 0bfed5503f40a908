"""Which precisions of weights an engine serves on an accelerator, by NVIDIA's compute capability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.precisions import served_precision

CAPABILITY: Final[Mapping[str, float]] = {"Pascal": 6.0, "Volta": 7.0, "Turing": 7.5}
"""Compute capability by architecture, of those that lack something.

References
----------
NVIDIA, "CUDA GPU Compute Capability: Legacy".
"""

LEAST: Final[Mapping[str, Mapping[str, float]]] = {
    "vllm": {"bf16": 8.0, "fp8": 7.5, "int8": 7.5, "fp4": 7.5},
    "sglang": {"bf16": 8.0},
    "trtllm": {"bf16": 8.0},
}
"""Least compute capability at which an engine serves weights of a precision, where it asks for one.

References
----------
vLLM 0.32: issue 946 ("Bfloat16 is only supported on GPUs with compute capability of at least 8.0"), "FP8 W8A8"
(weights alone from 7.5), and "Quantization", table "Supported Hardware" (INT8 and Marlin FP4 not on Volta). SGLang,
``model_runner.py``: "Compute capability below sm80. Use float16 due to lack of bfloat16 support". TensorRT-LLM,
"Support Matrix", row "Precision" (BF16 from Ampere).
"""


def precision_problem(engine: str, precision: str, part: AcceleratorSpec) -> str:
    """Return in a sentence why an engine does not serve weights of a precision on a part; empty if it may.

    Parameters
    ----------
    engine
        Name; of one that is not known here nothing is ruled out.
    precision
        Of the weights, blank for the checkpoint's own.
    part
        That runs it.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> v100 = load_catalog().accelerator("nvidia-v100-sxm2-16gb")
    >>> precision_problem("vllm", "bf16", v100)
    'vllm serves bf16 from compute capability 8.0 on, and NVIDIA Tesla V100 SXM2 16GB has 7.0; ask for fp16'
    >>> precision_problem("vllm", "fp16", v100)
    ''
    """
    least, own = LEAST.get(engine, {}).get(precision, 0.0), CAPABILITY.get(part.architecture)
    if part.vendor != "NVIDIA" or own is None or own >= least:
        return ""
    limit = f"{engine} serves {precision} from compute capability {least:.1f} on"
    return f"{limit}, and {part.vendor} {part.name} has {own:.1f}; ask for fp16"


def precision_on(engine: str, checkpoint: str, part: AcceleratorSpec) -> str:
    """Return the precision in which an engine serves a checkpoint on a part unless told otherwise.

    References
    ----------
    vLLM and SGLang, option ``--dtype auto``: where a GPU has no BF16, FP16 takes its place.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> parts = load_catalog().accelerators
    >>> [precision_on("vllm", "bf16", parts[name]) for name in ("nvidia-t4-16gb", "nvidia-l4-24gb")]
    ['fp16', 'bf16']
    """
    own = served_precision(checkpoint)
    return "fp16" if own == "bf16" and precision_problem(engine, own, part) else own
