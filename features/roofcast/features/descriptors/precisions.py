"""Precisions: what a checkpoint is served in, the kernels that compute it, and bytes per element."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import AcceleratorSpec
from roofcast.features.engine.kernels.row_kernels import PRECISIONS
from roofcast.features.queries import BoolArray, FloatArray

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
"""Compute precisions by weight precision, in order of preference: the first that the accelerator supports is used.
Four-bit integer weights are unpacked to 16 bits."""

PEAK_PRECISION: Final = {"fp8_block": "fp8", "mxfp4": "fp8", "mxfp4_weight": "int4", "int8_weight": "int4"}
"""Precision whose data-sheet peak applies to a kernel precision that has no peak of its own."""

_CODE: Final = {name: float(code) for code, name in enumerate(PRECISIONS)}

FOUR_BIT: Final = ("fp4", "int4", "mxfp4", "mxfp4_weight")

WEIGHT_BYTE: Final = {
    "fp8": 1.0, "fp8_block": 1.0, "int8": 1.0, "int8_weight": 1.0, "fp4": 0.5625, "int4": 0.53125,
    "mxfp4": 0.53125, "mxfp4_weight": 0.53125,
}  # fmt: skip
"""Bytes of one weight including its share of a scale; 2 if absent. A scale takes one byte for 16 values in NVFP4, one
for 32 in MXFP4, two for 64 in INT4.

References
----------
Open Compute Project, "OCP Microscaling Formats (MX) Specification", v1.0, 2023; NVIDIA, "Introducing NVFP4 for
efficient and accurate low-precision inference", 2025.
"""

EXPERT_BYTE: Final = 0.5625
"""Bytes of a weight of experts that are published in four-bit integers: `quantization_config` of Kimi-K2-Thinking has
groups of 32."""

ACTIVATION_BYTE: Final = {"fp8": 1.0, "fp8_block": 1.0, "int8": 1.0, "fp4": 0.5625, "mxfp4": 1.0}
"""Bytes of one activation as an operand of a product; 2 if absent."""


GGUF_BYTE: Final = {"int4": 0.6, "int8": 1.0625}
GGUF_HEAD_BYTE: Final = {"int4": 0.82, "int8": 1.0625}
"""Bytes of one weight, and the least of one of the output head, of the usual checkpoints of llama.cpp: Q4_K_M (4.89
bits with embedding and head, 4.8 without) with a head in Q6_K (6.56 bits), and Q8_0 (8.5 bits).

References
----------
llama.cpp, ``tools/quantize/README.md``: bits per weight of Llama-3.1-8B.
"""


def served_precision(checkpoint: str) -> str:
    """Return the precision in which engines serve a checkpoint by default.

    References
    ----------
    vLLM, option ``--dtype auto``: FP32 checkpoints are served in FP16, the others as they are.

    Examples
    --------
    >>> served_precision("fp32"), served_precision("bf16")
    ('fp16', 'bf16')
    """
    return "fp16" if checkpoint == "fp32" else checkpoint


def peak_flop_per_s(accelerator: AcceleratorSpec, precision: str) -> float:
    """Return the dense peak at which weights of `precision` are multiplied on `accelerator`."""
    peaks: dict[str, float] = {str(name): peak for name, peak in accelerator.peak_flop_per_s.items()}
    peak_precision = PEAK_PRECISION.get(precision, precision)
    return next(peaks[name] for name in COMPUTE_PRECISIONS[peak_precision] if name in peaks)


def kernel_precision(precision: Names, native: Names, is_moe: BoolArray, has: Mapping[str, BoolArray]) -> Names:
    """Return the kernel precision of each row: a name in `roofcast.features.engine.kernels.row_kernels.PRECISIONS`.

    - `precision`, `native`: shape (n_row,). Served precision, and the precision of the published checkpoint.
    - `is_moe`: shape (n_row,)
    - `has`: Whether the accelerator computes in a precision, by precision.

    Notes
    -----
    Mixtures of experts in FP8 are published with block scales (DeepSeek-V3, Qwen3, MiniMax-M2, GLM). A model
    published in four-bit floats is MXFP4 (gpt-oss): activations are FP8 where the accelerator computes in four bits;
    otherwise weights are unpacked to 16 bits. Eight-bit precisions that the accelerator does not support are
    weight-only.
    """
    chosen = precision.copy()
    chosen[~np.isin(precision.astype(str), ("fp8", "int8", "fp4", "int4"))] = "bf16"
    is_fp8, is_fp4 = precision == "fp8", precision == "fp4"
    chosen[is_fp8 & is_moe] = "fp8_block"
    chosen[(is_fp8 & ~has["fp8"]) | ((precision == "int8") & ~has["int8"])] = "int8_weight"
    chosen[is_fp4 & (native == "fp4")] = "mxfp4"
    chosen[is_fp4 & ~has["fp4"]] = "mxfp4_weight"
    return chosen


def computed_precision(kernel: Names, on_int8: BoolArray) -> Names:
    """Return the precision whose peak products reach: int8 for quantised weights where `on_int8`, else the kernel's.

    References
    ----------
    llama.cpp, ``ggml/src/ggml-cuda/mmq.cu``: weights of four to eight bits, MXFP4's too, are multiplied with
    activations quantised to int8, on the tensor cores of NVIDIA from Turing on.

    Examples
    --------
    >>> kernel = np.array(["int4", "mxfp4_weight", "bf16", "int4"], dtype=object)
    >>> computed_precision(kernel, np.array([True, True, True, False])).tolist()
    ['int8', 'int8', 'bf16', 'int4']
    """
    return np.where(on_int8 & (kernel != "bf16"), "int8", kernel)


def outside_precision(
    kernel: Names,
    native: Names,
    is_moe: BoolArray,
    is_whole: BoolArray,
    has_fp8: BoolArray,
) -> Names:
    """Return the kernel precision of the weights outside the experts.

    `kernel`, `native` and `is_moe`: shape (n_row,): kernel precision of the experts, precision of the published
    checkpoint, and whether there are experts. `is_whole` and `has_fp8`: shape (n_row,): whether the engine's
    checkpoints are quantised whole, and whether the accelerator computes in FP8.

    Notes
    -----
    Four-bit checkpoints of mixtures of experts keep attention, shared layers and head in 16 bits: gpt-oss (MXFP4
    experts, `modules_to_not_convert` in its config), Kimi-K2.5 (INT4 experts, `ignore`), NVIDIA's NVFP4 copies of
    DeepSeek-R1 (`exclude_modules` in hf_quant_config.json). INT4 copies of models published in FP8 keep 8 bits there
    (W4A8 and W4AFP8 of DeepSeek-R1). GGUF and MLX quantise every matrix to four-bit integers; beside MXFP4 experts
    GGUF keeps Q8_0: llama-bench reports 11.27 GiB for the 20.91 billion weights of gpt-oss.
    """
    is_mixed = (
        is_moe & np.isin(kernel.astype(str), FOUR_BIT) & ~(is_whole & np.equal(kernel, "int4").astype(np.bool_))
    )
    eight = np.where(has_fp8, "fp8_block", "int8_weight")
    kept = np.where(np.equal(kernel, "int4") & np.equal(native, "fp8"), eight, "bf16")
    outside: Names = np.where(is_mixed, np.where(is_whole, "int8", kept), kernel).astype(object)
    return outside


def default_kv_precision(engine: Names, precision: Names) -> Names:
    """Return the default precision of the KV cache.

    Notes
    -----
    16 bits, except for TensorRT-LLM with weights of eight or four bits: checkpoints written by NVIDIA's Model
    Optimizer set `kv_cache_quant_algo` to FP8.
    """
    is_quantised = np.isin(precision.astype(str), ("fp8", "fp4")) & (engine.astype(str) == "trtllm")
    chosen: Names = np.where(is_quantised, "fp8", "fp16").astype(object)
    return chosen


def precision_codes(kernel: Names) -> FloatArray:
    """Return the index in `PRECISIONS` of each kernel precision: shape (n_row,)."""
    return np.array([_CODE[name] for name in kernel.tolist()], dtype=float)


def bytes_per_element(kernel: Names, table: Mapping[str, float]) -> FloatArray:
    """Return the bytes per element of each kernel precision from `table`, 2 if absent: shape (n_row,)."""
    return np.array([table.get(name, 2.0) for name in kernel.tolist()], dtype=float)
