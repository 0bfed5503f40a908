"""Precisions: what a checkpoint is served in, which kernels multiply it, and the bytes of a weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.engine.kernels.row_kernels import PRECISIONS

FloatArray = npt.NDArray[np.float64]
Names = npt.NDArray[np.object_]

COMPUTE_PRECISIONS: Final[dict[str, tuple[str, ...]]] = {
    "fp32": ("tf32", "fp32", "bf16", "fp16"),
    "tf32": ("tf32", "bf16", "fp16", "fp32"),
    "bf16": ("bf16", "fp16", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "fp32"),
    "int8": ("int8", "bf16", "fp16", "fp32"),
    "fp4": ("fp4", "fp8", "bf16", "fp16", "fp32"),
    "int4": ("bf16", "fp16", "fp32"),
}
"""Precision computed in, by precision of the weights: the first that the accelerator has. Four-bit integer
weights are unpacked to sixteen bits before they are multiplied."""

COMPUTED_IN: Final = {"fp8_block": "fp8", "mxfp4": "fp8", "mxfp4_weight": "int4", "int8_weight": "int4"}
"""Precision whose peak the kernels of another are held against."""

FOUR_BIT: Final = ("fp4", "int4", "mxfp4", "mxfp4_weight")

WEIGHT_BYTE: Final = {
    "fp8": 1.0, "fp8_block": 1.0, "int8": 1.0, "int8_weight": 1.0, "fp4": 0.5625, "int4": 0.53125,
    "mxfp4": 0.53125, "mxfp4_weight": 0.53125,
}  # fmt: skip
"""Bytes of one weight with its share of a scale, two if not named: in NVFP4 one byte for 16 values, in MXFP4 one for
32, in INT4 two for 64.

References
----------
Open Compute Project, "OCP Microscaling Formats (MX) Specification", v1.0, 2023; NVIDIA, "Introducing NVFP4 for
efficient and accurate low-precision inference", 2025.
"""

ACTIVATION_BYTE: Final = {"fp8": 1.0, "fp8_block": 1.0, "int8": 1.0, "fp4": 0.5625, "mxfp4": 1.0}
"""Bytes of one activation as it is multiplied, two if not named."""


def served_precision(checkpoint: str) -> str:
    """Return the precision in which an engine serves a checkpoint unless told otherwise.

    References
    ----------
    vLLM, option ``--dtype auto``: FP32 checkpoints are served in FP16, the others as they are.

    Examples
    --------
    >>> served_precision("fp32"), served_precision("bf16")
    ('fp16', 'bf16')
    """
    return "fp16" if checkpoint == "fp32" else checkpoint


def peak_flop_per_s(part: AcceleratorSpec, precision: str) -> float:
    """Return the dense peak at which weights of `precision` are multiplied on `part`."""
    peaks: dict[str, float] = {str(name): peak for name, peak in part.peak_flop_per_s.items()}
    held_against = COMPUTED_IN.get(precision, precision)
    return next(peaks[name] for name in COMPUTE_PRECISIONS[held_against] if name in peaks)


def kernel_precision(
    precision: Names, native: Names, is_moe: npt.NDArray[np.bool_], has: Mapping[str, npt.NDArray[np.bool_]]
) -> Names:
    """Return which kernels multiply the weights: names of `roofcast.features.engine.kernels.row_kernels.PRECISIONS`.

    Parameters
    ----------
    precision, native : shape (n_question,)
        Precision served, and that of the published checkpoint.
    is_moe : shape (n_question,)
    has
        By precision, whether the accelerator multiplies in it.

    Notes
    -----
    Mixtures of experts in FP8 are published with scales by block (DeepSeek-V3, Qwen3, MiniMax-M2, GLM). A model that
    is four-bit float by birth is MXFP4 (gpt-oss): its activations are FP8 where the part multiplies four bits, else
    its weights are unpacked to 16 bits. Eight bits that a part cannot multiply are weights alone.
    """
    chosen = precision.copy()
    chosen[~np.isin(precision.astype(str), ("fp8", "int8", "fp4", "int4"))] = "bf16"
    is_fp8, is_fp4 = precision == "fp8", precision == "fp4"
    chosen[is_fp8 & is_moe] = "fp8_block"
    chosen[(is_fp8 & ~has["fp8"]) | ((precision == "int8") & ~has["int8"])] = "int8_weight"
    chosen[is_fp4 & (native == "fp4")] = "mxfp4"
    chosen[is_fp4 & ~has["fp4"]] = "mxfp4_weight"
    return chosen


def outside_precision(kernel: Names, is_moe: npt.NDArray[np.bool_]) -> Names:
    """Return the kernels of the weights outside the experts.

    Notes
    -----
    Four-bit checkpoints of mixtures of experts keep attention, shared layers and head in 16 bits: gpt-oss (MXFP4
    experts, `modules_to_not_convert` in its config), Kimi-K2.5 (INT4 experts, `ignore`), NVIDIA's NVFP4 copies of
    DeepSeek-R1 (`exclude_modules` in hf_quant_config.json).
    """
    outside: Names = np.where(is_moe & np.isin(kernel.astype(str), FOUR_BIT), "bf16", kernel)
    return outside


def default_kv_precision(engine: Names, precision: Names) -> Names:
    """Return the precision of the cache where nothing is said.

    Notes
    -----
    16 bits, but for TensorRT-LLM on weights of eight or four bits: the checkpoints that NVIDIA's Model Optimizer
    writes name FP8 in `kv_cache_quant_algo`, and the engine obeys.
    """
    is_quantised = np.isin(precision.astype(str), ("fp8", "fp4")) & (engine.astype(str) == "trtllm")
    chosen: Names = np.where(is_quantised, "fp8", "fp16").astype(object)
    return chosen


def precision_codes(kernel: Names) -> FloatArray:
    """Return the places of kernels' precisions in `PRECISIONS`: shape (n_question,)."""
    codes, names = pd.factorize(kernel)
    return np.array([PRECISIONS.index(name) for name in names], dtype=float)[codes]


def bytes_per_element(kernel: Names, table: Mapping[str, float]) -> FloatArray:
    """Return what `table` says of each kernel's precision, two bytes if nothing: shape (n_question,)."""
    codes, names = pd.factorize(kernel)
    return np.array([table.get(name, 2.0) for name in names], dtype=float)[codes]
