"""Candidates that are too large or too slow are not promoted."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle import retraining
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.gate.budget import MAX_RATIO, N_QUERY, over_budget
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.retraining import fit_bundle, retrain
from roofcast.training.lifecycle.shipped import load_shipped
from tests.training.builders import QUICK


@pytest.fixture(scope="module")
def candidate(subset: TrainingSet) -> ModelBundle:
    return fit_bundle(subset, QUICK)


@dataclass
class SlowBundle:
    """A bundle whose predictions take several times as long."""

    bundle: ModelBundle
    n_time: int
    n_query: int = 0

    def save(self, path: Path) -> str:
        return self.bundle.save(path)

    def predict(self, X: pd.DataFrame, assumed: list[str]) -> Any:
        self.n_query = len(X)
        for _ in range(1, self.n_time):
            self.bundle.predict(X, assumed)
        return self.bundle.predict(X, assumed)


def test_the_shipped_predictor_and_a_small_one_are_within_the_budget(
    candidate: ModelBundle, subset: TrainingSet
) -> None:
    shipped = load_shipped()
    assert shipped is not None
    assert over_budget(shipped, subset.X) == ""
    assert over_budget(candidate, subset.X) == ""


def test_a_bundle_that_is_too_large_is_named_with_both_sizes(candidate: ModelBundle, subset: TrainingSet) -> None:
    ids = tuple(f"{i * 2654435761 % 2**32:08x}" for i in range(500_000))
    excess = over_budget(replace(candidate, row_ids=ids), subset.X, candidate)
    ratio = f"more than {MAX_RATIO:g} times"
    assert re.match(rf"its bundle has [\d,]+ bytes, {ratio} the [\d,]+ bytes of the shipped predictor", excess)


def test_a_candidate_that_is_too_slow_is_named_with_both_times(candidate: ModelBundle, subset: TrainingSet) -> None:
    slow = SlowBundle(candidate, 6)
    assert "ms of processor time" in over_budget(cast("ModelBundle", slow), subset.X, candidate)
    assert 0 < slow.n_query <= N_QUERY


def test_a_candidate_beyond_the_budget_is_registered_and_not_promoted(
    subset: TrainingSet, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retraining, "over_budget", lambda *_: "it takes too long")
    registry = Registry(home)
    report = retrain(subset, registry, QUICK)
    assert (report.promoted, report.reason) == (False, "it takes too long")
    assert registry.champion() is None
    assert "it takes too long" in registry.find(report.version).description
