"""Which serving engine runs on which accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec
from roofcast.features.pipeline import ENGINES_SEEN_WIDELY
from roofcast.serving.deployment.platforms import platform_of

BEFORE_VOLTA: Final = ("Pascal",)
BEFORE_AMPERE: Final = (*BEFORE_VOLTA, "Volta", "Turing")

TOO_OLD: Final[Mapping[str, tuple[str, ...]]] = {
    "vllm": BEFORE_VOLTA,
    "sglang": BEFORE_AMPERE,
    "trtllm": BEFORE_AMPERE,
}
"""Architectures that an engine's current version does not run on any more.

References
----------
vLLM, "GPU" installation (compute capability 7.0 or higher); SGLang, issue 6006, "sm75 EOL", and issue 24224 (no
kernels for 7.5); TensorRT-LLM, "Supported Hardware" (Ampere and later).
"""


ANY: Final = ""
"""Engine of a part whose vendor is not in the shipped catalogue: whoever adds it knows what runs there."""


def engines_of(part: AcceleratorSpec) -> tuple[str, ...]:
    """Return the engines that were measured widely and run on a part; none where that is not known.

    The vendors of each engine are those of its images: `roofcast.serving.deployment.platforms` names them with
    sources.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> accelerators = load_catalog().accelerators
    >>> engines_of(accelerators["nvidia-l4-24gb"]), engines_of(accelerators["amd-mi300x-192gb"])
    (('vllm', 'sglang', 'trtllm'), ('vllm', 'sglang'))
    >>> engines_of(accelerators["nvidia-t4-16gb"]), engines_of(accelerators["aws-inferentia2"])
    (('vllm',), ())
    """
    try:
        images = platform_of(part).images
    except InputError:
        return () if part.vendor in _catalogued_vendors() else (ANY,)
    return tuple(e for e in ENGINES_SEEN_WIDELY if e in images and part.architecture not in TOO_OLD[e])


def runs_on(engine: str, part: AcceleratorSpec) -> bool:
    """Return whether an engine that was asked for may run on a part; of engines unknown here nothing is ruled out."""
    runs = engines_of(part)
    return engine not in ENGINES_SEEN_WIDELY or engine in runs or ANY in runs


@cache
def _catalogued_vendors() -> frozenset[str]:
    return frozenset(part.vendor for part in load_catalog().accelerators.values())
