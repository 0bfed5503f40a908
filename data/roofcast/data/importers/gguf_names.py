"""Names of GGUF files: the model's name, and the precision of most of its weights."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FLOATS: Final = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "MXFP4": "fp4", "NVFP4": "fp4", "TQ1_0": "int1"}
_QUANTISATION: Final = re.compile(
    r"(?:^|[-._ ])(?:UD-|i1-)?((I?Q([1-8])(?:_[A-Z0-9]+)*)|TQ1_0|MXFP4|NVFP4|BF16|F16|F32)(?=$|[-._ ])",
    re.I | re.ASCII,
)
_SHARD: Final = re.compile(r"-[0-9]{5}-of-[0-9]{5}$", re.ASCII)


class GgufName(NamedTuple):
    """Parts of a GGUF file's name; blank where it does not have them."""

    model: str
    quantisation: str
    precision: str


def parse_gguf_name(name: str) -> GgufName:
    """Return the parts of a file's name, of its path, or of a description such as llama.cpp's ``model_type``.

    The number of bits of a block format counts without its scales. What is left of the name after the quantisation is
    taken off is the model's name only in a file's name.

    Examples
    --------
    >>> parse_gguf_name("models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf")
    GgufName(model='Meta-Llama-3.1-8B-Instruct', quantisation='Q4_K_M', precision='int4')
    >>> [parse_gguf_name(name).precision for name in ("UD-Q4_K_XL", "llama-2-7b.Q8_0", "gpt-oss-20b-F16", "Qwen3")]
    ['int4', 'int8', 'fp16', '']
    """
    stem = _SHARD.sub("", re.sub(r"\.gguf$", "", re.split(r"[/\\]", name.strip())[-1], flags=re.I))
    match = _QUANTISATION.search(stem)
    if match is None:
        return GgufName(stem, "", "")
    kind = match[1].upper()
    return GgufName(stem[: match.start()].rstrip("-._ "), kind, f"int{match[3]}" if match[3] else _FLOATS[kind])
