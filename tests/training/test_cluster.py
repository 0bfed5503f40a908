"""Folds on a Dask cluster: the same predictions, also when a worker dies; workers of other versions are refused."""

import os
import signal
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from roofcast.data.errors import InputError, NotReadyError
from roofcast.training.cluster import check_workers, environment, folds_on
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import Progress
from tests.training.builders import QUICK

distributed = pytest.importorskip("distributed")


def fit(data: TrainingSet, progress: Progress | None = None) -> RoofcastPredictor:
    return RoofcastPredictor(QUICK, ("tpot_s",)).fit(data.X, data.y, data.groups, progress)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Return a cluster of two worker processes."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.slow
def test_predictions_are_those_of_one_process_though_a_worker_is_killed(subset: TrainingSet, cluster: Any) -> None:
    alone = fit(subset)
    pids = [worker.pid for worker in cluster.workers.values()]
    killed = []

    def kill_one(folds: Iterable[Any], n_fold: int, label: str) -> Iterator[Any]:
        for n_done, fold in enumerate(folds):
            if n_done == 0:
                os.kill(pids[0], signal.SIGKILL)
                killed.append((label, n_fold))
            yield fold

    with folds_on(cluster.scheduler_address):
        together = fit(subset)
        survived = fit(subset, kill_one)
    assert killed
    for other in (together, survived):
        for one, expected in ((other.held_out_, alone.held_out_), (other.predict(subset.X), alone.predict(subset.X))):
            np.testing.assert_allclose(one.to_numpy(), expected.to_numpy(), rtol=1e-12)


def test_a_worker_of_another_version_is_refused() -> None:
    own = environment()
    check_workers({"tcp://a:1": own}, "tcp://s:2")
    with pytest.raises(InputError, match=r"dask: the worker tcp://b:1 has numpy 1.0, not .*: install the same"):
        check_workers({"tcp://a:1": own, "tcp://b:1": own | {"numpy": "1.0"}}, "tcp://s:2")
    with pytest.raises(NotReadyError, match="has no worker; start one: dask worker tcp://s:2"):
        check_workers({}, "tcp://s:2")


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofcast.training.cluster.CONNECT_S", 0.1)
    with (
        pytest.raises(NotReadyError, match="no Dask scheduler answers at"),
        folds_on("tcp://127.0.0.1:9"),
    ):
        raise AssertionError
