"""Which serving engine runs on which accelerator, in which version, and with weights of which precision."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Final

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import AcceleratorSpec
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.engine_names import ALIASES, OTHER, nearest_engine
from roofcast.features.descriptors.precisions import served_precision
from roofcast.features.validity.support_table import NEWEST, OTHER_ENGINES, SUPPORT, WIDE, Support

ANY_ENGINE: Final = ""
"""Engine of an accelerator whose vendor is not in the shipped catalogue: its support is unknown."""

DOCUMENTED_ENGINES: Final = tuple(dict.fromkeys(row.engine for row in SUPPORT))
"""Engines with rows in the table; any other engine is admitted everywhere."""

KNOWN_ENGINES: Final = frozenset({*DOCUMENTED_ENGINES, *OTHER_ENGINES, *ENGINES, *ALIASES})
"""Names of engines that a question may have; spellings of them and measured engines are accepted too."""

_NUMBER: Final = re.compile(r"\d+")
_VERSION: Final = re.compile(r"v?\d+(\.\d+)+")


def engines_on(accelerator: AcceleratorSpec) -> tuple[str, ...]:
    """Return the engines that a recommendation searches on an accelerator; empty if there is none.

    Examples
    --------
    >>> accelerators = load_catalog().accelerators
    >>> engines_on(accelerators["nvidia-l4-24gb"]), engines_on(accelerators["amd-mi300x-192gb"])
    (('vllm', 'sglang', 'trtllm'), ('vllm', 'sglang'))
    >>> engines_on(accelerators["nvidia-t4-16gb"]), engines_on(accelerators["nvidia-v100-sxm2-16gb"])
    (('vllm',), ())
    """
    if accelerator.vendor not in _shipped_vendors():
        return (ANY_ENGINE,)
    rows = (row for engine in DOCUMENTED_ENGINES for row in _rows(engine, accelerator))
    return tuple(dict.fromkeys(row.engine for row in rows if row.is_searched and not row.last))


def can_run(engine: str, accelerator: AcceleratorSpec) -> bool:
    """Return whether the current version of an engine runs on an accelerator; true if its support is unknown."""
    if engine not in DOCUMENTED_ENGINES or accelerator.vendor not in _shipped_vendors():
        return True
    return any(not row.last for row in _rows(engine, accelerator))


def served_precisions(engine: str, accelerator: AcceleratorSpec) -> tuple[str, ...]:
    """Return the weight precisions that the current version of an engine serves on an accelerator.

    If the engine or the vendor is not in the table, these are 16 and 32 bits, INT4 (which every accelerator unpacks)
    and the precisions in which the accelerator computes.

    Examples
    --------
    >>> served_precisions("trtllm", load_catalog().accelerator("nvidia-a100-sxm-80gb"))
    ('fp32', 'bf16', 'fp16', 'int8', 'int4')
    """
    if engine in DOCUMENTED_ENGINES and accelerator.vendor in _shipped_vendors():
        rows = _rows(engine, accelerator)
        return tuple(dict.fromkeys(one for row in rows if not row.last for one in row.precisions))
    return tuple(dict.fromkeys((*WIDE, "int4", *map(str, accelerator.peak_flop_per_s))))


def is_engine(engine: str, measured: Collection[str] = ()) -> bool:
    """Return whether an engine has this name: in the table, in the learner's columns, as a spelling, or as measured.

    Parameters
    ----------
    measured
        Engines of the training data.

    Examples
    --------
    >>> is_engine("vLLM (tenstorrent fork)"), is_engine("vlm")
    (True, False)
    """
    return engine in KNOWN_ENGINES or engine in measured or nearest_engine(engine) != OTHER


def unknown_engine_error(engine: str, measured: Collection[str] = ()) -> UnknownNameError:
    """Return the error for a name that no engine has, with near misses.

    Examples
    --------
    >>> print(unknown_engine_error("vlm"))
    engine: no 'vlm' is known; did you mean 'vllm' or 'vllm-mlx' or 'llm-d'?
    """
    return UnknownNameError("engine", engine, {*KNOWN_ENGINES, *measured} - {""})


def support_error(engine: str, precision: str, accelerator: AcceleratorSpec, version: str = "") -> InputError | None:
    """Return why an engine does not serve weights of a precision on an accelerator; None if it may.

    Parameters
    ----------
    engine
        An engine without rows in the table has no limits.
    precision
        Of the weights; blank for the checkpoint's own, which the engine may convert.
    version
        Of the engine; if blank or not a number, it suffices that any version runs.

    Examples
    --------
    >>> accelerators = load_catalog().accelerators
    >>> print(support_error("trtllm", "", accelerators["amd-mi300x-192gb"]))
    engine: trtllm does not run on AMD Instinct MI300X; vllm, sglang do
    >>> v100 = accelerators["nvidia-v100-sxm2-16gb"]
    >>> print(support_error("vllm", "bf16", v100))
    weight_precision: vllm does not serve bf16 on NVIDIA Tesla V100 SXM2 16GB, but fp32, fp16, int4
    >>> print(support_error("vllm", "fp16", v100, "0.32.0"))
    engine_version: vllm 0.32.0 does not run on NVIDIA Tesla V100 SXM2 16GB; the last version that does is 0.19
    >>> support_error("vllm", "fp16", v100)
    """
    if engine not in DOCUMENTED_ENGINES or accelerator.vendor not in _shipped_vendors():
        return None
    name = f"{accelerator.vendor} {accelerator.name}"
    rows = _rows(engine, accelerator)
    if not rows:
        others = [*filter(None, engines_on(accelerator))]
        cure = f"; {', '.join(others)} {'does' if len(others) == 1 else 'do'}" if others else ""
        return InputError("engine", f"{engine} does not run on {name}{cure}")
    admitted = [row for row in rows if not row.last or not _is_later(version, row.last)]
    if not admitted:
        problem = f"{engine} {version} does not run on {name}; the last version that does is {rows[0].last}"
        return InputError("engine_version", problem)
    precisions = tuple(dict.fromkeys(one for row in admitted for one in row.precisions))
    if precision and precision not in precisions:
        problem = f"{engine} does not serve {precision} on {name}, but {', '.join(precisions)}"
        return InputError("weight_precision", problem)
    return None


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
    return "fp16" if precision == "bf16" and support_error(engine, precision, accelerator) else precision


def needs_copy(engine: str, stored: str, precision: str, accelerator: AcceleratorSpec) -> bool:
    """Return whether serving in a precision needs a copy of the checkpoint that is published in it.

    Engines convert between 16 and 32 bits, and some quantise these to FP8 while loading.

    Examples
    --------
    >>> h100 = load_catalog().accelerator("nvidia-h100-sxm-80gb")
    >>> [needs_copy(engine, "bf16", "fp8", h100) for engine in ("vllm", "sglang", "trtllm")]
    [False, False, True]
    >>> needs_copy("vllm", "bf16", "int4", h100), needs_copy("vllm", "fp8", "fp8", h100)
    (True, False)
    """
    if precision in ("", stored, served_precision(stored)):
        return False
    if stored not in WIDE:
        return True
    if precision in WIDE:
        return engine == "trtllm"
    return not (precision == "fp8" and any(row.quantises for row in _rows(engine, accelerator) if not row.last))


def _rows(engine: str, accelerator: AcceleratorSpec) -> tuple[Support, ...]:
    architecture = accelerator.architecture
    vendor = accelerator.vendor
    if vendor in NEWEST and architecture not in _shipped_architectures():
        architecture = NEWEST[vendor]
    return _rows_of(engine, accelerator.id, f"{vendor} {architecture} ")


@cache
def _rows_of(engine: str, accelerator_id: str, family: str) -> tuple[Support, ...]:
    own = [(row, name) for row in SUPPORT if row.engine == engine for name in row.families]
    by_id = tuple(row for row, name in own if name == accelerator_id)
    return by_id or tuple(row for row, name in own if not name or family.startswith(f"{name} "))


def _is_later(version: str, last: str) -> bool:
    if not _VERSION.match(version.strip()):
        return False
    numbers = [int(n) for n in _NUMBER.findall(version)[: last.count(".") + 1]]
    return numbers > [int(n) for n in _NUMBER.findall(last)]


@cache
def _shipped_vendors() -> frozenset[str]:
    return frozenset(accelerator.vendor for accelerator in load_catalog().accelerators.values())


@cache
def _shipped_architectures() -> frozenset[str]:
    return frozenset(accelerator.architecture for accelerator in load_catalog().accelerators.values())
