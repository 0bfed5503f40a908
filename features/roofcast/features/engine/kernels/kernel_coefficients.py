"""Kernel coefficients: typical values, and offsets by architecture, accelerator, precision and engine."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.engine.kernels.efficiency import (
    DecodeAttentionEfficiency,
    GemmEfficiency,
    LinkEfficiency,
    MoeEfficiency,
    PrefillAttentionEfficiency,
)
from roofcast.features.queries import FloatArray, IndexArray

FACTORS: Final = ("architecture", "accelerator", "precision", "engine")
"""Factors that a parameter may depend on."""

LEVELS: Final = (
    ("architecture",),
    ("accelerator",),
    ("precision",),
    ("engine",),
    ("architecture", "precision"),
    ("engine", "precision"),
)
"""Combinations of factors with offsets of their own, which add up in logarithms; unmeasured ones have none."""

KINDS: Final[dict[str, type[Any]]] = {
    "gemm": GemmEfficiency,
    "prefill_attention": PrefillAttentionEfficiency,
    "decode_attention": DecodeAttentionEfficiency,
    "mla_prefill": PrefillAttentionEfficiency,
    "mla_decode": DecodeAttentionEfficiency,
    "moe": MoeEfficiency,
    "all_reduce": LinkEfficiency,
    "nccl_all_reduce": LinkEfficiency,
    "all_gather": LinkEfficiency,
    "reduce_scatter": LinkEfficiency,
    "all_to_all": LinkEfficiency,
}
"""Parameter classes by kind of kernel."""

FALLBACK_PRECISION: Final = {
    "fp16": "bf16", "fp32": "bf16", "tf32": "bf16", "int8": "fp8", "fp8_block": "fp8", "mxfp4": "fp4", "fp4": "fp8",
    "mxfp4_weight": "int4", "int8_weight": "int4", "fp8_cache": "fp8", "fp8": "bf16", "int4": "bf16",
}  # fmt: skip
"""Fallback precision for offsets that were not measured; a chain that ends in bf16."""


@dataclass(frozen=True, slots=True)
class KernelCoefficients:
    """Fitted parameters of one kind of kernel as natural logarithms.

    `typical`: shape (n_parameter,): in the order of the fields of the parameter class. `offset`: by level such as
    ``architecture+precision`` and key such as ``Hopper+fp8``: shape (n_parameter,).
    """

    typical: FloatArray
    offset: Mapping[str, Mapping[str, FloatArray]]

    def log_values(self, factors: Mapping[str, str]) -> FloatArray:
        """Return the logarithms of the parameters for a value of each of `FACTORS`."""
        known = dict(factors)
        while known["precision"] not in self.offset["precision"] and known["precision"] in FALLBACK_PRECISION:
            known["precision"] = FALLBACK_PRECISION[known["precision"]]
        total = self.typical.copy()
        for level in LEVELS:
            total += self.offset["+".join(level)].get("+".join(known[factor] for factor in level), 0.0)
        return total


@dataclass(frozen=True, slots=True)
class KernelEfficiency:
    """Parameters of all kinds of kernels; each an array of shape (n_row,)."""

    gemm: GemmEfficiency
    prefill_attention: PrefillAttentionEfficiency
    decode_attention: DecodeAttentionEfficiency
    mla_prefill: PrefillAttentionEfficiency
    mla_decode: DecodeAttentionEfficiency
    moe: MoeEfficiency
    all_reduce: LinkEfficiency
    nccl_all_reduce: LinkEfficiency
    all_gather: LinkEfficiency
    reduce_scatter: LinkEfficiency
    all_to_all: LinkEfficiency


def family_of(accelerator: str, architecture: str) -> str:
    """Return the architecture family that selects an accelerator's kernels.

    Data-centre Blackwell has other matrix units than workstation and edge Blackwell.

    Examples
    --------
    >>> family_of("nvidia-gb300", "Blackwell Ultra"), family_of("nvidia-rtx-5090-32gb", "Blackwell")
    ('Blackwell', 'Blackwell workstation')
    """
    if not architecture.startswith("Blackwell"):
        return architecture
    is_data_centre = accelerator.removeprefix("nvidia-").removeprefix("g").startswith(("b200", "b300"))
    return "Blackwell" if is_data_centre else "Blackwell workstation"


def efficiency_of(
    accelerator: Sequence[str],
    family: Sequence[str],
    precision: Sequence[str],
    attention_precision: Sequence[str],
    engine: Sequence[str],
) -> KernelEfficiency:
    """Return the parameters of all kinds of kernels for each row, from the shipped coefficients.

    - `accelerator`, `family`: shape (n_row,). Catalogue id and its `family_of`. An accelerator without measured
      kernels gets its family's mean, an unmeasured family the typical values.
    - `precision`: shape (n_row,). Precision of the products with weights: one of the specs, or ``fp8_block``,
      ``mxfp4`` (four-bit weights, FP8 activations), ``mxfp4_weight`` (16-bit activations), ``int8_weight``.
    - `attention_precision`: shape (n_row,). ``bf16``, ``fp8_cache`` (FP8 cache, 16-bit computation) or ``fp8``.
    - `engine`: shape (n_row,). ``trtllm``, ``sglang``, ``vllm``; others get the typical values.
    """
    columns = [np.asarray(c, dtype=object) for c in (accelerator, family, precision, attention_precision, engine)]
    first, inverse = _distinct(columns)
    values: dict[str, Any] = {}
    for kind, cls in KINDS.items():
        table = shipped_coefficients()[kind]
        own = columns[2] if kind in {"gemm", "moe"} else columns[3]
        rows = [
            table.log_values(
                {
                    "accelerator": columns[0][i],
                    "architecture": columns[1][i],
                    "precision": own[i],
                    "engine": columns[4][i],
                }
            )
            for i in first
        ]
        gathered = np.exp(np.reshape(rows, (len(rows), len(fields(cls)))))[inverse]
        values[kind] = cls(*gathered.T.copy())
    return KernelEfficiency(**values)


def _distinct(columns: Sequence[npt.NDArray[np.object_]]) -> tuple[IndexArray, IndexArray]:
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes, names = pd.factorize(column)
        code = code * (len(names) + 1) + codes
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return first, inverse


@cache
def shipped_coefficients() -> dict[str, KernelCoefficients]:
    """Return the shipped coefficients by kind of kernel."""
    text = (
        resources.files("roofcast.features.engine").joinpath("kernel_coefficients.json").read_text(encoding="utf-8")
    )
    return parse_coefficients(json.loads(text))


def parse_coefficients(document: Mapping[str, Any]) -> dict[str, KernelCoefficients]:
    """Return the coefficients in a document of `research.kernels.fit` by kind of kernel."""
    parsed = {}
    for kind, cls in KINDS.items():
        entry = document["kernels"][kind]
        names = [field.name for field in fields(cls)]
        typical = np.log([entry["typical"][name] for name in names])
        offset = {
            level: {key: np.array([row[name] for name in names], dtype=float) for key, row in keys.items()}
            for level, keys in entry["log_offset"].items()
        }
        parsed[kind] = KernelCoefficients(typical, offset)
    return parsed
