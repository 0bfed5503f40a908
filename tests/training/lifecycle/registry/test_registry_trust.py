"""Versions of others, and copies of the state folder."""

import shutil
from pathlib import Path

import pytest

from roofcast.data.errors import InputError
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.registry.registry import Registry
from tests.training.lifecycle.registry.versions import add_version


def test_a_version_without_a_signature_is_not_loaded(registry: Registry, bundle: ModelBundle, tmp_path: Path) -> None:
    version = add_version(registry, bundle, tmp_path / "run")
    registry.load(registry.find(version))
    for signature in ("", "0" * 64):
        registry._client.set_model_version_tag("roofcast", version, "signature", signature)
        with pytest.raises(InputError, match=rf"version {version} is not signed by the key .*bundle\.key"):
            registry.load(registry.find(version))


@pytest.mark.slow
def test_a_copied_state_folder_has_its_own_artifacts(registry: Registry, bundle: ModelBundle, tmp_path: Path) -> None:
    with registry.run("original") as run_id:
        pass
    version = add_version(registry, bundle, tmp_path / "run")
    registry.load(registry.find(version))
    copy = Registry(Path(shutil.copytree(registry.home, tmp_path / "copy")))
    with copy.run("in the copy") as own_id:
        pass
    for id_ in (run_id, own_id):
        assert copy._client.get_run(id_).info.artifact_uri.startswith((tmp_path / "copy" / "artifacts").as_uri())
    original = registry._client.get_run(run_id).info.artifact_uri
    assert original.startswith((registry.home / "artifacts").as_uri())
    assert copy.find(version) == registry.find(version)
    copy.load(copy.find(version))
