"""Names of precisions that people and tools write: formats, and quantisations of files."""

import re
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator

from roofcast.data.specs import PRECISIONS, Precision

NAMES: Final = {
    "float32": "fp32", "f32": "fp32", "float": "fp32", "float16": "fp16", "f16": "fp16", "half": "fp16",
    "bfloat16": "bf16", "float8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "mxfp8": "fp8", "float4": "fp4", "nvfp4": "fp4", "mxfp4": "fp4", "nf4": "int4", "awq": "int4", "gptq": "int4",
    "gguf": "int4", "bnb": "int4", "q4": "int4", "q8": "int8", "8bit": "int8", "4bit": "int4", "w8": "int8",
    "w4": "int4",
}  # fmt: skip
"""Precision by another name, in lower case: AWQ, GPTQ and bitsandbytes have four bits as they are published most,
GGUF is Q4_K_M where its quantisation is not named, as in llama.cpp and Ollama."""

_FLOATS: Final = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "MXFP4": "fp4", "NVFP4": "fp4", "TQ1_0": "int1"}
_QUANTISATION: Final = re.compile(
    r"(?:^|[-._ :])(?:UD-|i1-)?((I?Q([1-8])(?:_[A-Z0-9]+)*)|TQ1_0|MXFP4|NVFP4|BF16|F16|F32)(?=$|[-._ ])",
    re.I | re.ASCII,
)
_SUFFIX: Final = re.compile(
    r"[-_.: ]+(gguf|awq|gptq|bnb|mlx|dynamic|quantized|(?:nv|mx)?fp[48]|int[48]|[bf][fp]?16|[48]bit|w[48]a(?:16|8))$",
    re.I | re.ASCII,
)
_WEIGHTS: Final = re.compile(
    r"w([48])a[0-9]{1,2}.*|.*\b([48])[- ]?bits?|(?:.*\b)?int([48])\b.*|(?:fp|float)([48])[_ -].*"
)
_SHARD: Final = re.compile(r"-[0-9]{5}-of-[0-9]{5}$", re.ASCII)
MAX_LENGTH: Final = 200


PrecisionName = Annotated[
    Precision, BeforeValidator(lambda name: (parse_precision(name) or name) if isinstance(name, str) else name)
]
"""A precision by any of its names, in a request."""


class QuantisedName(NamedTuple):
    """Parts of the name of a quantised copy; blank where it does not have them."""

    model: str
    quantisation: str
    precision: str


def parse_precision(name: str) -> str:
    """Return the precision that a name means; blank if it means none of `PRECISIONS`.

    Examples
    --------
    >>> [parse_precision(name) for name in ("Q4_K_M", "q4", "AWQ", "bfloat16", "W8A8", "mxfp8", "nvfp4", "brain")]
    ['int4', 'int4', 'int4', 'bf16', 'int8', 'fp8', 'fp4', '']
    """
    plain = name.strip().lower()
    if plain in PRECISIONS or plain in NAMES or len(plain) > MAX_LENGTH:
        return plain if plain in PRECISIONS else NAMES.get(plain, "")
    if "nvfp4" in plain or "mxfp4" in plain:
        return "fp4"
    match = _WEIGHTS.fullmatch(plain)
    bits = next(filter(None, match.groups()), "") if match else ""
    found = f"{'fp' if match and match[4] else 'int'}{bits}" if bits else parse_gguf_name(plain).precision
    return found if found in PRECISIONS else ""


def parse_gguf_name(name: str) -> QuantisedName:
    """Return the parts of a file's name, of its path, or of a description such as llama.cpp's ``model_type``.

    The number of bits of a block format counts without its scales. What is left of the name after the quantisation is
    taken off is the model's name only in a file's name.

    Examples
    --------
    >>> parse_gguf_name("models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf")
    QuantisedName(model='Meta-Llama-3.1-8B-Instruct', quantisation='Q4_K_M', precision='int4')
    >>> [parse_gguf_name(name).precision for name in ("UD-Q4_K_XL", "llama-2-7b.Q8_0", "gpt-oss-20b-F16", "Qwen3")]
    ['int4', 'int8', 'fp16', '']
    """
    stem = _SHARD.sub("", re.sub(r"\.gguf$", "", re.split(r"[/\\]", name.strip())[-1], flags=re.I))
    match = _QUANTISATION.search(stem)
    if match is None:
        return QuantisedName(stem, "", "")
    kind = match[1].upper()
    precision = f"int{match[3]}" if match[3] else _FLOATS[kind]
    return QuantisedName(stem[: match.start()].rstrip("-._ :"), kind, precision)


def split_copy_name(name: str) -> QuantisedName:
    """Return the model that a quantised copy's name is of, without the owner of the copy; the name itself of another.

    Examples
    --------
    >>> split_copy_name("unsloth/Llama-3.3-70B-Instruct-GGUF"), split_copy_name("Qwen/Qwen3-32B")[0]
    (QuantisedName(model='Llama-3.3-70B-Instruct', quantisation='GGUF', precision='int4'), 'Qwen/Qwen3-32B')
    """
    tail = name.strip()[:MAX_LENGTH].rpartition("/")[2]
    file = parse_gguf_name(tail)
    rest, kinds = (file.model, [file.quantisation]) if file.quantisation else (tail, [])
    while match := _SUFFIX.search(rest):
        rest, kinds = rest[: match.start()], [*kinds, match[1].upper()]
    if not kinds or not rest:
        return QuantisedName(name, "", "")
    precision = next((found for kind in reversed(kinds) if kind != "GGUF" and (found := parse_precision(kind))), "")
    return QuantisedName(rest, kinds[-1], precision or parse_precision(kinds[-1]))
