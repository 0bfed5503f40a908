"""Kernel parameters of each row, looked up by the codes in its descriptors."""

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.engine.kernels.efficiency import (
    DecodeAttentionEfficiency,
    GemmEfficiency,
    LinkEfficiency,
    MoeEfficiency,
    PrefillAttentionEfficiency,
)
from roofcast.features.engine.kernels.kernel_coefficients import efficiency_of, family_of, shipped_coefficients
from roofcast.features.queries import FloatArray, Queries

PRECISIONS: Final = (
    "bf16", "fp8", "fp8_block", "int8", "fp4", "int4", "mxfp4", "mxfp4_weight", "int8_weight", "fp8_cache",
)  # fmt: skip
"""Kernel precisions, named as in `coefficients.efficiency_of`; descriptors hold their index."""


HYPOTHETICAL: Final = "~"
"""Separator in the id of a hypothetical accelerator between its parent's id and the changes, see
`roofcast.features.analysis.whatif`. Ids of the catalogue do not contain it."""

MAX_LAUNCH_S: Final = 4e-6
MAX_MOE_LAUNCH_S: Final = 30e-6
"""Upper bounds of the launch of a product and of a layer's experts. Engines replay a step as one graph; kernel tables
with longer launches were measured without one, or include work that serving engines fuse. The bound for experts was
chosen by the held-out errors of P3 and of InferenceMAX's rows."""

MAX_BANDWIDTH_RATIO: Final = 0.9
"""Upper bound of bandwidth ratios: when kernels are benchmarked, small weights stay in the cache between repeats. The
bound of experts is 1: routing is uneven, in the tables as in service, and touches fewer experts than the even draw
that the closed form assumes."""

MAX_IMBALANCE: Final = 0.25
"""Upper bound of the expert imbalance. The skew of the kernel tables (a power law of 1.2) is a stress test; 8 ** 0.25
is 1.7 times an even share."""


MEASURED_ENGINES: Final = ("trtllm", "sglang", "vllm")
"""Engines with kernel tables."""

OWN_REDUCE: Final = ("vllm", "sglang", "trtllm")
"""Engines with all-reduce kernels that read from all ranks at once; others use NCCL's ring."""

BUS_FAMILY: Final = "Ada Lovelace"
BUS_FAMILIES: Final = (BUS_FAMILY, "Blackwell workstation")
"""Families measured over the PCIe of a host; `BUS_FAMILY` is used for accelerators of other families on such a
bus."""


STAGED_RATIO: Final = 0.5
STAGED_STEP_S: Final = 5e-6
STAGED_CROWDING: Final = 0.5
"""Share of the bandwidth, additional latency of a step, and crowding of messages that are written to the memory of
the host and read from it (NCCL, ``transport/shm.cc``), each byte on two buses. Engines' own all-reduce kernels need
peer-to-peer access (vLLM, ``custom_all_reduce.py``). Latency and crowding are judgement. Crowding is an exponent: 0
for PCIe lanes, which each accelerator has to itself, and 1 for the memory of the host, which all share."""


@dataclass(frozen=True, slots=True)
class RowKernels:
    """Kernel parameters by row; fields hold arrays of shape (n_row,)."""

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
"""Parameter classes of the fields of `RowKernels`, in order."""

_ENDS: Final = tuple(np.cumsum([len(fields(kind)) for kind in _KINDS]))


@cache
def measured_hardware() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the accelerators and the architecture families with kernel offsets of their own, sorted."""
    kinds = shipped_coefficients().values()
    accelerators = {key for kind in kinds for key in kind.offset["accelerator"]}
    families = {key for kind in kinds for key in kind.offset["architecture"]}
    return tuple(sorted(accelerators)), tuple(sorted(families))


def hardware_codes(accelerator: str, architecture: str) -> tuple[float, float]:
    """Return the indices of an accelerator and its family in `measured_hardware`, or its lengths if not measured.

    A hypothetical accelerator has the kernels of its parent.

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


def kernels_by_row(d: Queries) -> RowKernels:
    """Return the kernel parameters of each row."""
    n_choice = [*_n_choice(), 2, 2, 2]
    codes = [d[column].astype(np.int64) for column in _CODES]
    codes.append((d["model.n_mla_layer"] > 0).astype(np.int64))
    codes.append((d["hardware.host_size"] > d["hardware.link_domain_size"]).astype(np.int64))
    codes.append((d["hardware.peer_to_peer"] < 0.5).astype(np.int64))
    inverse, distinct = pd.factorize(np.ravel_multi_index(codes, n_choice))
    combinations = zip(*(place.tolist() for place in np.unravel_index(distinct, n_choice)), strict=True)
    table = np.reshape([_parameters(key) for key in combinations], (len(distinct), _ENDS[-1])).T[:, inverse]
    ends = zip(_KINDS, (0, *_ENDS), _ENDS, strict=False)
    return RowKernels(*(kind(*table[start:end]) for kind, start, end in ends))


def _n_choice() -> list[int]:
    accelerators, families = measured_hardware()
    return [len(accelerators) + 1, len(families) + 1, *[len(PRECISIONS)] * 3, len(ENGINES)]


@cache
def _parameters(key: tuple[int, ...]) -> FloatArray:
    accelerator, family, dense, expert, attention, engine, is_mla, is_bus, is_staged = key
    accelerators, families = measured_hardware()
    accelerator_id, architecture = (*accelerators, "")[accelerator], (*families, "")[family]
    cache_precision = PRECISIONS[attention]
    dense_kernels, head, routed = (
        efficiency_of([accelerator_id], [architecture], [precision], [cache_precision], [ENGINES[engine]])
        for precision in (PRECISIONS[dense], "bf16", PRECISIONS[expert])
    )
    link_family = BUS_FAMILY if (is_bus or is_staged) and architecture not in BUS_FAMILIES else architecture
    links = efficiency_of([""], [link_family], ["bf16"], ["bf16"], [ENGINES[engine]])
    collectives = [
        links.all_reduce if ENGINES[engine] in OWN_REDUCE and not is_staged else links.nccl_all_reduce,
        links.all_gather,
        links.reduce_scatter,
        links.all_to_all,
    ]
    kernels = (
        _bound_launch(dense_kernels.gemm, MAX_LAUNCH_S),
        _bound_launch(head.gemm, MAX_LAUNCH_S),
        _bound_imbalance(_bound_launch(routed.moe, MAX_MOE_LAUNCH_S)),
        _bound_bandwidth(dense_kernels.mla_prefill if is_mla else dense_kernels.prefill_attention),
        _bound_bandwidth(dense_kernels.mla_decode if is_mla else dense_kernels.decode_attention),
        *(_staged(collective) if is_staged else collective for collective in collectives),
    )
    return np.array([getattr(kernel, f.name)[0] for kernel in kernels for f in fields(kernel)])


def _staged(efficiency: LinkEfficiency) -> LinkEfficiency:
    return replace(
        efficiency,
        step_s=efficiency.step_s + STAGED_STEP_S,
        bandwidth_ratio=STAGED_RATIO * efficiency.bandwidth_ratio,
        crowding=np.full_like(efficiency.crowding, STAGED_CROWDING),
    )


def _bound_launch(efficiency: Any, max_launch_s: float) -> Any:
    return _bound_bandwidth(replace(efficiency, launch_s=np.minimum(efficiency.launch_s, max_launch_s)))


def _bound_bandwidth(efficiency: Any) -> Any:
    highest = 1.0 if isinstance(efficiency, MoeEfficiency) else MAX_BANDWIDTH_RATIO
    return replace(efficiency, bandwidth_ratio=np.minimum(efficiency.bandwidth_ratio, highest))


def _bound_imbalance(efficiency: MoeEfficiency) -> MoeEfficiency:
    return replace(efficiency, imbalance=np.minimum(efficiency.imbalance, MAX_IMBALANCE))
