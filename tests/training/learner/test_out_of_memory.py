import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.out_of_memory import (
    Attempts,
    OutOfMemoryClassifier,
    build_attempts,
    fit_out_of_memory,
    memory_columns,
    memory_of,
    missing_profiles,
)
from tests.effort import n_example
from tests.training.builders import measurements

UNFUSED = "nvidia-v100-pcie-16gb"


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base.BaseEstimator`")
    each_rule = parametrize_with_checks([OutOfMemoryClassifier()])


@each_rule  # type: ignore[untyped-decorator]
def test_the_classifier_keeps_scikit_learns_rules(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@settings(max_examples=n_example(30), deadline=None)
@given(st.integers(0, 2**16), st.integers(0, 2), st.floats(0.1, 5.0))
def test_the_chance_never_rises_with_a_column(seed: int, column: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    ran = rng.random(40) < 0.5
    ran[:2] = True, False
    classifier = OutOfMemoryClassifier().fit(X, ran)
    worse = X.copy()
    worse[:, column] += step
    assert (classifier.slope_ <= 0).all()
    assert (classifier.predict_proba(worse)[:, 1] <= classifier.predict_proba(X)[:, 1] + 1e-12).all()


def test_it_finds_the_odds_that_made_the_data() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 2))
    ran = rng.random(20000) < 1 / (1 + np.exp(-(1.0 - 2.0 * X[:, 0])))
    classifier = OutOfMemoryClassifier().fit(X, ran)
    assert classifier.intercept_ == pytest.approx(1.0, abs=0.1)
    assert classifier.slope_ == pytest.approx([-2.0, 0.0], abs=0.1)


def test_missing_profiles_are_those_that_memory_alone_explains(campaign: TrainingSet) -> None:
    rows = campaign.measurements
    missing = missing_profiles(rows)
    key = ["model", "accelerator", "n_accelerator"]
    assert len(missing) == 35
    assert missing[key].merge(rows[key]).empty
    assert set(missing.loc[missing["n_accelerator"] > 1, "model"]) <= set(
        rows.loc[rows["n_accelerator"] > 1, "model"]
    )
    assert not missing.loc[missing["accelerator"] == UNFUSED, "flash_attention"].astype(bool).any()
    assert missing_profiles(rows.head(0)).empty


def test_a_deployment_is_its_hardest_run_and_its_easiest_failure(attempts: Attempts) -> None:
    told = attempts.rows.assign(ran=attempts.ran)
    batches = told[(told["campaign"] == "fastertransformer") & (told["model"] == "NeMo/gpt3_20b")]
    single = batches[batches["n_accelerator"] == 1].set_index("ran")["concurrency"]
    assert single.to_dict() == {True: 64.0, False: 128.0}
    assert not told.duplicated(["model", "accelerator", "n_accelerator", "engine", "weight_precision", "ran"]).any()
    assert attempts.rows.loc[~attempts.ran, "is_inferred"].value_counts().to_dict() == {True: 35, False: 2}
    assert not attempts.rows.loc[attempts.ran, "is_inferred"].any()


def test_failures_that_cannot_be_described_are_left_out(campaign: TrainingSet) -> None:
    rows = measurements({"model": "nobody/knows"}, {"n_accelerator": 3, "tp": 2}).assign(status="out_of_memory")
    catalog = load_catalog()
    assert build_attempts(campaign.measurements, rows, catalog.models, catalog.accelerators).ran.sum() == 66


def test_a_whole_static_batch_must_be_held_and_one_request_of_a_loop() -> None:
    catalog = load_catalog()
    rows = load_campaigns(["fastertransformer"]).head(1)
    rows = pd.concat([rows, rows.assign(concurrency=rows["concurrency"] * 4, load="static_batch")] * 2)
    rows = rows.assign(load=["static_batch"] * 2 + ["closed_loop"] * 2).reset_index(drop=True)
    X = describe(rows, catalog.models, catalog.accelerators)
    memory = memory_of(X)
    crowding = memory_columns(X, memory)[:, 1]
    assert crowding[2] == crowding[3] <= crowding[0] <= crowding[1]
    assert memory_columns(X, memory)[:, 0] == pytest.approx(np.log(memory.needed_byte / memory.usable_byte))


def test_there_is_no_classifier_where_all_ran(attempts: Attempts) -> None:
    ran = attempts.ran
    some = Attempts(attempts.rows[ran], attempts.X[ran], ran[ran], attempts.groups[ran])
    assert fit_out_of_memory(some) is None
    classifier = fit_out_of_memory(attempts)
    assert classifier is not None
    assert classifier.classes_.tolist() == [False, True]
    chance = classifier.predict_proba(memory_columns(attempts.X, memory_of(attempts.X)))[:, 1]
    assert chance[ran].mean() > 0.9
    assert chance[~ran].mean() < 0.3
