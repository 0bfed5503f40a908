import json
from importlib.resources import files

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from tests.deploy.files import KUBERNETES, compose, manifests, read_yaml


@pytest.mark.parametrize("name", sorted(manifests()))
def test_manifests_conform_to_the_schema_of_kubernetes(name: str) -> None:
    kubernetes_validate.validate(manifests()[name], "1.37", strict=True)


def test_the_compose_file_conforms_to_its_specification() -> None:
    schema = json.loads(
        files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text(encoding="utf-8")
    )
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(compose())
    with pytest.raises(jsonschema.ValidationError, match="imagee"):
        validator.validate({"services": {"roofcast": {"imagee": "roofcast"}}})


def test_the_kustomization_names_every_manifest_but_the_example() -> None:
    named = read_yaml(KUBERNETES / "kustomization.yaml")["resources"]
    assert named == sorted(set(manifests()) - {"secret.example.yaml"})
