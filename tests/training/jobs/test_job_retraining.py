"""Retraining of the predictor of training jobs from few campaigns: gate, budget, cancellation, rollback."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.data.measurements.job_validation import validate_training_measurements
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_learner import fit_job_bundle, predict_runs
from roofcast.training.jobs.run_set import RunSet, build_run_set
from roofcast.training.lifecycle.gate.budget import over_budget
from roofcast.training.lifecycle.learned_targets import JOB_TARGET
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.retraining import retrain
from roofcast.training.lifecycle.shipped import load_shipped
from tests.data.row_builders import a_training_row
from tests.training.lifecycle.registry.versions import champion_of

CAMPAIGNS = ["fms_fsdp", "fsdp_qlora", "litgpt", "ms_swift", "nemo", "torchtitan", "xtuner"]


def run_set(own: pd.DataFrame | None = None) -> RunSet:
    shipped = load_job_campaigns(CAMPAIGNS)
    own = shipped.iloc[:0] if own is None else own
    return build_run_set(shipped, own, pd.Series("", index=own.index, dtype=object), job_catalog())


def own_runs(n: int, **changes: Any) -> pd.DataFrame:
    rows = [a_training_row(campaign="nightly", n_accelerator=8 * (i + 1), **changes) for i in range(n)]
    return validate_training_measurements(pd.DataFrame(rows))


def rates(bundle: JobBundle) -> np.ndarray[Any, Any]:
    return bundle.predictor.predict(load_job_campaigns(["torchtune"]), coverage=0.5).token_per_s_per_accelerator


@pytest.fixture(scope="module")
def candidate() -> JobBundle:
    return fit_job_bundle(run_set())


@pytest.fixture
def registry(tmp_path: Path) -> Registry[JobBundle]:
    return Registry(tmp_path, None, None, None, JobBundle)


def test_a_retraining_from_own_runs_is_judged_promoted_and_rolled_back(registry: Registry[JobBundle]) -> None:
    first = retrain(JOB_TARGET, run_set(), registry)
    assert (first.promoted, first.reason) == (True, "there was no champion")
    before = rates(registry.load(registry.find(first.version)))
    second = retrain(JOB_TARGET, run_set(own_runs(3)), registry)
    assert second.n_row == first.n_row + 3
    assert second.champion_error is not None
    assert champion_of(registry).version == (second.version if second.promoted else first.version)
    registry.promote(first.version)
    np.testing.assert_array_equal(rates(registry.load(registry.find(first.version))), before)


def test_the_shipped_predictor_and_one_of_few_runs_are_within_the_budget(candidate: JobBundle) -> None:
    shipped = load_shipped(JOB_TARGET)
    for bundle in (shipped, candidate):
        assert over_budget(bundle, shipped, *predict_runs(run_set())) == ""


class StoppedError(Exception):
    """The retraining was cancelled."""


def test_a_retraining_can_be_stopped_before_each_step(
    registry: Registry[JobBundle],
) -> None:
    steps: list[str] = []

    def progress(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        for i, item in enumerate(items):
            steps.append(f"{label} {i + 1}/{total}")
            if label == "registration":
                raise StoppedError
            yield item

    with pytest.raises(StoppedError):
        retrain(JOB_TARGET, run_set(), registry, progress=progress)
    folds = [
        f"candidate, {metric}, held-out lineages and stacks {i}/10"
        for metric in ("rate", "memory")
        for i in range(1, 11)
    ]
    assert steps == [*folds, "registration 1/1"]
    assert registry.versions() == []
