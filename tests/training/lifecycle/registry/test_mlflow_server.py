"""Versions on MLflow's own server, which wants more of a client than the embedded store does."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.bundles.bundle_key import KEY_NAME
from roofcast.training.lifecycle.registry import tracking
from roofcast.training.lifecycle.registry.registry import Registry
from tests.attack.platform import MlflowProcess
from tests.training.builders import a_bundle
from tests.training.lifecycle.registry.versions import champion_of

PYTHON_VARIABLE = "ROOFCAST_TEST_MLFLOW"
"""Python executable of an environment with MLflow's server, where that of the tests has none."""


def server_python() -> Path | None:
    """Return a Python executable whose environment has MLflow's server; None if there is none."""
    if PYTHON_VARIABLE in os.environ:
        return Path(os.environ[PYTHON_VARIABLE])
    return Path(sys.executable) if importlib.util.find_spec("flask_cors") else None


@pytest.fixture
def server_url(tmp_path: Path) -> Iterator[str]:
    python = server_python()
    if python is None:
        pytest.skip(f"no MLflow server is installed, nor named by {PYTHON_VARIABLE}")
    server = MlflowProcess(python, f"sqlite:///{tmp_path / 'server.db'}", tmp_path)
    try:
        server.start()
        yield server.url
    finally:
        server.kill()


@pytest.mark.slow
def test_a_server_registers_and_promotes_versions(server_url: str, subset: TrainingSet, tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("first", "second")]
    for home in homes:
        home.mkdir()
    registry, bundle = Registry(homes[0], server_url), a_bundle(subset)
    for _ in range(2):
        with registry.run("a test") as run_id:
            checksum, uri = tracking.log_bundle(bundle, subset.X, run_id)
        registry.promote(registry.register(uri, run_id, checksum))
    other = Registry(homes[1], server_url, key_file=homes[0] / KEY_NAME)
    champion = champion_of(other)
    assert champion.version == "2"
    assert other.load(champion).row_ids == bundle.row_ids
    assert registry.rollback().version == "1"
    assert [one.version for one in other.versions()] == ["2", "1"]
    assert champion_of(other).version == "1"
