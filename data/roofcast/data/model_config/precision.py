"""Weight precision of a checkpoint, from its `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.specs import BYTE_PER_WEIGHT, Precision

_DTYPES: Final[dict[str, Precision]] = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "auto": "bf16",
}  # fmt: skip

_METHODS: Final[dict[str, Precision]] = {
    "fp8": "fp8", "fbgemm_fp8": "fp8", "finegrained_fp8": "fp8", "mxfp4": "fp4", "nvfp4": "fp4",
    "modelopt_fp4": "fp4",
}  # fmt: skip

_INTEGER_METHODS: Final = frozenset({"gptq", "awq", "gptq_marlin", "awq_marlin", "auto-round", "auto_round"})

_FORMATS: Final[dict[str, Precision]] = {
    "float-quantized": "fp8", "int-quantized": "int8", "pack-quantized": "int4",
}  # fmt: skip

_NUMBERS: Final[dict[tuple[str, int], Precision]] = {
    ("int", 4): "int4", ("int", 8): "int8", ("float", 4): "fp4", ("float", 8): "fp8",
}  # fmt: skip


def weight_precision(reader: ConfigReader) -> Precision:
    """Return the precision of the large matrices; bf16 if the config states none.

    Raises
    ------
    InputError
        If the data type or the quantisation is unknown.

    Examples
    --------
    >>> weight_precision(ConfigReader({"torch_dtype": "float16"}))
    'fp16'
    >>> weight_precision(ConfigReader({"quantization_config": {"quant_method": "awq", "bits": 4}}))
    'int4'
    """
    section = reader.section("quantization_config")
    if reader.text("expert_dtype") == "fp4":
        return "fp4"
    if section:
        return _quantised(ConfigReader(section))
    dtype = reader.text("dtype", "torch_dtype", default="auto").removeprefix("torch.")
    if dtype not in _DTYPES:
        raise InputError("torch_dtype", f"must be one of {', '.join(_DTYPES)}, got {dtype!r}")
    return _DTYPES[dtype]


def _quantised(quantisation: ConfigReader) -> Precision:
    method = quantisation.text("quant_method", default="unnamed")
    if method in _METHODS:
        return _METHODS[method]
    if method in _INTEGER_METHODS:
        return _of_width("int", quantisation.count("bits", "w_bit", high=64), "bits")
    if method == "bitsandbytes":
        return "int4" if quantisation.flag("load_in_4bit", "_load_in_4bit") else "int8"
    if method == "compressed-tensors":
        return _compressed_tensors(quantisation)
    if method == "modelopt" or (method == "unnamed" and quantisation.has("quant_algo")):
        return _modelopt(quantisation)
    if method == "quark":
        weight = ConfigReader(ConfigReader(quantisation.section("global_quant_config")).section("weight"))
        return _named(weight.text("dtype"), "global_quant_config.weight.dtype")
    known = ", ".join(
        sorted({*_METHODS, *_INTEGER_METHODS, "bitsandbytes", "compressed-tensors", "modelopt", "quark"})
    )
    raise InputError("quantization_config.quant_method", f"must be one of {known}, got {method!r}")


def _modelopt(quantisation: ConfigReader) -> Precision:
    layers = quantisation.section("quantized_layers").values()
    kinds = {ConfigReader(layer).text("quant_algo") for layer in layers if isinstance(layer, Mapping)}
    if quantisation.text("quant_algo", default="fp8") != "MIXED_PRECISION" or not kinds:
        return _named(quantisation.text("quant_algo", default="fp8"), "quant_algo")
    return min((_named(kind, "quantized_layers") for kind in kinds), key=lambda p: (BYTE_PER_WEIGHT[p], p))


def _compressed_tensors(quantisation: ConfigReader) -> Precision:
    groups = quantisation.section("config_groups")
    group: Any = next(iter(groups.values()), None)
    if not isinstance(group, Mapping):
        name = quantisation.text("format", default="unnamed")
        return _FORMATS.get(name) or _named(name, "format")
    weights = ConfigReader(ConfigReader(group).section("weights"))
    return _of_width(weights.text("type", default="int"), weights.count("num_bits", high=64), "config_groups")


def _of_width(kind: str, n_bit: int, field: str) -> Precision:
    if (kind, n_bit) not in _NUMBERS:
        wanted = "4 or 8 bits of type int or float"
        raise InputError(f"quantization_config.{field}", f"must be {wanted}, got {n_bit} bits of type {kind!r}")
    return _NUMBERS[kind, n_bit]


def _named(text: str, field: str) -> Precision:
    low = text.lower().replace("float", "fp")
    for part, precision in (("fp4", "fp4"), ("fp8", "fp8"), ("w4a", "int4"), ("int4", "int4"), ("int8", "int8")):
        if part in low:
            return precision  # type: ignore[return-value]
    raise InputError(f"quantization_config.{field}", f"must name fp4, fp8, int4 or int8, got {text!r}")
