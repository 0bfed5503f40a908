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
from roofcast.serving.deployment.platforms import label_value, load_names, option_notes

Option = tuple[str, ...]
"""An option with its value, or the words of a program."""

DTYPE: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Names in ``--dtype`` of vLLM and SGLang, which converts between these precisions."""

_PROGRAMS: Final[Mapping[str, Callable[[str], list[Option]]]] = {
    "vllm": lambda checkpoint: [("vllm", "serve", checkpoint)],
    "sglang": lambda checkpoint: [("python", "-m", "sglang.launch_server"), ("--model-path", checkpoint)],
    "trtllm": lambda checkpoint: [("trtllm-serve", checkpoint)],
}
"""Start of the command line of an engine, by the checkpoint."""


def options(config: EngineConfig) -> list[Option]:
    """Return the command line of one replica as options; host and port are the engine's defaults.

    Raises `InputError` if the engine has no option for a precision or a split.
    """
    _check(config)
    names = _names(config)
    counts_ranks = config.engine == "sglang"  # whose totals are of all data-parallel ranks
    shares_attention = counts_ranks and config.dp > 1 and config.is_moe
    return [
        *_PROGRAMS[config.engine](config.checkpoint),
        (names["tp"], str(config.tp * config.dp if shares_attention else config.tp)),
        *_degree(names["pp"], config.pp),
        *([(names["dp"], str(config.dp))] if config.dp > 1 else []),
        *([("--enable-dp-attention",)] if shares_attention else []),
        *([(names["ep"],)] if config.engine == "vllm" and config.ep > 1 else []),
        *(_degree(names["ep"], config.ep) if config.engine != "vllm" else []),
        *_weights(config),
        *_cache(config),
        (names["length"], str(config.n_token)),
        (names["sequences"], str(config.n_sequence * config.dp if counts_ranks else config.n_sequence)),
        *([] if config.memory_ratio is None else [(names["memory"], f"{config.memory_ratio:.2f}")]),
        *_settings(config),
        *(_SPECULATION[config.engine](config) if config.speculation else []),
    ]


def _names(config: EngineConfig) -> Mapping[str, str]:
    names: Mapping[str, str] = load_names()["options"][config.engine]
    return names


def _check(config: EngineConfig) -> None:
    n_rank = config.tp * config.dp
    if config.engine == "vllm" and config.ep not in (1, n_rank):
        raise InputError("ep", f"vllm spreads experts over all of tp x dp = {n_rank}, got {config.ep}")
    if config.engine == "trtllm" and config.dp > 1:
        raise InputError("dp", f"trtllm-serve takes it from a configuration file only, got {config.dp}; ask for dp 1")
    if config.engine == "trtllm" and config.speculation:
        problem = f"trtllm-serve takes it from a configuration file only, got {config.speculation.kind}"
        raise InputError("constraints.speculation", f"{problem}; admit the engines vllm or sglang")


def command(config: EngineConfig) -> str:
    """Return the command line of one replica, quoted for a shell, with comments on replicas and refused requests.

    Raises `InputError` if the engine has no option for a precision or a split.
    """
    chosen = options(config)
    words = " \\\n    ".join(shlex.join(option) for option in chosen)
    parts = f"{config.n_accelerator} x {label_value(config.accelerator)}"
    which = f"one of {config.n_replica} replicas, each" if config.n_replica > 1 else "the only replica,"
    return f"# {which} on {parts}\n{remark(config)}{option_notes(chosen)}{words}\n"


def _speculation(config: EngineConfig) -> tuple[str, int, str]:
    assert config.speculation  # noqa: S101  (else there is no such option)
    kind, has_model = config.speculation.kind, config.speculation.kind in ("eagle", "draft")
    if has_model and not config.draft_model:
        problem = f"must be given for speculation {kind}: the checkpoint of its drafts"
        raise InputError("constraints.draft_model", problem)
    return kind, config.speculation.n_token, config.draft_model if has_model else ""


def _vllm_speculation(config: EngineConfig) -> list[Option]:
    kind, n_token, draft_model = _speculation(config)
    names = {"eagle": "eagle3", "draft": "draft_model"}
    fields = {"method": names.get(kind, kind), "num_speculative_tokens": n_token}
    fields |= {"model": draft_model} if draft_model else {}
    return [(_names(config)["speculation"], json.dumps(fields))]


def _sglang_speculation(config: EngineConfig) -> list[Option]:
    kind, n_token, draft_model = _speculation(config)
    algorithm = {"mtp": "EAGLE", "eagle": "EAGLE3", "draft": "STANDALONE", "ngram": "NGRAM"}[kind]
    chain = [("--speculative-num-steps", str(n_token)), ("--speculative-eagle-topk", "1")] if kind != "ngram" else []
    return [
        (_names(config)["speculation"], algorithm),
        *([("--speculative-draft-model-path", draft_model)] if draft_model else []),
        *chain,
        ("--speculative-num-draft-tokens", str(n_token + 1)),  # the verified token among them
    ]


_SPECULATION: Final = {"vllm": _vllm_speculation, "sglang": _sglang_speculation}


def _degree(option: str, degree: int) -> list[Option]:
    return [(option, str(degree))] if degree > 1 else []


def _settings(config: EngineConfig) -> list[Option]:
    given = config.server_settings
    fixed = (name for name in ("chunk_size_token", "cpu_offload_gib") if name in given)
    return [(option, f"{given[name]:g}") for name in fixed if (option := _names(config).get(name))]


def _weights(config: EngineConfig) -> list[Option]:
    stored, precision = config.stored_precision, config.weight_precision
    if config.copy_of or (precision in (stored, served_precision(stored)) and precision != "fp32"):
        return []
    names = _names(config)
    return [(names["dtype"], DTYPE[precision])] if precision in DTYPE else [(names["quantization"], precision)]


def _cache(config: EngineConfig) -> list[Option]:
    precision = config.kv_precision
    if precision in ("", "bf16", "fp16"):
        return []
    names = dict(load_names()["caches"][config.engine])
    if config.engine == "vllm":
        names["fp8"] = config.platform.fp8_cache
    if precision not in names:
        supported = ", ".join(sorted(["bf16", "fp16", *names]))
        problem = f"{config.engine} keeps its cache in {supported}, got {precision}"
        raise InputError("constraints.kv_precision", problem)
    return [(_names(config)["cache"], names[precision])]
