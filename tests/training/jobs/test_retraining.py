"""Retraining of the predictor of training jobs from few campaigns: gate, budget, cancellation, rollback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.data.measurements.job_validation import validate_training_measurements
from roofcast.training.jobs.lifecycle import retraining
from roofcast.training.jobs.lifecycle.bundle import TRAINING_BUNDLES, JobBundle
from roofcast.training.jobs.lifecycle.fit import fit_job_bundle
from roofcast.training.jobs.lifecycle.retraining import retrain_jobs, training_excess
from roofcast.training.jobs.lifecycle.run_set import RunSet, build_run_set
from roofcast.training.jobs.shipped import load_shipped_job_bundle
from roofcast.training.lifecycle.registry.registry import Registry
from tests.data.row_builders import a_training_row

CAMPAIGNS = ["fms_fsdp", "fsdp_qlora", "litgpt", "ms_swift", "nemo", "torchtitan", "xtuner"]


def run_set(own: pd.DataFrame | None = None, key: str = "") -> RunSet:
    keys = None if own is None else pd.Series([key] * len(own), dtype=object)
    return build_run_set(load_job_campaigns(CAMPAIGNS), own, keys, job_catalog())


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
    return Registry(tmp_path, None, None, None, TRAINING_BUNDLES)


def test_a_retraining_from_own_runs_is_judged_promoted_and_rolled_back(registry: Registry[JobBundle]) -> None:
    first = retrain_jobs(run_set(), registry)
    assert (first.promoted, first.reason) == (True, "there was no champion")
    before = rates(registry.load(registry.find(first.version)))
    second = retrain_jobs(run_set(own_runs(3)), registry)
    assert second.n_row == first.n_row + 3
    assert second.champion_error is not None
    champion = registry.champion()
    assert champion is not None
    assert champion.version == (second.version if second.promoted else first.version)
    registry.promote(first.version)
    np.testing.assert_array_equal(rates(registry.load(registry.find(first.version))), before)


def test_the_shipped_predictor_and_one_of_few_runs_are_within_the_budget(candidate: JobBundle) -> None:
    shipped = load_shipped_job_bundle()
    assert shipped is not None
    for bundle in (shipped, candidate):
        assert training_excess(bundle, run_set()) == ""


def test_a_candidate_beyond_the_budget_is_registered_and_not_promoted(
    candidate: JobBundle, registry: Registry[JobBundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = replace(candidate, row_ids=tuple(f"{i * 2654435761 % 2**32:08x}" for i in range(300_000)))
    monkeypatch.setattr(retraining, "fit_job_bundle", lambda *_: large)
    report = retrain_jobs(run_set(), registry)
    assert not report.promoted
    assert report.reason.startswith("its bundle has ")
    assert registry.champion() is None
    assert report.reason in registry.find(report.version).description


class StoppedError(Exception):
    """The retraining was cancelled."""


def test_a_retraining_can_be_stopped_before_every_fold_and_before_its_registration(
    registry: Registry[JobBundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def progress(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        for i, item in enumerate(items):
            steps.append(f"{label} {i + 1}/{total}")
            if label == "registration":
                raise StoppedError
            yield item

    with pytest.raises(StoppedError):
        retrain_jobs(run_set(), registry, progress)
    folds = [
        f"candidate, {metric}, held-out lineages and stacks {i}/10"
        for metric in ("rate", "memory")
        for i in range(1, 11)
    ]
    assert steps == [*folds, "registration 1/1"]
    assert registry.versions() == []
