"""Errors imputed from other metrics, on a stack that takes longer than two others and did not measure TPOT."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roofcast.features.pipeline import METRICS
from roofcast.training.dataset.stacks import UPLOADED
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.errors.group_keys import build_group_keys, stack_keys
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle, load_bundle
from tests.training.builders import QUICK, repeated, synthetic


def three_stacks(subset: TrainingSet, slow: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]:
    """Return X, y, groups and stacks of means: two stacks take 1.5 and 2 times as long as the first, with noise."""
    data = repeated(synthetic(subset), "fast/a", slow, "fair/c")
    factor = data.stacks.map({"fast/a": 1.0, slow: 2.0, "fair/c": 1.5}).to_numpy()[:, None]
    error = np.random.default_rng(0).normal(0, 0.3, (len(data.X), 1)) + np.log(factor)
    y = data.y * np.exp(np.where(data.y.columns == THROUGHPUT, -error, error))
    return data.X.assign(**{"workload.is_mean": 1.0}), y, data.groups, data.stacks


@pytest.mark.parametrize("measured", [("itl_s",), ("e2e_s",), (THROUGHPUT,), ("ttft_s", THROUGHPUT)])
@pytest.mark.parametrize("slow", ["slow/b", ""])
def test_other_metrics_correct_the_tpot_of_a_stack(measured: tuple[str, ...], slow: str, subset: TrainingSet) -> None:
    """The slow stack, a measured one or the user's own, did not measure TPOT."""
    X, y, groups, stacks = three_stacks(subset, slow)
    y.loc[stacks == slow, ~y.columns.isin(measured)] = np.nan
    metrics = tuple(metric for metric in METRICS if metric in {"ttft_s", "tpot_s", "itl_s", THROUGHPUT, *measured})
    fitted = RoofcastPredictor(QUICK, metrics).fit(X, y, groups, stacks=stacks)
    asked = X.head(len(subset.X))
    others = fitted.on_stack("fast/a").predict_distribution(asked)
    own = (fitted.on_stack(slow) if slow else fitted).predict_distribution(asked)
    ratio = own.median / others.median
    assert 1.25 < ratio["tpot_s"].median() < 2.5
    assert 1.25 < ratio["itl_s"].median() < 2.5
    assert 0.4 < ratio[THROUGHPUT].median() < 0.8


def test_imputed_errors_of_an_api_key_correct_nothing(subset: TrainingSet) -> None:
    key = f"{UPLOADED}someone"
    X, y, groups, stacks = three_stacks(subset, key)
    y.loc[stacks == key, y.columns != "itl_s"] = np.nan
    fitted = RoofcastPredictor(QUICK, ("tpot_s", "itl_s")).fit(X, y, groups, stacks=stacks)
    assert not fitted.knows_stacks(pd.Series([key])).any()
    known = fitted.error_distributions_["tpot_s"]
    assert not np.isin(known.stack_points.stack, stack_keys(np.array([key], dtype=object))).any()
    assert len(known.training_row) == len(known.effects.training_points_.keys)


def test_cells_with_a_measured_error_have_no_imputed_one(subset: TrainingSet) -> None:
    """One stack measured each run's ITL in a row of its own, beside the TPOT of half of the runs."""
    X, y, groups, stacks = three_stacks(subset, "slow/b")
    has_tpot = np.arange(len(X)) % 2 == 0
    lacking = y.assign(tpot_s=np.nan)[["tpot_s", "itl_s"]]
    y = y[["tpot_s"]].where(has_tpot[:, None]).assign(itl_s=np.nan)
    X2, y2 = pd.concat([X, X], ignore_index=True), pd.concat([y, lacking], ignore_index=True)
    groups2, stacks2 = (pd.concat([names, names], ignore_index=True) for names in (groups, stacks))
    fitted = RoofcastPredictor(QUICK, ("tpot_s", "itl_s")).fit(X2, y2, groups2, stacks=stacks2)
    known, measured = fitted.error_distributions_["tpot_s"], build_group_keys(X[has_tpot], stacks[has_tpot]).cells()
    is_central = (X["workload.quantile"] == 0.5).to_numpy()
    imputed = known.stack_points.cells()[int((has_tpot & is_central).sum()) :]
    assert len(imputed) == len(np.unique(imputed)) > 0
    assert not np.isin(imputed, measured).any()


def test_a_saved_predictor_has_its_imputed_errors(subset: TrainingSet, tmp_path: Path) -> None:
    X, y, groups, stacks = three_stacks(subset, "slow/b")
    is_own = np.arange(len(X)) % 7 == 0
    y.loc[(stacks == "slow/b") | is_own, y.columns != "itl_s"] = np.nan
    fitted = RoofcastPredictor(QUICK, ("tpot_s", "itl_s")).fit(X, y, groups, stacks=stacks.mask(is_own, ""))
    known = fitted.error_distributions_["tpot_s"]
    assert len(known.training_row) < len(known.effects.training_points_.keys)
    stored = ModelBundle(fitted, ModelBundle.layout(), "", (), {}, (), ())
    loaded = load_bundle(tmp_path / "bundle", stored.save(tmp_path / "bundle")).predictor
    asked = X.head(9)
    points = CalibrationPoints(asked.head(2), y.head(2))
    for given in (None, points):
        for name in ("", "slow/b"):
            before, after = (
                (p.on_stack(name) if name else p).condition_on(given).predict_distribution(asked)
                for p in (fitted, loaded)
            )
            pd.testing.assert_frame_equal(before.median, after.median)
            pd.testing.assert_frame_equal(before.log_sd, after.log_sd)
    once = fitted.on_stack("slow/b")
    twice = once.on_stack("slow/b").predict_distribution(asked).log_sd
    pd.testing.assert_frame_equal(once.predict_distribution(asked).log_sd, twice)


def test_means_come_before_medians(subset: TrainingSet) -> None:
    """The slow stack measured each run's mean and median ITL; by the medians it is nine times as slow."""
    X, y, groups, stacks = three_stacks(subset, "slow/b")
    is_slow = np.tile((stacks == "slow/b").to_numpy(), 2)
    both = pd.concat([X.assign(**{"workload.is_mean": 0.0}), X], ignore_index=True)
    y = pd.concat([y[["tpot_s", "itl_s"]]] * 2, ignore_index=True)
    groups, stacks = (pd.concat([names, names], ignore_index=True) for names in (groups, stacks))
    y.loc[is_slow & (both["workload.is_mean"] == 0.0), "itl_s"] *= 9.0
    y.loc[is_slow, "tpot_s"] = np.nan
    fitted = RoofcastPredictor(QUICK, ("tpot_s", "itl_s")).fit(both, y, groups, stacks=stacks)
    slow, fast = (
        fitted.on_stack(name).predict_distribution(X.head(len(subset.X))).median["tpot_s"]
        for name in ("slow/b", "fast/a")
    )
    assert 1.0 < (slow / fast).median() < 1.7
