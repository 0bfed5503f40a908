"""Kubernetes and KServe manifests of an entry, as plain values.

References
----------
Kubernetes 1.37 API, Deployment (apps/v1) and Service (v1); vLLM 0.32, "Using Kubernetes" (shared memory, probes on
``/health``); SGLang, "Server Arguments" (``/dev/shm``); TensorRT-LLM 1.3, ``trtllm-serve`` (``/health``); KServe 0.21
API, InferenceService (serving.kserve.io/v1beta1) with a container of one's own, and its "Standard" mode.
"""

from typing import Any, Final

from roofcast.serving.deployment.engine_config import EngineConfig
from roofcast.serving.deployment.engines import Option, options
from roofcast.serving.deployment.names import dns_name, label_value
from roofcast.serving.deployment.platforms import REPLACE

Manifest = dict[str, Any]

PORT: Final = 8000
LISTEN: Final[list[Option]] = [("--host", "0.0.0.0"), ("--port", str(PORT))]  # noqa: S104  (inside a pod)

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""Label of the nodes in managed clusters of the providers below."""

LABELLED: Final = ("aws", "azure", "gcp")
WEIGHTS: Final = "/weights"
SHARED_MEMORY: Final = "16Gi"
N_START_PROBE: Final = 360
"""Probes before a start fails: an hour for fetching and loading the weights."""


def kubernetes(config: EngineConfig) -> list[Manifest]:
    """Return a Deployment of all replicas, and its Service.

    Raises `InputError` if the engine has no option for a precision or a split.
    """
    name = dns_name(_model_name(config))
    selector = {"app.kubernetes.io/name": name}
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": _labels(name, config)},
        "spec": {
            "replicas": config.n_replica,
            "selector": {"matchLabels": dict(selector)},
            "strategy": _strategy(),
            "template": {
                "metadata": {"labels": _labels(name, config)},
                "spec": {"containers": [_container(config.engine, config)], **_pod(config)},
            },
        },
    }
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": _labels(name, config)},
        "spec": {"selector": dict(selector), "ports": [{"name": "http", "port": 80, "targetPort": "http1"}]},
    }
    return [deployment, service]


def kserve(config: EngineConfig) -> list[Manifest]:
    """Return an InferenceService with the fixed number of replicas of the entry.

    Raises `InputError` if the engine has no option for a precision or a split.
    """
    name = dns_name(_model_name(config))
    predictor: Manifest = {
        "minReplicas": config.n_replica,
        "maxReplicas": config.n_replica,
        "deploymentStrategy": _strategy(),
        "containers": [_container("kserve-container", config)],
        **_pod(config),
    }
    metadata: Manifest = {
        "name": name,
        "labels": _labels(name, config),
        "annotations": {"serving.kserve.io/deploymentMode": "Standard"},
    }
    return [
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": metadata,
            "spec": {"predictor": predictor},
        }
    ]


def _strategy() -> Manifest:
    # without surge: there may be no spare accelerators
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def _model_name(config: EngineConfig) -> str:
    return config.checkpoint.rstrip("/").rpartition("/")[2]


def _labels(name: str, config: EngineConfig) -> Manifest:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/component": config.engine}


def _container(name: str, config: EngineConfig) -> Manifest:
    words = [_literal(word) for option in [*options(config), *LISTEN] for word in option]
    probe: Manifest = {"httpGet": {"path": "/health", "port": "http1"}, "periodSeconds": 10}
    return {
        "name": name,
        "image": config.platform.images[config.engine],
        "command": words,
        "ports": [{"name": "http1", "containerPort": PORT}],
        "env": [
            {"name": "HF_HOME", "value": WEIGHTS},
            {
                "name": "HF_TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "huggingface", "key": "token", "optional": True}},
            },
        ],
        "resources": {"limits": {config.platform.resource: str(config.n_accelerator)}},
        "startupProbe": {**_copy(probe), "failureThreshold": N_START_PROBE},
        "readinessProbe": _copy(probe),
        "livenessProbe": {**_copy(probe), "timeoutSeconds": 10, "failureThreshold": 6},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "weights", "mountPath": WEIGHTS}],  # noqa: S108
        "securityContext": {"allowPrivilegeEscalation": False},
    }


def _copy(probe: Manifest) -> Manifest:
    return {**probe, "httpGet": dict(probe["httpGet"])}  # YAML writes shared values as aliases


def _literal(word: str) -> str:
    return word.replace("$", "$$")  # against the expansion of $(NAME) by Kubernetes


def _pod(config: EngineConfig) -> Manifest:
    return {
        "nodeSelector": _node_selector(config),
        "tolerations": [{"key": config.platform.resource, "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}},
            {"name": "weights", "emptyDir": {}},
        ],
    }


def _node_selector(config: EngineConfig) -> dict[str, str]:
    offer = config.offer
    if config.platform.resource == "google.com/tpu":
        return {f"cloud.google.com/gke-tpu-{what}": REPLACE for what in ("accelerator", "topology")}
    if offer.provider in LABELLED and label_value(offer.instance_type) == offer.instance_type:
        return {INSTANCE_TYPE: offer.instance_type}
    return {"accelerator": label_value(config.accelerator)}
