"""Candidates that are too large or too slow are not promoted."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.gate.budget import MAX_RATIO, N_QUERY, over_budget, query_rows
from roofcast.training.lifecycle.inference_learner import fit_bundle
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.registry.registry import Champion, Registry, ShippedPredictor
from roofcast.training.lifecycle.retraining import retrain
from roofcast.training.lifecycle.shipped import load_shipped
from tests.training.builders import QUICK, QUIET

Predict = Callable[[ModelBundle], object]


@pytest.fixture(scope="module")
def candidate(subset: TrainingSet) -> ModelBundle:
    return fit_bundle(subset, QUICK)


@pytest.fixture(scope="module")
def predict(subset: TrainingSet) -> Predict:
    queries = subset.X.iloc[query_rows(len(subset.X))]
    return lambda bundle: bundle.predictor.predict_distribution(queries)


def test_shipped_and_small_predictors_are_within_the_budget(candidate: ModelBundle, predict: Predict) -> None:
    shipped = load_shipped(INFERENCE_TARGET)
    for bundle, limit in ((shipped, shipped), (candidate, shipped), (candidate, None)):
        assert over_budget(bundle, limit, predict, N_QUERY) == ""


def test_a_bundle_that_is_too_large_is_named_with_both_sizes(candidate: ModelBundle, predict: Predict) -> None:
    ids = tuple(f"{i * 2654435761 % 2**32:08x}" for i in range(500_000))
    excess = over_budget(replace(candidate, row_ids=ids), candidate, predict, N_QUERY)
    ratio = f"more than {MAX_RATIO:g} times"
    assert re.match(rf"its bundle has [\d,]+ bytes, {ratio} the [\d,]+ bytes of the shipped predictor", excess)


def test_a_candidate_that_is_too_slow_is_named_with_both_times(candidate: ModelBundle, predict: Predict) -> None:
    slow = replace(candidate)

    def predict_slowly(bundle: ModelBundle) -> object:
        return [predict(bundle) for _ in range(6 if bundle is slow else 1)]

    excess = over_budget(slow, candidate, predict_slowly, 7)
    assert "ms of processor time for 7 predictions, more than 2 times the" in excess


def test_a_candidate_beyond_the_budget_is_registered_and_not_promoted(
    candidate: ModelBundle, subset: TrainingSet, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "shipped.roofcast"
    shipped = ShippedPredictor(Champion("shipped-0", "", candidate.save(file)), file)
    registry, ids = Registry(home, shipped=shipped), tuple(f"{i * 2654435761 % 2**32:08x}" for i in range(500_000))
    large = replace(QUIET, fit=lambda *_: replace(candidate, row_ids=ids))
    report = retrain(large, subset, registry, QUICK)
    assert not report.promoted
    assert report.reason.startswith("its bundle has ")
    assert registry.champion() == shipped.champion
    assert report.reason in registry.find(report.version).description
