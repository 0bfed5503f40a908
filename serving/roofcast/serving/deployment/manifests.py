"""Kubernetes and KServe manifests of an entry as plain values: `manifests.yaml` with values of its configuration.

References
----------
Kubernetes 1.37 API, Deployment (apps/v1) and Service (v1); vLLM 0.32, "Using Kubernetes" (shared memory, probes on
``/health``); SGLang, "Server Arguments" (``/dev/shm``); TensorRT-LLM 1.3, ``trtllm-serve`` (``/health``); KServe 0.21
API, InferenceService (serving.kserve.io/v1beta1) with a container of one's own, and its "Standard" mode.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from roofcast.serving.deployment.engine_config import EngineConfig
from roofcast.serving.deployment.engines import Option, options
from roofcast.serving.deployment.platforms import REPLACE, dns_name, label_value

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
