"""NVIDIA's names of precisions and training methods."""

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
"""Compute precision and scaling recipe by printed precision; one scale per tensor, block of 128, or block of 32."""

UNSTATED_PRECISION: Final = "FP8"
"""Precision of the tables of 2024 on H100 without a column of it, by the sentence above the tables."""

_METHODS: Final = (
    ("lora", "lora"),
    ("peft", "lora"),
    ("sft", "full"),
    ("fine-tuning", "full"),
    ("finetuning", "full"),
)


def method_of(text: str) -> str:
    """Return the training method in a heading or cell; pretraining if there is none."""
    return next((method for word, method in _METHODS if word in text.casefold()), "pretrain")
