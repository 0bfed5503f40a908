"""Engines by name, those that a search tries on an accelerator, and the precision that they serve by default."""

import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from math import inf
from typing import Final

from roofcast.data.catalog.support_rows import MeasuredStack, load_support, target_of
from roofcast.data.errors import AmbiguousNameError, UnknownNameError
from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.engine_names import ALIASES, OTHER, nearest_engine
from roofcast.features.descriptors.precisions import served_precision
from roofcast.features.validity.engine_support import (
    DESK_ENGINES,
    SERVERS,
    WIDE,
    Stack,
    canonical_engine,
    hardware_formats,
    is_quantised_whole,
    possible_precisions,
    rows_of_target,
    support_of,
)

ANY_ENGINE: Final = ""
"""Engine of an accelerator that no row of the table is about."""

WEIGHT_SHARE: Final = 0.85
"""Of the memory, that weights may take where an engine can quantise them further; cache and buffers take the rest."""

FRONTS: Final = {
    "dynamo": ("vllm", "sglang", "trtllm"), "triton": ("trtllm", "vllm"), "kserve": ("vllm", "sglang"),
    "ray": ("vllm", "sglang"), "aibrix": ("vllm", "sglang"), "gpustack": ("vllm", "sglang", "llama.cpp"),
    "xinference": ("vllm", "sglang", "llama.cpp"), "localai": ("llama.cpp", "vllm", "mlx-lm"),
    "docker": ("llama.cpp", "vllm"), "ktransformers": ("llama.cpp", "sglang"),
}  # fmt: skip
"""Engines beneath servers that start one of several; KTransformers' kernels run experts on the host beneath SGLang,
as ``--n-cpu-moe`` of llama.cpp does.

References
----------
NVIDIA Dynamo 1.4, "Backends"; KServe, "LLMInferenceService"; GPUStack, Xinference and LocalAI, "Backends"; Docker,
"Model Runner: inference engines"; KTransformers, ``kt-kernel/README.md``.
"""

_OTHER_NAMES: Final = ("vllm-mlx", "other")
_HOME: Final = re.compile(r"consumer|SoC|CPU", re.IGNORECASE)


def default_precision(stack: Stack) -> str:
    """Return the precision in which an engine serves a checkpoint without options; blank if it does not serve it.

    References
    ----------
    vLLM and SGLang, option ``--dtype auto``: where a GPU has no BF16, FP16 takes its place, and FP32 for models that
    refuse FP16. llama.cpp, ``convert_hf_to_gguf.py``: Q8_0 of FP8 checkpoints.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> t4 = catalog.accelerators["nvidia-t4-16gb"]
    >>> [default_precision(Stack("vllm", t4, model=catalog.model(name))) for name in ("qwen3-8b", "gemma-2-9b")]
    ['fp16', 'fp32']
    """
    statuses = {}
    for precision in possible_precisions(canonical_engine(stack.engine), "", stack.model):
        statuses[precision] = support_of(replace(stack, precision=precision)).status
        if statuses[precision] == "runs":
            return precision
    return next((one for one, status in statuses.items() if status == "unknown"), "")


def default_engine(model: ModelSpec, accelerator: AcceleratorSpec) -> str:
    """Return the engine of desks that runs a model where no server is known to; blank where one is, or none does.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> parts = (catalog.accelerator(name) for name in ("M4 Max", "4090", "tpu v6e"))
    >>> [default_engine(catalog.model("qwen3-8b"), part) for part in parts]
    ['llama.cpp', '', '']
    """
    stacks = {name: Stack(name, accelerator, model=model) for name in (*SERVERS, DESK_ENGINES[0])}
    runs = [name for name, stack in stacks.items() if support_of(stack).status == "runs"]
    return DESK_ENGINES[0] if runs == [DESK_ENGINES[0]] else ""


def searched_pairs(
    model: ModelSpec,
    accelerator: AcceleratorSpec,
    engines: Collection[str] = (),
    precisions: Collection[str] = (),
    *,
    published: Collection[str] = (),
    measured: tuple[MeasuredStack, ...] = (),
    memory_byte: float = inf,
) -> list[tuple[str, str]]:
    """Return the precisions and engines that a recommendation searches on an accelerator; none if none runs there.

    Unasked these are servers that run the model, with engines of desks on `is_home` accelerators; else engines of
    desks, of which MLX is for Apple's; else those of which it is unknown. Engines that quantise checkpoints do so if
    the weights do not fit otherwise.

    - `engines`, `precisions`: Named ones; with named engines, stacks of which it is unknown whether they run are
      searched.
    - `published`: Precisions searched beside the checkpoint's own unless precisions are named.
    - `memory_byte`: Of all accelerators of a replica.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> for name in ("nvidia-l4-24gb", "apple-m4-max-128gb", "nvidia-v100-sxm2-16gb", "google-tpu-v4"):
    ...     pairs = searched_pairs(catalog.model("llama-3.1-8b"), catalog.accelerators[name])
    ...     print(" ".join(sorted({engine for _, engine in pairs})))
    sglang trtllm vllm
    llama.cpp mlx-lm
    llama.cpp
    sglang vllm
    """
    desks = DESK_ENGINES if accelerator.vendor == "Apple" else DESK_ENGINES[:1]
    first = (*SERVERS, *desks) if is_home(accelerator) else SERVERS
    attempts: list[tuple[Collection[str], str]] = [(first, "runs"), (desks, "runs")]
    attempts.append(((*SERVERS, *desks), "runs unknown"))
    if engines or not rows_of_target(target_of(accelerator)):
        attempts = [(engines or (ANY_ENGINE,), "runs unknown")]
    for tried, admitted in attempts:
        pairs = []
        for engine in tried:
            stack = Stack(engine, accelerator, model=model, measured=measured)
            wanted = precisions or {_fitting_precision(stack, default_precision(stack), memory_byte), *published}
            pairs += [
                (one, engine)
                for one in wanted
                if one and support_of(replace(stack, precision=one)).status in admitted
            ]
        if pairs:
            return sorted(pairs)
    return []


def _fitting_precision(stack: Stack, precision: str, memory_byte: float) -> str:
    if not precision or stack.model is None or not is_quantised_whole(stack.engine):
        return precision
    names = (precision, *(name for name in ("int8", "int4") if BYTE_PER_WEIGHT[name] < BYTE_PER_WEIGHT[precision]))
    fits = (name for name in names if stack.model.n_param * BYTE_PER_WEIGHT[name] < WEIGHT_SHARE * memory_byte)
    return next(fits, names[-1])


def is_home(accelerator: AcceleratorSpec) -> bool:
    """Return whether an accelerator is one of desks: a consumer card, a system on a chip or a processor."""
    return bool(_HOME.search(accelerator.form_factor))


def needs_copy(stack: Stack, stored: str) -> bool:
    """Return whether the stack's precision needs another copy of a checkpoint `stored` in a precision.

    Engines convert between 16 and 32 bits, and some quantise these to FP8 while loading.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> h100 = load_catalog().accelerator("nvidia-h100-sxm-80gb")
    >>> [needs_copy(Stack(engine, h100, "fp8"), "bf16") for engine in ("vllm", "sglang", "trtllm")]
    [False, False, True]
    """
    precision = stack.precision
    if precision in ("", stored, served_precision(stored)):
        return False
    if stored not in WIDE:
        return True
    if precision in WIDE:
        return stack.engine == "trtllm"
    engine, target = canonical_engine(stack.engine), target_of(stack.accelerator)
    return not (precision == "fp8" and "fp8_online" in hardware_formats(load_support(), engine, target))


def is_engine(engine: str, measured: Collection[str] = ()) -> bool:
    """Return whether an engine has this name: in the table, in the learner's columns, as a spelling, or as measured.

    Examples
    --------
    >>> is_engine("vLLM (tenstorrent fork)"), is_engine("vlm")
    (True, False)
    """
    is_spelled = canonical_engine(engine) in known_engines() or nearest_engine(engine) != OTHER
    return is_spelled or engine in measured


def unknown_engine_error(engine: str, measured: Collection[str] = ()) -> UnknownNameError:
    """Return the error for a name that no engine has, with near misses or where the names are listed.

    Examples
    --------
    >>> print(unknown_engine_error("vlm"))
    engine: no 'vlm' is known; did you mean 'vllm' or 'vllm-mlx' or 'llm-d'?
    >>> print(unknown_engine_error("homemade"))
    engine: no 'homemade' is known; `roofcast engines` lists them
    >>> print(unknown_engine_error("NVIDIA Dynamo"))
    engine: 'NVIDIA Dynamo' may be vllm, sglang or trtllm; name one
    """
    if front := next((word for word in re.findall("[a-z]+", engine.lower()) if word in FRONTS), None):
        return AmbiguousNameError("engine", engine, FRONTS[front])
    return UnknownNameError("engine", engine, {*known_engines(), *measured} - {""}, "`roofcast engines` lists them")


@cache
def known_engines() -> frozenset[str]:
    """Return the names of engines that a question may have; spellings and measured engines are accepted too."""
    return frozenset({row.engine for row in load_support()} | {*ENGINES, *ALIASES, *_OTHER_NAMES})
