"""The kernels' parameters of each question, from the codes that its descriptors hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.engine.kernels.coefficients import efficiency_of, family_of, shipped_coefficients
from roofcast.features.engine.kernels.efficiency import (
    DecodeAttentionEfficiency,
    FloatArray,
    GemmEfficiency,
    LinkEfficiency,
    MoeEfficiency,
    PrefillAttentionEfficiency,
)

Descriptors = Mapping[str, FloatArray]

PRECISIONS: Final = (
    "bf16", "fp8", "fp8_block", "int8", "fp4", "int4", "mxfp4", "mxfp4_weight", "int8_weight", "fp8_cache",
)  # fmt: skip
"""Precisions that kernels are told apart by, as `coefficients.efficiency_of` names them."""


HYPOTHETICAL: Final = "~"
"""In the id of a hypothetical accelerator, what parts that of its parent from what is said of it; see
`roofcast.features.analysis.whatif`. Real ids have none."""

LAUNCH_S: Final = 4e-6
MOE_LAUNCH_S: Final = 30e-6
"""Longest launch of a product and of a layer's experts. Engines replay a step as one graph; a table whose launches
are longer was timed without one, or with work that a serving engine fuses away. That of experts has no other reason
than the held-out errors of P3 and of InferenceMAX's rows, by which it was chosen."""

HIGHEST_BANDWIDTH: Final = 0.9
"""Share of the peak bandwidth that nothing exceeds: small weights of a table stay in the cache between repeats."""

HIGHEST_IMBALANCE: Final = 0.25
"""Exponent of the ranks by which the busiest has more tokens. The tables' skew (a power law of 1.2) is made for
stress; 8 ** 0.25 is 1.7 times an even share."""


MEASURED_ENGINES: Final = ("trtllm", "sglang", "vllm")
"""Engines whose kernels the tables hold."""

OWN_REDUCE: Final = ("vllm", "sglang", "trtllm")
"""Engines with kernels of their own for all-reduce, which read from all ranks at once; others call NCCL's ring."""

BUS_FAMILY: Final = "Ada Lovelace"
BUS_FAMILIES: Final = (BUS_FAMILY, "Blackwell workstation")
"""Families measured over the PCIe of a host; the first stands for parts of others on such a bus."""


@dataclass(frozen=True, slots=True)
class RowKernels:
    """Parameters of the kernels of each question; fields are arrays of shape (n_question,)."""

    dense: GemmEfficiency
    head: GemmEfficiency
    expert: MoeEfficiency
    prefill_attention: PrefillAttentionEfficiency
    decode_attention: DecodeAttentionEfficiency
    all_reduce: LinkEfficiency
    all_gather: LinkEfficiency
    reduce_scatter: LinkEfficiency
    all_to_all: LinkEfficiency


_CODES: Final = (
    "hardware.accelerator",
    "hardware.family",
    "config.dense_precision",
    "config.expert_precision",
    "config.attention_precision",
    "config.engine",
)
_KINDS: Final[tuple[type[Any], ...]] = (
    GemmEfficiency,
    GemmEfficiency,
    MoeEfficiency,
    PrefillAttentionEfficiency,
    DecodeAttentionEfficiency,
    *[LinkEfficiency] * 4,
)
"""Kinds of the fields of `RowKernels`, in their order."""

_ENDS: Final = tuple(np.cumsum([len(fields(kind)) for kind in _KINDS]))


@cache
def measured_hardware() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the accelerators and the families of architectures that have offsets of their own, in order."""
    kinds = shipped_coefficients().values()
    accelerators = {key for kind in kinds for key in kind.offset["accelerator"]}
    families = {key for kind in kinds for key in kind.offset["architecture"]}
    return tuple(sorted(accelerators)), tuple(sorted(families))


def hardware_codes(accelerator: str, architecture: str) -> tuple[float, float]:
    """Return the places of an accelerator and of its family in `parts`; their lengths if they have none.

    What only stands on paper has the kernels of the accelerator that it was made from.

    Examples
    --------
    >>> hardware_codes("nvidia-l40s-48gb~bandwidth=2", "Ada") == hardware_codes("nvidia-l40s-48gb", "Ada")
    True
    """
    accelerators, families = measured_hardware()
    parent = accelerator.partition(HYPOTHETICAL)[0]
    family = family_of(parent, architecture)
    own = accelerators.index(parent) if parent in accelerators else len(accelerators)
    return float(own), float(families.index(family) if family in families else len(families))


def kernels_by_row(d: Descriptors) -> RowKernels:
    """Return the parameters of each question's kernels."""
    choices = [*_choices(), 2, 2]
    places = [d[column].astype(np.int64) for column in _CODES]
    places.append((d["model.n_mla_layer"] > 0).astype(np.int64))
    places.append((d["hardware.host_size"] > d["hardware.link_domain_size"]).astype(np.int64))
    inverse, distinct = pd.factorize(np.ravel_multi_index(places, choices))
    found = zip(*(place.tolist() for place in np.unravel_index(distinct, choices)), strict=True)
    table = np.reshape([_parameters(key) for key in found], (len(distinct), _ENDS[-1]))
    columns = np.split(table.T[:, inverse], _ENDS[:-1])
    return RowKernels(*(kind(*parameters) for kind, parameters in zip(_KINDS, columns, strict=True)))


def _choices() -> list[int]:
    accelerators, families = measured_hardware()
    return [len(accelerators) + 1, len(families) + 1, *[len(PRECISIONS)] * 3, len(ENGINES)]


@cache
def _parameters(key: tuple[int, ...]) -> FloatArray:
    """Return the parameters of one combination of `_CODES`, MLA and PCIe: shape (n_parameter,)."""
    accelerator, family, dense, expert, attention, engine, is_mla, is_bus = key
    accelerators, families = measured_hardware()
    part, architecture = (*accelerators, "")[accelerator], (*families, "")[family]
    cache_precision = PRECISIONS[attention]
    outside, head, routed = (
        efficiency_of([part], [architecture], [precision], [cache_precision], [ENGINES[engine]])
        for precision in (PRECISIONS[dense], "bf16", PRECISIONS[expert])
    )
    on_bus = BUS_FAMILY if is_bus and architecture not in BUS_FAMILIES else architecture
    links = efficiency_of([part], [on_bus], ["bf16"], ["bf16"], [ENGINES[engine]])
    kernels = (
        _replayed(outside.gemm, LAUNCH_S),
        _replayed(head.gemm, LAUNCH_S),
        _balanced(_replayed(routed.moe, MOE_LAUNCH_S)),
        _bounded(outside.mla_prefill if is_mla else outside.prefill_attention),
        _bounded(outside.mla_decode if is_mla else outside.decode_attention),
        links.all_reduce if ENGINES[engine] in OWN_REDUCE else links.nccl_all_reduce,
        links.all_gather,
        links.reduce_scatter,
        links.all_to_all,
    )
    return np.array([getattr(kernel, f.name)[0] for kernel in kernels for f in fields(kernel)])


def _replayed(efficiency: Any, longest_s: float) -> Any:
    """Return the parameters of kernels replayed in a graph, launches back to back."""
    return _bounded(replace(efficiency, launch_s=np.minimum(efficiency.launch_s, longest_s)))


def _bounded(efficiency: Any) -> Any:
    return replace(efficiency, bandwidth_ratio=np.minimum(efficiency.bandwidth_ratio, HIGHEST_BANDWIDTH))


def _balanced(efficiency: MoeEfficiency) -> MoeEfficiency:
    """Return the parameters under served traffic: its routing is more even than the skew behind the tables."""
    return replace(efficiency, imbalance=np.minimum(efficiency.imbalance, HIGHEST_IMBALANCE))
