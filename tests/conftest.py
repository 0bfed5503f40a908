"""Fixtures that several rooms share."""

import gc
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.training.config import TrainingConfig
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET, JOB_TARGET, LEARNED_TARGETS, LearnedTarget
from roofcast.training.lifecycle.registry.registry import ShippedPredictor
from roofcast.training.lifecycle.registry.tracking import log_bundle
from roofcast.training.lifecycle.shipped import load_shipped, shipped_predictor
from tests.build_once import build_folder_once
from tests.effort import PROFILE, n_example
from tests.postgres import REQUIRED_VARIABLE, running_server, server_binaries
from tests.training.builders import QUIET, a_subset

settings.register_profile("quick", derandomize=True, deadline=None, max_examples=n_example(100))
settings.register_profile("thorough", derandomize=True, deadline=None)
settings.register_profile("wandering", deadline=None)
settings.load_profile(PROFILE)

collect_ignore = ["few_campaigns"]
"""A module that changes the process which imports it."""

FEW_CAMPAIGNS = Path(__file__).parent / "few_campaigns"
"""Folder on the path of processes whose retrainings are short."""

LONGEST = (
    "tests/training/lifecycle/test_shipped.py", "tests/attack/test_openapi.py", "tests/docs/test_blocks.py",
    "tests/test_wheel.py", "tests/training/lifecycle/test_retraining.py",
    "tests/training/evaluation/protocols/test_p4_p5_campaigns.py",
)  # fmt: skip
"""Files that take longest: a worker that begins one last lets the others wait."""

QUICK = TrainingConfig(n_estimators=40, n_fold=3, calibrate=False)
"""Settings of a training of seconds, accurate enough for tests."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what thousands of tests and their modules hold out of garbage collections, which free none of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests of `LONGEST`."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in LONGEST)


@pytest.fixture(scope="session", autouse=True)
def without_shipped_predictor() -> Iterator[None]:
    """Start every application without the shipped predictor."""

    def only_jobs(target: LearnedTarget[Any, Any]) -> ShippedPredictor | None:
        return shipped_predictor(target) if target is JOB_TARGET else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofcast.serving.composition.shipped_predictor", only_jobs)
        yield


@pytest.fixture(scope="session", autouse=True)
def without_plots() -> Iterator[None]:
    """Log trainings without their plots, which take longer than a quick training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LEARNED_TARGETS, INFERENCE, QUIET)
        yield


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty state folder with its databases, for copies: creating their tables takes seconds."""

    def build(home: Path) -> None:
        service = build_service(Settings(home=home))
        _ = service.registry._client
        service.store.close()

    return build_folder_once(tmp_path_factory, "empty-home", build)


@pytest.fixture(scope="session")
def trained_home(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder with a champion, for copies: the shipped predictor with the settings `QUICK`."""

    def build(home: Path) -> None:
        shutil.copytree(empty_home, home, dirs_exist_ok=True)
        service, bundle = build_service(Settings(home=home, training=QUICK)), load_shipped(INFERENCE_TARGET)
        bundle.predictor.config = QUICK
        with service.registry.run("shipped") as run_id:
            checksum, uri = log_bundle(bundle, a_subset().X, run_id)
        service.registry.promote(service.registry.register(uri, run_id, checksum))
        service.champions[INFERENCE].refresh()
        service.store.close()

    return build_folder_once(tmp_path_factory, "trained-home", build)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    binaries = server_binaries()
    if binaries is None:
        if os.environ.get(REQUIRED_VARIABLE) == "required":
            pytest.fail("no PostgreSQL server is installed, and the environment says it must be")
        pytest.skip("no PostgreSQL server is installed")
    with running_server(binaries) as url:
        yield url
