"""A retraining of one target: from the shipped and the stored rows to a registered candidate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.app_state.settings import Settings
from roofcast.training.cluster import folds_on
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.learned_targets import D, LearnedTarget
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.retraining import RetrainingReport, retrain

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore


def learning_rows(learned: LearnedTarget[D, Any], store: MeasurementStore, catalog: Catalog) -> D:
    """Return what a retraining of a target learns from: shipped and stored rows, each distinct one once."""
    stored = store.of(learned.name).load_learnable()
    return learned.learning_rows(stored.rows, stored.owners, catalog)


def retrain_target(
    learned: LearnedTarget[Any, Any],
    settings: Settings,
    store: MeasurementStore,
    catalog: Catalog,
    registry: Registry[Any],
    *,
    warn: Callable[[str], None],
    progress: Progress | None = None,
    shadow: bool | None = None,
    dask: str | None = None,
) -> RetrainingReport:
    """Fit a candidate to the measurements of a target and promote it if it is not worse than the champion.

    A state folder runs one retraining at a time; a second one warns and waits.

    Raises `InputError` if a scheduler is named for training jobs.

    - `catalog`, `registry`: Of the target.
    - `shadow`: Make the candidate the challenger instead; by default the settings say. A candidate of training jobs
      is only registered then.
    - `dask`: Scheduler of a cluster that fits the folds; by default that of the settings. Folds of training jobs are
      fitted here.
    """
    shadow = not settings.auto_promote if shadow is None else shadow
    is_inference = learned.name == INFERENCE
    if dask and not is_inference:
        raise InputError("dask", "is for inference; folds of training jobs are fitted here: leave it out")
    address = (settings.dask if dask is None else dask) if is_inference else ""
    with training_lock(settings.home, warn), folds_on(address):
        rows = learning_rows(learned, store, catalog)
        return retrain(learned, rows, registry, settings.training, progress, shadow=shadow)


@contextlib.contextmanager
def training_lock(home: Path, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of retrainings in a state folder; warn before a wait for another one."""
    lock = FileLock(home / "training.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        warn("another retraining runs in this state folder; this one starts when it has ended")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
