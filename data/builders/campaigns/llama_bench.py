"""Figures of llama.cpp's tools: time of a prompt, time of a token, and precision of a GGUF file by its name."""

from __future__ import annotations

import re
from typing import Final

from builders.recipe import Row
from roofcast.data.specs import PRECISIONS

_FLOATS: Final = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "MXFP4": "fp4", "NVFP4": "fp4", "TQ1_0": "int1"}
_QUANTISATION: Final = re.compile(
    r"(?:^|[-._ ])(?:UD-|i1-)?(I?Q(\d)(?:_\w+)?|TQ1_0|MXFP4|NVFP4|BF16|F16|F32)(?=$|[-._ ])"
)


def gguf_precision(name: str) -> str:
    """Return the precision of most weights of a GGUF file, from the quantisation in its name; blank without one.

    The number of bits of a block format counts without its scales.

    Examples
    --------
    >>> [gguf_precision(name) for name in ("UD-Q4_K_XL", "llama-2-7b.Q8_0", "gpt-oss-20b-F16", "Qwen3")]
    ['int4', 'int8', 'fp16', '']
    """
    match = _QUANTISATION.search(name)
    if match is None:
        return ""
    return f"int{match[2]}" if match[2] else _FLOATS[match[1]]


def precision_cells(precision: str) -> dict[str, str]:
    """Return the cells ``precision`` and, if the measurement table cannot hold it, ``unknown``: why."""
    unknown = "" if precision in PRECISIONS else precision or "the quantisation is not stated"
    return {"precision": precision, "unknown": unknown}


def prompt_row(n_token: float, token_per_s: float) -> Row:
    """Return the cells of a prompt that is processed at a published speed; one token is generated after it."""
    return {"n_input_token": n_token, "n_output_token": 1, "ttft_s": n_token / token_per_s}


def generation_row(n_token: float, token_per_s: float) -> Row:
    """Return the cells of a generation at a published speed that starts from one token."""
    return {"n_input_token": 1, "n_output_token": n_token, "tpot_s": 1 / token_per_s}
