"""Fixtures that several rooms share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.settings import Settings
from roofcast.training.config import TrainingConfig
from tests.postgres import REQUIRED_VARIABLE, running_server, server_binaries

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("wandering", deadline=None)
settings.load_profile(os.environ.get("ROOFCAST_HYPOTHESIS", "steady"))

QUICK = TrainingConfig(n_estimators=40, n_fold=3, calibrate=False)
"""Settings that train in seconds, and predict well enough for a test."""


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder whose databases are made, which takes seconds, and empty; for copies."""
    home = tmp_path_factory.mktemp("empty") / "home"
    bench = AppState(Settings(home=home))
    assert bench.registry.champion() is None
    bench.store.close()
    return home


@pytest.fixture(scope="session")
def trained_home(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder with a champion; who changes it works on a copy."""
    home = Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("trained") / "home"))
    bench = AppState(Settings(home=home, training=QUICK))
    bench.retrain()
    bench.refresh()
    bench.store.close()
    return home


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    binaries = server_binaries()
    if binaries is None:
        if os.environ.get(REQUIRED_VARIABLE) == "required":
            pytest.fail("no PostgreSQL server is installed, and the environment says it must be")
        pytest.skip("no PostgreSQL server is installed")
    with running_server(binaries) as url:
        yield url
