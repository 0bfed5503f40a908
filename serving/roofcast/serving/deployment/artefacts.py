"""Artefacts of deployments: options and start commands of engines, and manifests for Kubernetes."""

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from roofcast.data.errors import InputError
from roofcast.features.descriptors.precisions import served_precision
from roofcast.serving.deployment.engine_config import EngineConfig, remark
from roofcast.serving.deployment.platforms import REPLACE, dns_name, label_value, load_names, option_notes

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


Manifest = dict[str, Any]

LISTEN: Final[list[Option]] = [("--host", "0.0.0.0"), ("--port", "8000")]  # noqa: S104  (inside a pod)

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""Label of the nodes in managed clusters of the providers below."""

LABELLED: Final = ("aws", "azure", "gcp")


def kubernetes(config: EngineConfig) -> list[Manifest]:
    """Return a Deployment of all replicas, and its Service.

    Raises `InputError` if the engine has no option for a precision or a split.
    """
    return _manifests("kubernetes", config.engine, config)


def kserve(config: EngineConfig) -> list[Manifest]:
    """Return an InferenceService with the fixed number of replicas of the entry; raises as `kubernetes`."""
    return _manifests("kserve", "kserve-container", config)


def _manifests(kind: str, container: str, config: EngineConfig) -> list[Manifest]:
    templates = yaml.safe_load(Path(__file__).with_name("manifests.yaml").read_text(encoding="utf-8"))
    words = [word for option in [*options(config), *LISTEN] for word in option]
    values = {
        "$name": dns_name(config.checkpoint.rstrip("/").rpartition("/")[2]),
        "$engine": config.engine,
        "$container": container,
        "$image": config.platform.images[config.engine],
        "$command": [word.replace("$", "$$") for word in words],  # Kubernetes expands $(NAME)
        "$resource": config.platform.resource,
        "$n_accelerator": str(config.n_accelerator),
        "$n_replica": config.n_replica,
        "$node_selector": _node_selector(config),
    }
    manifests: list[Manifest] = _fill(
        templates[kind], values | {"$pod_container": _fill(templates["container"], values)}
    )
    return manifests


def _fill(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {_fill(name, values): _fill(value, values) for name, value in part.items()}
    if isinstance(part, list):
        return [_fill(one, values) for one in part]
    return values.get(part, part) if isinstance(part, str) else part


def _node_selector(config: EngineConfig) -> dict[str, str]:
    offer = config.offer
    if config.platform.resource == "google.com/tpu":
        return {f"cloud.google.com/gke-tpu-{what}": REPLACE for what in ("accelerator", "topology")}
    if offer.provider in LABELLED and label_value(offer.instance_type) == offer.instance_type:
        return {INSTANCE_TYPE: offer.instance_type}
    return {"accelerator": label_value(config.accelerator)}
