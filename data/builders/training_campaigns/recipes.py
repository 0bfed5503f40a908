"""What NVIDIA's pages call precisions and methods."""

from __future__ import annotations

from typing import Final

RECIPES: Final = {
    "BF16": ("bf16", ""),
    "FP8": ("fp8", ""),
    "FP8-CS": ("fp8", "fp8-tensor"),
    "FP8-MX": ("fp8", "mxfp8"),
    "MXFP8": ("fp8", "mxfp8"),
    "FP8-SC": ("fp8", "fp8-block"),
    "NVFP4": ("fp4", "nvfp4"),
}
"""Precision as printed to that of the multiplications and the scaling: one scale a tensor, a block of 128, of 32."""

_METHODS: Final = (
    ("lora", "lora"),
    ("peft", "lora"),
    ("sft", "full"),
    ("fine-tuning", "full"),
    ("finetuning", "full"),
)


def method_of(text: str) -> str:
    """Return the method that a heading or a cell names; pretraining if it names none."""
    return next((method for word, method in _METHODS if word in text.casefold()), "pretrain")
