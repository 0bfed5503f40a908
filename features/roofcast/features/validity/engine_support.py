"""Which serving engine runs on which accelerator, and with weights of which precision."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec
from roofcast.features.descriptors.precisions import served_precision
from roofcast.features.pipeline import ENGINES_SEEN_WIDELY

ANY_ENGINE: Final = ""
"""Engine of an accelerator whose vendor is not in the shipped catalogue: its support is unknown."""

ENGINES_BY_VENDOR: Final[Mapping[str, tuple[str, ...]]] = {"NVIDIA": ("vllm", "sglang", "trtllm")}

ENGINES_BY_ARCHITECTURE: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("AMD", "CDNA3"): ("vllm", "sglang"),
    ("AMD", "CDNA4"): ("vllm", "sglang"),
    ("Intel", "Gaudi 2"): ("vllm",),
    ("Intel", "Gaudi 3"): ("vllm",),
    ("Intel", "Xe2-HPG"): ("vllm",),
    ("AWS", "NeuronCore-v3"): ("vllm",),
}

ENGINES_BY_ID: Final[Mapping[str, tuple[str, ...]]] = {"google-tpu-v5e": ("vllm",), "google-tpu-v6e": ("vllm",)}
"""Engines by vendor, architecture or accelerator; `roofcast.serving.deployment.platforms` has their images and
sources."""

COMPUTE_CAPABILITY: Final[Mapping[str, float]] = {"Pascal": 6.0, "Volta": 7.0, "Turing": 7.5}
"""NVIDIA compute capability of the architectures before Ampere (8.0).

References
----------
NVIDIA, "CUDA GPU Compute Capability: Legacy".
"""

MIN_CAPABILITY: Final[Mapping[str, float]] = {"vllm": 7.0, "sglang": 8.0, "trtllm": 8.0}
"""Least compute capability that the current version of an engine supports.

References
----------
vLLM, "GPU" installation (compute capability 7.0 or higher); SGLang, issue 6006, "sm75 EOL", and issue 24224 (no
kernels for 7.5); TensorRT-LLM, "Supported Hardware" (Ampere and later).
"""

MIN_CAPABILITY_BY_PRECISION: Final[Mapping[str, Mapping[str, float]]] = {
    "vllm": {"bf16": 8.0, "fp8": 7.5, "int8": 7.5, "fp4": 7.5},
    "sglang": {"bf16": 8.0},
    "trtllm": {"bf16": 8.0},
}
"""Least compute capability at which an engine serves weights of a precision, where it has such a limit.

References
----------
vLLM 0.32: issue 946 ("Bfloat16 is only supported on GPUs with compute capability of at least 8.0"), "FP8 W8A8"
(weights alone from 7.5), and "Quantization", table "Supported Hardware" (INT8 and Marlin FP4 not on Volta). SGLang,
``model_runner.py``: "Compute capability below sm80. Use float16 due to lack of bfloat16 support". TensorRT-LLM,
"Support Matrix", row "Precision" (BF16 from Ampere).
"""

EMULATED_PRECISIONS: Final = ("fp32", "bf16", "fp16", "int4")
"""Precisions that every accelerator serves, computing in 16 or 32 bits if it has no units for them."""


def engines_on(accelerator: AcceleratorSpec) -> tuple[str, ...]:
    """Return the widely measured engines that run on an accelerator; empty if there is none.

    Examples
    --------
    >>> accelerators = load_catalog().accelerators
    >>> engines_on(accelerators["nvidia-l4-24gb"]), engines_on(accelerators["amd-mi300x-192gb"])
    (('vllm', 'sglang', 'trtllm'), ('vllm', 'sglang'))
    >>> engines_on(accelerators["nvidia-t4-16gb"]), engines_on(accelerators["aws-inferentia2"])
    (('vllm',), ())
    """
    vendor, architecture = accelerator.vendor, accelerator.architecture
    engines = (
        ENGINES_BY_VENDOR.get(vendor)
        or ENGINES_BY_ID.get(accelerator.id)
        or ENGINES_BY_ARCHITECTURE.get((vendor, architecture))
    )
    if engines is None:
        return () if vendor in _shipped_vendors() else (ANY_ENGINE,)
    capability = COMPUTE_CAPABILITY.get(architecture)
    return tuple(engine for engine in engines if capability is None or capability >= MIN_CAPABILITY[engine])


def can_run(engine: str, accelerator: AcceleratorSpec) -> bool:
    """Return whether an engine may run on an accelerator; true for an engine whose support is unknown."""
    engines = engines_on(accelerator)
    return engine not in ENGINES_SEEN_WIDELY or engine in engines or ANY_ENGINE in engines


@cache
def _shipped_vendors() -> frozenset[str]:
    return frozenset(accelerator.vendor for accelerator in load_catalog().accelerators.values())


def can_compute(precision: str, accelerator: AcceleratorSpec) -> bool:
    """Return whether an accelerator has units for weights of a precision, or emulates them."""
    return precision in EMULATED_PRECISIONS or precision in accelerator.peak_flop_per_s


def precision_error(engine: str, precision: str, accelerator: AcceleratorSpec) -> InputError | None:
    """Return why an engine does not serve weights of a precision on an accelerator; None if it may.

    Parameters
    ----------
    engine
        An unknown engine has no limits.
    precision
        Of the weights; blank for the checkpoint's own.

    Examples
    --------
    >>> v100 = load_catalog().accelerator("nvidia-v100-sxm2-16gb")
    >>> print(precision_error("vllm", "bf16", v100).problem)
    vllm serves bf16 from compute capability 8.0 on, and NVIDIA Tesla V100 SXM2 16GB has 7.0; ask for fp16
    >>> precision_error("vllm", "fp16", v100)
    """
    required = MIN_CAPABILITY_BY_PRECISION.get(engine, {}).get(precision, 0.0)
    capability = COMPUTE_CAPABILITY.get(accelerator.architecture)
    if accelerator.vendor != "NVIDIA" or capability is None or capability >= required:
        return None
    return InputError(
        "weight_precision",
        f"{engine} serves {precision} from compute capability {required:.1f} on, and "
        f"{accelerator.vendor} {accelerator.name} has {capability:.1f}; ask for fp16",
    )


def default_precision(engine: str, checkpoint_precision: str, accelerator: AcceleratorSpec) -> str:
    """Return the precision in which an engine serves a checkpoint on an accelerator without options.

    References
    ----------
    vLLM and SGLang, option ``--dtype auto``: where a GPU has no BF16, FP16 takes its place.

    Examples
    --------
    >>> accelerators = load_catalog().accelerators
    >>> [default_precision("vllm", "bf16", accelerators[name]) for name in ("nvidia-t4-16gb", "nvidia-l4-24gb")]
    ['fp16', 'bf16']
    """
    precision = served_precision(checkpoint_precision)
    return "fp16" if precision == "bf16" and precision_error(engine, precision, accelerator) else precision
