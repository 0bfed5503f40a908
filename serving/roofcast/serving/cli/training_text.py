"""Texts of training answers for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from roofcast.data.units import BYTE_PER_GB

WIDTH: Final = 80
INDENT: Final = "   "
MEMORY_PARTS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "reserve")


def job_text(answer: Mapping[str, Any], level: float) -> str:
    """Return the answer of one job in lines of up to 80 characters."""
    return "\n".join(_job(answer, level)) + "\n"


def _job(answer: Mapping[str, Any], level: float) -> Iterator[str]:
    plan = {name.removeprefix("plan_"): value for name, value in answer.items() if name.startswith("plan_")}
    yield fold(f"{plan['framework']}: {plan_text(plan)}", "")
    for name, unit, scale in (
        ("step_time_s", "s a step", 1.0), ("throughput_token_per_s", "tokens/s", 1.0), ("mfu_ratio", "MFU", 1.0),
        ("peak_memory_byte", "GB peak memory", BYTE_PER_GB),
    ):  # fmt: skip
        low, value, high = (format_number(answer[f"{name}{end}"] / scale) for end in ("_lo", "", "_hi"))
        yield fold(f"{value} {unit} ({low} to {high}, with probability {level:g})")
    yield fold(memory_text(answer, answer["p_fits"]))
    yield fold(f"{format_number(answer['power_w'])} W drawn by all accelerators, without their hosts")
    if answer["outside"]:
        yield fold("extrapolates: far from every run that was measured")
    if answer["reason"]:
        yield fold(answer["reason"])


def plan_text(plan: Mapping[str, Any]) -> str:
    """Return a plan in short.

    Examples
    --------
    >>> plan = {"tp": 2, "pp": 1, "vp": 1, "cp": 1, "dp": 4, "ep": 1, "sharding": "zero1", "recomputation": "none",
    ...         "n_micro_batch_sequence": 2.0, "n_gradient_accumulation": 16.0}
    >>> plan_text(plan)
    'tp2 dp4 zero1, micro-batch 2 x 16, recomputation none'
    """
    degrees = [f"{name}{plan[name]:g}" for name in ("tp", "pp", "vp", "cp", "ep", "dp") if plan[name] > 1]
    split = " ".join([*degrees, plan["sharding"]])
    batch = f"micro-batch {plan['n_micro_batch_sequence']:g} x {plan['n_gradient_accumulation']:g}"
    return f"{split}, {batch}, recomputation {plan['recomputation']}"


def memory_text(answer: Mapping[str, Any], p_fits: float) -> str:
    """Return the estimated memory by part, the capacity and P(fits)."""
    parts = {name: answer[f"memory_{name}_byte"] / BYTE_PER_GB for name in MEMORY_PARTS}
    listed = ", ".join(f"{name} {value:.1f}" for name, value in parts.items() if value >= 0.05)
    capacity = answer["memory_capacity_byte"] / BYTE_PER_GB
    return f"memory in GB: {listed}; of {capacity:.1f}, fits with probability {p_fits:.2f}"


def format_number(value: float) -> str:
    """Return a number in three digits.

    Examples
    --------
    >>> format_number(9820.4), format_number(0.0720), format_number(1234567.0)
    ('9,820', '0.072', '1,234,567')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def fold(text: str, indent: str = INDENT) -> str:
    """Return a text in lines of up to 80 characters."""
    return "\n".join(
        textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent or INDENT, break_on_hyphens=False)
    )
