"""Artefacts shared by the pytest-xdist workers of a run: the first worker that needs one builds it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import joblib
import pytest
from filelock import FileLock

T = TypeVar("T")


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the run's temporary folder: the parent of each worker's own under pytest-xdist."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def build_folder_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """Return the run's folder of this name, built by the first worker that calls this; others wait for it.

    A failed build is repeated by the next worker, which so fails with the error itself. The folder is built where it
    stays, because MLflow stores absolute paths.
    """
    folder = shared_folder(factory) / f"shared-{name}"
    done = folder.with_suffix(".done")
    with FileLock(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            done.touch()
    return folder


def fit_once(factory: pytest.TempPathFactory, name: str, fit: Callable[[], T]) -> T:
    """Return the run's object of this name, fitted by the first worker and loaded by the others."""
    folder = build_folder_once(factory, name, lambda folder: joblib.dump(fit(), folder / "object.joblib"))
    fitted: T = joblib.load(folder / "object.joblib")
    return fitted
