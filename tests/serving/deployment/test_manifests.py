import copy
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from hypothesis import given, settings

from roofcast.serving.deployment import deployment
from roofcast.serving.deployment.engine_config import ENGINES, EngineConfig
from roofcast.serving.deployment.engines import options
from roofcast.serving.deployment.manifests import kserve, kubernetes
from tests.effort import n_example
from tests.serving.deployment.builders import a_question, an_engine_config, an_entry, checkpoints

KUBERNETES = "1.37"

KSERVE_FIELDS = {"minReplicas", "maxReplicas", "deploymentStrategy"}
"""Fields of a predictor beside those of a pod: KServe 0.21, `ComponentExtensionSpec` in its v1beta1 API."""


def check_kubernetes(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def check_kserve(manifest: dict[str, Any]) -> None:
    """Check the fields that KServe adds, and the rest as a pod."""
    assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"}
    assert (manifest["apiVersion"], manifest["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    assert set(manifest["spec"]) == {"predictor"}
    predictor = manifest["spec"]["predictor"]
    assert 1 <= predictor["minReplicas"] <= predictor["maxReplicas"]
    assert predictor["containers"][0]["name"] == "kserve-container"
    assert predictor["deploymentStrategy"] == kubernetes(an_engine_config())[0]["spec"]["strategy"]
    pod = {name: value for name, value in predictor.items() if name not in KSERVE_FIELDS}
    check_kubernetes({"apiVersion": "v1", "kind": "Pod", "metadata": manifest["metadata"], "spec": pod})


def container_of(config: EngineConfig) -> dict[str, Any]:
    container: dict[str, Any] = kubernetes(config)[0]["spec"]["template"]["spec"]["containers"][0]
    return container


@pytest.mark.parametrize("engine", ENGINES)
def test_manifests_conform_to_their_schemas(engine: str) -> None:
    for manifest in kubernetes(an_engine_config(engine)):
        check_kubernetes(manifest)
    check_kserve(kserve(an_engine_config(engine))[0])


def test_the_schemas_refuse_invalid_manifests() -> None:
    invalid = copy.deepcopy(kubernetes(an_engine_config())[0])
    invalid["spec"]["replica"] = invalid["spec"].pop("replicas")
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        check_kubernetes(invalid)
    invalid = copy.deepcopy(kserve(an_engine_config())[0])
    invalid["spec"]["predictor"]["replicas"] = 3
    with pytest.raises(kubernetes_validate.ValidationError, match="replicas"):
        check_kserve(invalid)


@settings(max_examples=n_example(20))
@given(checkpoints)
def test_manifests_with_any_checkpoint_name_survive_yaml(name: str) -> None:
    question = a_question(checkpoint=name)
    for kind, build in (("kubernetes", kubernetes), ("kserve", kserve)):
        text = deployment(kind, an_entry(), question)
        assert list(yaml.safe_load_all(text)) == build(an_engine_config(question=question))
        assert "&id" not in text


def test_a_service_selects_the_pods_of_its_deployment() -> None:
    manifest, service = kubernetes(an_engine_config())
    labels = manifest["spec"]["template"]["metadata"]["labels"]
    assert manifest["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["ports"][0]["targetPort"] in {
        port["name"] for port in container_of(an_engine_config())["ports"]
    }
    assert manifest["metadata"]["name"] == "dense-7b"


def test_replicas_and_accelerators_are_those_of_the_entry() -> None:
    config = an_engine_config()
    assert kubernetes(config)[0]["spec"]["replicas"] == 3
    assert kserve(config)[0]["spec"]["predictor"]["maxReplicas"] == 3
    assert container_of(config)["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    trainium = an_engine_config(entry=an_entry("aws-trainium2", tp=2))
    assert container_of(trainium)["resources"]["limits"] == {"aws.amazon.com/neuron": "2"}


def test_a_container_listens_on_all_interfaces() -> None:
    config = an_engine_config("sglang", question=a_question(checkpoint="ours/$(HF_TOKEN)"))
    command = container_of(config)["command"]
    assert command[-4:] == ["--host", "0.0.0.0", "--port", "8000"]  # noqa: S104
    assert "ours/$$(HF_TOKEN)" in command, "kubernetes would substitute the token"
    assert len(command) == 4 + sum(len(option) for option in options(config))


def test_manifests_hold_no_secret() -> None:
    token = next(v for v in container_of(an_engine_config())["env"] if v["name"] == "HF_TOKEN")
    assert set(token) == {"name", "valueFrom"}


@pytest.mark.parametrize(
    ("changes", "selector"),
    [
        ({}, {"node.kubernetes.io/instance-type": "p5.48xlarge"}),
        ({"provider": "lambda"}, {"accelerator": "nvidia-h100-sxm-80gb"}),
        ({"instance_type": "8 x H100"}, {"accelerator": "nvidia-h100-sxm-80gb"}),
        (
            {"accelerator": "google-tpu-v6e", "provider": "gcp"},
            {
                "cloud.google.com/gke-tpu-accelerator": "replace-me",
                "cloud.google.com/gke-tpu-topology": "replace-me",
            },
        ),
    ],
)
def test_pods_select_nodes_with_the_accelerator(changes: dict[str, Any], selector: dict[str, str]) -> None:
    manifest = kubernetes(an_engine_config(entry=an_entry(**changes)))[0]
    assert manifest["spec"]["template"]["spec"]["nodeSelector"] == selector
    check_kubernetes(manifest)
