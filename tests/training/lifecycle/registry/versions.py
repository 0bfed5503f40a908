"""Versions of a registry, without a training."""

from pathlib import Path
from typing import Any

from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.bundles.bundle_io import FILE_NAME
from roofcast.training.lifecycle.registry.registry import Champion, Registry


def add_version(registry: Registry, bundle: ModelBundle, folder: Path) -> str:
    """Register a bundle in a folder like a logged model."""
    folder.mkdir()
    checksum = bundle.save(folder / FILE_NAME)
    with registry.run("a test") as run_id:
        pass
    return registry.register(folder.as_uri(), run_id, checksum)


def version_of(champion: Champion | None) -> str | None:
    return champion.version if champion else None


def champion_of(registry: Registry[Any]) -> Champion:
    champion = registry.champion()
    assert champion is not None
    return champion
