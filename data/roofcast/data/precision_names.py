"""Names of precisions that people and tools write: formats, and quantisations of files."""

import csv
import math
import re
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator

from roofcast.data.specs import PRECISIONS, Precision


class WeightFormat(NamedTuple):
    """Precision whose kernels multiply the weights, and bits of one with its share of scales; NaN for the usual."""

    precision: str
    bit: float = math.nan

    def __str__(self) -> str:
        return self.precision if math.isnan(self.bit) else f"{self.precision} of {self.bit:.3g} bits a weight"


def _read_names() -> dict[str, WeightFormat]:
    with Path(__file__).with_name("precision_names.csv").open(encoding="utf-8", newline="") as stream:
        rows = [*csv.DictReader(stream)]
    return {row["name"]: WeightFormat(row["precision"], float(row["weight_bit"] or "nan")) for row in rows}


NAMES: Final = {name: WeightFormat(name) for name in PRECISIONS} | _read_names()
"""Formats of weights by name, in lower case: AWQ, GPTQ and bitsandbytes have four bits as they are published most,
GGUF is Q4_K_M where its quantisation is not named, as in llama.cpp and Ollama."""

_FLOATS: Final = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "MXFP4": "fp4", "NVFP4": "fp4", "TQ1_0": "int1"}
_QUANTISATION: Final = re.compile(
    r"(?:^|[-._ :])(?:UD-|i1-)?((I?Q([1-8])(?:_[A-Z0-9]+)*)|TQ1_0|MXFP4|NVFP4|BF16|F16|F32)(?=$|[-._ ])",
    re.I | re.ASCII,
)
_SUFFIX: Final = re.compile(
    r"[-_.: ]+(gguf|awq|gptq|bnb|mlx|hqq|exl[23]|dynamic|quantized|(?:nv|mx)?fp[48]|mxfp6|int[48]|[bf][fp]?16"
    r"|[1-8](?:\.[0-9]{1,3})?_?bpw|[2-8]-?bit|w[2-8]a(?:16|8))$",
    re.I | re.ASCII,
)
_WEIGHTS: Final = re.compile(
    r"w([1-8])a[0-9]{1,2}.*|.*\b([1-8])[- ]?bits?\b.*|(?:.*\b)?int([1-8])\b.*|(?:fp|float)([48])[_ -].*"
    r"|(?:.*[ _-])?([1-8](?:\.[0-9]{1,3})?) ?bpw(?:[ _-].*)?"
)
_SHARD: Final = re.compile(r"-[0-9]{5}-of-[0-9]{5}$", re.ASCII)
_EIGHT: Final = 8
_FORMAT_WORDS: Final = {name: name for name in ("mlx", "exl2", "exl3", "awq", "gptq", "hqq", "nf4")} | {"bnb": "nf4"}
_FORMAT_ENGINES: Final = {"gguf": "llama.cpp", "mlx": "mlx-lm", "exl2": "exllama-v2", "exl3": "exllama-v3"}
MAX_LENGTH: Final = 200


PrecisionName = Annotated[
    Precision, BeforeValidator(lambda name: (parse_precision(name) or name) if isinstance(name, str) else name)
]
"""A precision by any of its names, in a request."""

WeightName = Annotated[
    Precision,
    BeforeValidator(lambda name: (parse_weights(name).precision or name) if isinstance(name, str) else name),
]
"""Precision of weights by any name of a format, in a request; `parse_weights` returns its bits too."""


class QuantisedName(NamedTuple):
    """Parts of the name of a quantised copy; blank where it does not have them."""

    model: str
    quantisation: str
    precision: str


def parse_precision(name: str) -> str:
    """Return the precision that a name means; blank if it means none of `PRECISIONS`, scales apart.

    Examples
    --------
    >>> [parse_precision(name) for name in ("Q4_K_M", "q4_0", "AWQ", "bfloat16", "W8A8", "mxfp8", "nvfp4", "Q6_K")]
    ['int4', 'int4', 'int4', 'bf16', 'int8', 'fp8', 'fp4', '']
    """
    found = parse_weights(name)
    has_usual = math.isnan(found.bit) or parse_gguf_name(name).precision == found.precision
    return found.precision if has_usual else ""


def parse_weights(name: str) -> WeightFormat:
    """Return the format of weights that a name means; a blank precision if it means none.

    Integers of fewer than eight bits are unpacked by the kernels of four. Without a number of bits a weight, integers
    have a scale and a zero of 16 bits for each group: of 128 in AWQ and GPTQ, else of 64.

    References
    ----------
    MLX, ``mlx.core.quantize``; AutoAWQ, ``quant_config``: sizes of groups.

    Examples
    --------
    >>> [str(parse_weights(name)) for name in ("Q5_K_M", "mlx 6-bit", "EXL3 3.0bpw")]
    ['int4 of 5.64 bits a weight', 'int4 of 6.5 bits a weight', 'int4 of 3 bits a weight']
    """
    plain = name.strip().lower()
    if plain in NAMES or len(plain) > MAX_LENGTH:
        return NAMES.get(plain, WeightFormat(""))
    if "nvfp4" in plain or "mxfp4" in plain:
        return WeightFormat("fp4")
    if match := _WEIGHTS.fullmatch(plain):
        *whole, float_bits, stated = match.groups()
        if float_bits:
            return WeightFormat(f"fp{float_bits}")
        if stated:
            return WeightFormat("int4" if float(stated) < _EIGHT else "int8", float(stated))
        n_bit = int(next(filter(None, whole)))
        group = 128 if re.search("awq|gptq|w[1-8]a", plain) else 64
        usual = {4: WeightFormat("int4"), 8: WeightFormat("int8")}
        return usual.get(n_bit, WeightFormat("int4", n_bit + 32 / group))
    kind = parse_gguf_name(plain).quantisation.lower()
    while kind and kind not in NAMES:  # a mixture of its own, such as Q5_K_XL
        kind = kind.rpartition("_")[0]
    return NAMES.get(kind, WeightFormat(""))


def format_name(name: str) -> str:
    """Return the format of the support table that a name of weights states; blank if it states none.

    Examples
    --------
    >>> [format_name(name) for name in ("Q5_K_M", "gguf", "mlx 6bit", "AWQ", "EXL3 4.0bpw", "BF16")]
    ['gguf', 'gguf', 'mlx', 'awq', 'exl3', '']
    """
    plain = name.strip().lower()
    stated = next((kind for word, kind in _FORMAT_WORDS.items() if word in plain), "")
    is_gguf = plain == "gguf" or parse_gguf_name(name).quantisation[:1] in {"I", "Q", "T"}
    return stated or ("gguf" if is_gguf else "")


def format_engine(name: str) -> str:
    """Return the engine whose own format of weights a name means, of GGUF, MLX and EXL; blank for others.

    Examples
    --------
    >>> [format_engine(name) for name in ("Q5_K_M", "mlx 6bit", "EXL2", "AWQ", "BF16")]
    ['llama.cpp', 'mlx-lm', 'exllama-v2', '', '']
    """
    return _FORMAT_ENGINES.get(format_name(name), "")


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

    The quantisation of a copy for MLX or ExLlama, by its owner or its own name, says so.

    Examples
    --------
    >>> split_copy_name("unsloth/Llama-3.3-70B-Instruct-GGUF"), split_copy_name("Qwen/Qwen3-32B")[0]
    (QuantisedName(model='Llama-3.3-70B-Instruct', quantisation='GGUF', precision='int4'), 'Qwen/Qwen3-32B')
    >>> split_copy_name("mlx-community/Qwen3-32B-6bit")
    QuantisedName(model='Qwen3-32B', quantisation='MLX 6BIT', precision='int4')
    """
    tail = name.strip()[:MAX_LENGTH].rpartition("/")[2]
    file = parse_gguf_name(tail)
    rest, kinds = (file.model, [file.quantisation]) if file.quantisation else (tail, [])
    while match := _SUFFIX.search(rest):
        rest, kinds = rest[: match.start()], [*kinds, match[1].upper()]
    if not kinds or not rest:
        return QuantisedName(name, "", "")
    stated = next((kind for kind in reversed(kinds) if kind != "GGUF" and parse_weights(kind).precision), kinds[-1])
    own = next((kind for kind in ("MLX", "EXL2", "EXL3") if kind in name.upper() and kind != stated), "")
    return QuantisedName(rest, f"{own} {stated}".lstrip(), parse_weights(stated).precision)
