from pathlib import Path

import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.registry.registry import Registry
from tests.training.builders import a_bundle


@pytest.fixture(scope="session")
def bundle(subset: TrainingSet) -> ModelBundle:
    return a_bundle(subset)


@pytest.fixture
def registry(home: Path) -> Registry:
    return Registry(home)
