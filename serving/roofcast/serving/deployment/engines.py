"""Command lines of the engines, with the options that differ from their defaults.

References
----------
vLLM 0.32: ``vllm serve`` with ``vllm/config/cache.py``, "Data Parallel Deployment", "Expert Parallel Deployment",
"FP8 W8A8", "Speculative Decoding" (schema of ``--speculative-config``). SGLang 0.5: "Server Arguments"
(docs/advanced_features/server_arguments.md at 004813e), "Quantization", "Quantized KV Cache", "Speculative Decoding".
TensorRT-LLM 1.3: ``trtllm-serve`` with ``tensorrt_llm/commands/serve.py``, "Quantization", and pull request 11487,
which brought ``--kv_cache_dtype``.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from roofcast.data.errors import InputError
from roofcast.features.descriptors.precisions import served_precision
from roofcast.serving.deployment.engine_config import EngineConfig, remark
from roofcast.serving.deployment.names import label_value
from roofcast.serving.deployment.notes import option_notes

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


def options(config: EngineConfig) -> list[Option]:
    """Return the command line of one replica as options; host and port are the engine's defaults.

    Raises `InputError` if the engine has no option for a precision or a split.
    """
    return _OPTIONS[config.engine](config)


def command(config: EngineConfig) -> str:
    """Return the command line of one replica, quoted for a shell, with comments on replicas and refused requests.

    Raises `InputError` if the engine has no option for a precision or a split.
    """
    chosen = options(config)
    words = " \\\n    ".join(shlex.join(option) for option in chosen)
    parts = f"{config.n_accelerator} x {label_value(config.accelerator)}"
    which = f"one of {config.n_replica} replicas, each" if config.n_replica > 1 else "the only replica,"
    return f"# {which} on {parts}\n{remark(config)}{option_notes(chosen)}{words}\n"


def _vllm(config: EngineConfig) -> list[Option]:
    if config.ep not in (1, config.tp * config.dp):
        raise InputError("ep", f"vllm spreads experts over all of tp x dp = {config.tp * config.dp}, got {config.ep}")
    return [
        ("vllm", "serve", config.checkpoint),
        ("--tensor-parallel-size", str(config.tp)),
        *_degree("--pipeline-parallel-size", config.pp),
        *_degree("--data-parallel-size", config.dp),
        *([("--enable-expert-parallel",)] if config.ep > 1 else []),
        *_weights(config),
        *_cache("--kv-cache-dtype", config),
        ("--max-model-len", str(config.n_token)),
        ("--max-num-seqs", str(config.n_sequence)),
        *_share("--gpu-memory-utilization", config),
        *_settings(config),
        *_vllm_speculation(config),
    ]


def _sglang(config: EngineConfig) -> list[Option]:
    attention = config.dp > 1 and config.is_moe  # tp-size counts the devices of data-parallel attention too
    return [
        ("python", "-m", "sglang.launch_server"),
        ("--model-path", config.checkpoint),
        ("--tp-size", str(config.tp * config.dp if attention else config.tp)),
        *_degree("--pp-size", config.pp),
        *_degree("--dp-size", config.dp),
        *([("--enable-dp-attention",)] if attention else []),
        *_degree("--ep-size", config.ep),
        *_weights(config),
        *_cache("--kv-cache-dtype", config),
        ("--context-length", str(config.n_token)),
        ("--max-running-requests", str(config.n_sequence * config.dp)),  # of all ranks
        *_share("--mem-fraction-static", config),
        *_settings(config),
        *_sglang_speculation(config),
    ]


def _trtllm(config: EngineConfig) -> list[Option]:
    if config.dp > 1:
        raise InputError("dp", f"trtllm-serve takes it from a configuration file only, got {config.dp}; ask for dp 1")
    if config.speculation:
        problem = f"trtllm-serve takes it from a configuration file only, got {config.speculation.kind}"
        raise InputError("constraints.speculation", f"{problem}; admit the engines vllm or sglang")
    return [
        ("trtllm-serve", config.checkpoint),
        ("--tp_size", str(config.tp)),
        *_degree("--pp_size", config.pp),
        *_degree("--ep_size", config.ep),
        *_weights(config),
        *_cache("--kv_cache_dtype", config),
        ("--max_seq_len", str(config.n_token)),
        ("--max_batch_size", str(config.n_sequence)),
        *_share("--kv_cache_free_gpu_memory_fraction", config),
        *_settings(config),
    ]


_OPTIONS: Final[Mapping[str, Callable[[EngineConfig], list[Option]]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "trtllm": _trtllm,
}


def _draft_model(config: EngineConfig, kind: str) -> str:
    if kind in ("eagle", "draft") and not config.draft_model:
        raise InputError(
            "constraints.draft_model", f"must be given for speculation {kind}: the checkpoint of its drafts"
        )
    return config.draft_model if kind in ("eagle", "draft") else ""


def _vllm_speculation(config: EngineConfig) -> list[Option]:
    if config.speculation is None:
        return []
    kind, n_token = config.speculation.kind, config.speculation.n_token
    draft_model = _draft_model(config, kind)
    names = {"eagle": "eagle3", "draft": "draft_model"}
    fields = {"method": names.get(kind, kind), "num_speculative_tokens": n_token}
    return [("--speculative-config", json.dumps(fields | ({"model": draft_model} if draft_model else {})))]


def _sglang_speculation(config: EngineConfig) -> list[Option]:
    if config.speculation is None:
        return []
    kind, n_token = config.speculation.kind, config.speculation.n_token
    draft_model = _draft_model(config, kind)
    algorithm = {"mtp": "EAGLE", "eagle": "EAGLE3", "draft": "STANDALONE", "ngram": "NGRAM"}[kind]
    chain = [("--speculative-num-steps", str(n_token)), ("--speculative-eagle-topk", "1")] if kind != "ngram" else []
    return [
        ("--speculative-algorithm", algorithm),
        *([("--speculative-draft-model-path", draft_model)] if draft_model else []),
        *chain,
        ("--speculative-num-draft-tokens", str(n_token + 1)),  # the verified token among them
    ]


def _degree(option: str, degree: int) -> list[Option]:
    return [(option, str(degree))] if degree > 1 else []


def _share(option: str, config: EngineConfig) -> list[Option]:
    return [] if config.memory_ratio is None else [(option, f"{config.memory_ratio:.2f}")]


_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "vllm": {"chunk_size_token": "--max-num-batched-tokens", "cpu_offload_gib": "--cpu-offload-gb"},
    "sglang": {"chunk_size_token": "--chunked-prefill-size", "cpu_offload_gib": "--cpu-offload-gb"},
    "trtllm": {"chunk_size_token": "--max_num_tokens"},
}


def _settings(config: EngineConfig) -> list[Option]:
    options, given = _SETTINGS[config.engine], config.server_settings
    return [(option, f"{given[name]:g}") for name, option in options.items() if name in given]


def _weights(config: EngineConfig) -> list[Option]:
    stored, precision = config.stored_precision, config.weight_precision
    if config.copy_of or (precision in (stored, served_precision(stored)) and precision != "fp32"):
        return []
    return [("--dtype", DTYPE[precision])] if precision in DTYPE else [("--quantization", precision)]


def _cache(option: str, config: EngineConfig) -> list[Option]:
    precision = config.kv_precision
    if precision in ("", "bf16", "fp16"):
        return []
    names = dict(CACHE_DTYPE[config.engine])
    if config.engine == "vllm":
        names["fp8"] = config.platform.fp8_cache
    if precision not in names:
        supported = ", ".join(sorted(["bf16", "fp16", *names]))
        raise InputError(
            "constraints.kv_precision", f"{config.engine} keeps its cache in {supported}, got {precision}"
        )
    return [(option, names[precision])]
