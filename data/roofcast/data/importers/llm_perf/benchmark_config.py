"""Configuration of an optimum-benchmark run: model, request shapes, backend and hardware."""

from __future__ import annotations

import math
from typing import Any, Final

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.importers.client_runs import join_cells, model_cells
from roofcast.data.importers.json_input import Node

TASKS: Final = ("text-generation", "text2text-generation")
ENGINES: Final = {"pytorch": "transformers", "tensorrt-llm": "trtllm", "vllm": "vllm"}
"""Engines by backend; another backend's name is the engine's."""

DTYPES: Final = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
QUANTISED: Final = {
    "int4": "int4", "uint4": "int4", "load_in_4bit": "int4", "int8": "int8", "load_in_8bit": "int8", "float8": "fp8",
    "fp8": "fp8",
}  # fmt: skip
"""Precision of the weights by a mark in the quantisation settings."""

_BITS: Final = {4: "int4", 8: "int8"}
_MAKERS: Final = ("NVIDIA ", "AMD ", "Tesla ")


def config_cells(config: Node) -> dict[str, Any]:
    """Return the columns of a configuration, without the output length.

    Raises
    ------
    SchemaError
        If the run generated no text, searched beams, or a value is of the wrong kind; names the field.
    """
    backend, scenario = config["backend"], config["scenario"]
    if scenario["name"].text() not in ("", "inference"):
        raise scenario["name"].error(f"must be inference, got {scenario['name'].text()[:60]!r}")
    if backend["task"].text() not in ("", *TASKS):
        raise backend["task"].error(f"must be one of {', '.join(TASKS)}, got {backend['task'].text()[:60]!r}")
    if scenario.at("generate_kwargs", "num_beams").number() > 1:
        raise scenario.at("generate_kwargs", "num_beams").error("must be 1: a beam is no request of its own")
    shapes = scenario["input_shapes"]
    version = config.at("environment", "optimum_benchmark_version").text()
    return join_cells(
        model_cells(backend["model"].text()),
        {
            "concurrency": shapes["batch_size"].number(),
            "n_input_token": shapes["sequence_length"].number(),
            "software": f"optimum-benchmark {version}".strip(),
        },
        _engine(backend, config["environment"]),
        _precisions(backend),
        _hardware(backend, config["environment"]),
        {"flash_attention": False} if backend["attn_implementation"].text() == "eager" else {},
    )


def n_output_token(config: Node) -> float:
    """Return the tokens that each request generates; NaN if the configuration does not set them."""
    limit = config.at("scenario", "generate_kwargs", "max_new_tokens").number()
    return config.at("scenario", "new_tokens").number() if math.isnan(limit) else limit


def _engine(backend: Node, environment: Node) -> dict[str, str]:
    name = backend["name"].text()
    version = environment["transformers_version"] if name == "pytorch" else backend["version"]
    return {"engine": ENGINES.get(name, name), "engine_version": version.text()}


def _precisions(backend: Node) -> dict[str, str]:
    dtype = (backend["torch_dtype"].text() or backend["dtype"].text()).removeprefix("torch.")
    scheme = backend["quantization_scheme"].text() or backend["quantization"].text()
    plain = DTYPES.get(dtype, "")
    if not scheme:
        return {"weight_precision": plain, "activation_precision": plain}
    settings = backend["quantization_config"]
    bits = settings["bits"].number()
    marks = [scheme, *(key for key in settings.keys if settings[key].value is True)]
    marks += [settings[key].text() for key in ("quant_type", "weights", "weights_dtype") if key in settings.keys]
    marked = (precision for mark in marks for name, precision in QUANTISED.items() if name in mark.lower())
    weight = _BITS.get(int(bits), "") if bits < 64 else next(marked, "")
    return {"weight_precision": weight, "activation_precision": plain, "note": f"quantised by {scheme[:60]}"}


def _hardware(backend: Node, environment: Node) -> dict[str, Any]:
    device = backend["device"].text()
    if device == "cpu":
        name = environment["cpu"].text()
        return {"accelerator": _catalogue_id(name), "n_accelerator": 1.0 if name else math.nan, **_unsplit(1)}
    names = [node.text() for node in environment["gpu"].items()]
    ids = _device_ids(backend["device_ids"])
    chosen = [names[i] for i in ids if i < len(names)] or names
    kinds = list(dict.fromkeys(filter(None, chosen)))
    if len(kinds) > 1 and ids:
        raise environment["gpu"].error(f"must be of one kind, got {', '.join(kinds)[:100]}")
    n = len(ids) or environment["gpu_count"].number() or math.nan
    return {"accelerator": _catalogue_id(kinds[0]) if len(kinds) == 1 else "", "n_accelerator": n, **_unsplit(n)}


def _device_ids(node: Node) -> list[int]:
    text = str(node.value) if type(node.value) is int else node.text()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        raise node.error(f"must be numbers of devices such as 0,1, got {text[:60]!r}")
    return [int(part) for part in dict.fromkeys(parts)]


def _unsplit(n: float) -> dict[str, float]:
    return dict.fromkeys(("tp", "pp", "dp"), 1.0) if n == 1 else {}


def _catalogue_id(name: str) -> str:
    short = name
    for maker in _MAKERS:
        short = short.removeprefix(maker)
    for candidate in (name, short):
        try:
            return load_catalog().accelerator(candidate).id
        except UnknownNameError:
            continue
    return name
