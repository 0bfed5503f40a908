"""Precisions of the tables: catalogue name, bytes, and compute peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd

from roofcast.data.catalog import load_catalog


@dataclass(frozen=True, slots=True)
class TablePrecision:
    """Precision of the tables: catalogue name, bytes per weight (with scales) and activation, compute precision."""

    name: str
    weight_byte: float
    activation_byte: float
    computed_in: str


PEAKS: Final = {
    "bf16": ("bf16", "fp16"),
    "int8": ("int8", "bf16", "fp16"),
    "fp8": ("fp8", "bf16", "fp16"),
    "fp4": ("fp4", "fp8", "bf16", "fp16"),
}
"""Peaks by compute precision; the first that the accelerator has is used."""

PRECISIONS: Final = {
    "bfloat16": TablePrecision("bf16", 2.0, 2.0, "bf16"),
    "fp8": TablePrecision("fp8", 1.0, 1.0, "fp8"),
    "fp8_block": TablePrecision("fp8_block", 1.0, 1.0, "fp8"),
    "sq": TablePrecision("int8", 1.0, 1.0, "int8"),
    "int8_wo": TablePrecision("int8_weight", 1.0, 2.0, "bf16"),
    "int4_wo": TablePrecision("int4", 0.53125, 2.0, "bf16"),
    "nvfp4": TablePrecision("fp4", 0.5625, 0.5625, "fp4"),
    "w4a16_mxfp4": TablePrecision("mxfp4_weight", 0.53125, 2.0, "bf16"),
    "w4a8_mxfp4_mxfp8": TablePrecision("mxfp4", 0.53125, 1.0, "fp8"),
    "w4afp8": TablePrecision("int4_fp8", 0.53125, 1.0, "fp8"),
}
"""Precision by name in the tables; 16 or 32 four-bit weights share a one-byte scale."""

CACHE: Final = {"bfloat16": 2.0, "fp8": 1.0}
"""Bytes per cached element."""


def peak_flop_per_s(accelerators: pd.Series[str], computed_in: pd.Series[str]) -> pd.Series[float]:
    """Return the peak of each accelerator at the compute precision; see `PEAKS`."""
    catalog = load_catalog()

    def first(accelerator: str, precision: str) -> float:
        known: dict[str, float] = {str(n): v for n, v in catalog.accelerator(accelerator).peak_flop_per_s.items()}
        return next(known[name] for name in PEAKS[precision] if name in known)

    pairs = accelerators + "|" + computed_in
    return pairs.map({str(pair): first(*str(pair).split("|")) for pair in set(pairs)})


def bandwidth_byte_per_s(accelerators: pd.Series[str]) -> pd.Series[float]:
    """Return the data-sheet bandwidth of each accelerator's memory."""
    return _spec_values(accelerators, "bandwidth_byte_per_s")


def l2_byte(accelerators: pd.Series[str]) -> pd.Series[float]:
    """Return the L2 cache size of each accelerator."""
    return _spec_values(accelerators, "l2_byte")


def link_byte_per_s(accelerators: pd.Series[str]) -> pd.Series[float]:
    """Return the data-sheet bandwidth of each accelerator's links, both directions together."""
    return _spec_values(accelerators, "link_bandwidth_byte_per_s")


def _spec_values(accelerators: pd.Series[str], field: str) -> pd.Series[float]:
    catalog = load_catalog()
    return accelerators.map({name: getattr(catalog.accelerator(name), field) for name in set(accelerators)})


def attention_precision(table: pd.DataFrame, computed: str) -> pd.Series[str]:
    """Return the precision of attention: ``bf16``, ``fp8_cache`` or ``fp8``.

    `table`: with `kv_cache_dtype` and the column `computed`. `computed`: column of the compute precision.
    """
    cached = table["kv_cache_dtype"].map({"bfloat16": "bf16", "fp8": "fp8_cache"})
    return cached.mask(table[computed] == "fp8", "fp8")
