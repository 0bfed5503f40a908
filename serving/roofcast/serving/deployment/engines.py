"""Command lines of the engines, with the options that differ from their defaults.

References
----------
vLLM 0.32: ``vllm serve`` with ``vllm/config/cache.py``, "Data Parallel Deployment", "Expert Parallel Deployment",
"FP8 W8A8". SGLang 0.5: "Server Arguments" (docs/advanced_features/server_arguments.md at 004813e), "Quantization",
"Quantized KV Cache". TensorRT-LLM 1.3: ``trtllm-serve`` with ``tensorrt_llm/commands/serve.py``, "Quantization", and
pull request 11487, which brought ``--kv_cache_dtype``.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from roofcast.data.errors import InputError
from roofcast.features.descriptors.precisions import served_precision
from roofcast.serving.deployment.names import label_value
from roofcast.serving.deployment.served import Served, remark

Option = tuple[str, ...]
"""An option with its value, or the words of a program."""

DTYPE: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Names in ``--dtype`` of vLLM and SGLang, which converts between these precisions."""

CACHE_DTYPE: Final[Mapping[str, Mapping[str, str]]] = {
    "vllm": {"int8": "int8_per_token_head", "fp4": "nvfp4", "int4": "int4_per_token_head"},
    "sglang": {"fp8": "fp8_e4m3", "fp4": "fp4_e2m1"},
    "trtllm": {"fp8": "fp8", "fp4": "nvfp4"},
}
"""Names of cache precisions below 16 bits; that of FP8 in vLLM depends on the platform."""


def options(served: Served) -> list[Option]:
    """Return the command line of one replica as options; host and port are the engine's defaults.

    Raises
    ------
    InputError
        If the engine has no option for a precision or a split.
    """
    return _OPTIONS[served.engine](served)


def command(served: Served) -> str:
    """Return the command line of one replica, quoted for a shell, with comments on replicas and refused requests.

    Raises
    ------
    InputError
        If the engine has no option for a precision or a split.
    """
    words = " \\\n    ".join(shlex.join(option) for option in options(served))
    parts = f"{served.n_accelerator} x {label_value(served.accelerator)}"
    return f"# one of {served.n_replica} replicas, each on {parts}\n{remark(served)}{words}\n"


def _vllm(served: Served) -> list[Option]:
    if served.ep not in (1, served.tp * served.dp):
        raise InputError("ep", f"vllm spreads experts over all of tp x dp = {served.tp * served.dp}, got {served.ep}")
    return [
        ("vllm", "serve", served.checkpoint),
        ("--tensor-parallel-size", str(served.tp)),
        *_degree("--pipeline-parallel-size", served.pp),
        *_degree("--data-parallel-size", served.dp),
        *([("--enable-expert-parallel",)] if served.ep > 1 else []),
        *_weights(served),
        *_cache("--kv-cache-dtype", served),
        ("--max-model-len", str(served.n_token)),
        ("--max-num-seqs", str(math.ceil(served.n_sequence / served.dp))),
        *_share("--gpu-memory-utilization", served),
    ]


def _sglang(served: Served) -> list[Option]:
    """Return the options of SGLang, where `tp` counts the devices of data-parallel attention too."""
    attention = served.dp > 1 and served.is_moe
    return [
        ("python", "-m", "sglang.launch_server"),
        ("--model-path", served.checkpoint),
        ("--tp-size", str(served.tp * served.dp if attention else served.tp)),
        *_degree("--pp-size", served.pp),
        *_degree("--dp-size", served.dp),
        *([("--enable-dp-attention",)] if attention else []),
        *_degree("--ep-size", served.ep),
        *_weights(served),
        *_cache("--kv-cache-dtype", served),
        ("--context-length", str(served.n_token)),
        ("--max-running-requests", str(served.n_sequence)),
        *_share("--mem-fraction-static", served),
    ]


def _trtllm(served: Served) -> list[Option]:
    if served.dp > 1:
        raise InputError("dp", f"trtllm-serve takes it from a configuration file only, got {served.dp}; ask for dp 1")
    return [
        ("trtllm-serve", served.checkpoint),
        ("--tp_size", str(served.tp)),
        *_degree("--pp_size", served.pp),
        *_degree("--ep_size", served.ep),
        *_weights(served),
        *_cache("--kv_cache_dtype", served),
        ("--max_seq_len", str(served.n_token)),
        ("--max_batch_size", str(served.n_sequence)),
        *_share("--kv_cache_free_gpu_memory_fraction", served),
    ]


_OPTIONS: Final[Mapping[str, Callable[[Served], list[Option]]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "trtllm": _trtllm,
}


def _degree(option: str, degree: int) -> list[Option]:
    return [(option, str(degree))] if degree > 1 else []


def _share(option: str, served: Served) -> list[Option]:
    return [] if served.memory_ratio is None else [(option, f"{served.memory_ratio:.2f}")]


def _weights(served: Served) -> list[Option]:
    """Return the options that serve a checkpoint in the predicted precision."""
    stored, precision = served.stored_precision, served.weight_precision
    if precision in (stored, served_precision(stored)):
        return [("--dtype", DTYPE[precision])] if precision == "fp32" else []
    if served.engine != "trtllm" and stored in DTYPE:
        if precision in DTYPE:
            return [("--dtype", DTYPE[precision])]
        if precision == "fp8" and served.platform.quantises:
            return [("--quantization", "fp8")]
    raise InputError(
        "constraints.weight_precision",
        f"{served.engine} cannot serve weights of {stored} in {precision} here; name a copy published in {precision}",
    )


def _cache(option: str, served: Served) -> list[Option]:
    """Return the option of the cache precision; 16 bits are the default of every engine."""
    precision = served.kv_precision
    if precision in ("", "bf16", "fp16"):
        return []
    names = dict(CACHE_DTYPE[served.engine])
    if served.engine == "vllm":
        names["fp8"] = served.platform.fp8_cache
    if precision not in names:
        supported = ", ".join(sorted(["bf16", "fp16", *names]))
        raise InputError(
            "constraints.kv_precision", f"{served.engine} keeps its cache in {supported}, got {precision}"
        )
    return [(option, names[precision])]
