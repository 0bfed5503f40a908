from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, NAMES, OwnerOffsets
from roofcast.features.queries import FloatArray
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.boosted_trees import ResidualRegressor
from roofcast.training.learner.carry_over import QUEUEING, fit_carry_over
from roofcast.training.learner.errors.grouped_conformal import MIN_COMPETENT_OWNER, Origins
from roofcast.training.learner.ratio_model import HeldOutModel, RatioModel, fit_held_out, predict_by_fold
from tests.training.builders import QUICK

METRIC = "tpot_s"


def test_what_trees_learn_from_one_stack_carries_over_as_far_as_others_show_it(subset: TrainingSet) -> None:
    """Trees learn a factor from each stack; on the stacks left out a half of its logarithm is there."""
    model = RatioModel(QUICK, (METRIC,)).fit(subset.X, subset.y, subset.groups)
    estimate = model.predict_ratio(subset.X)
    correction = np.log(estimate.value[METRIC] / estimate.estimates[METRIC])
    owners = pd.Series(np.resize(["a", "b", "c"], len(subset.X)), subset.X.index)
    y = subset.y.assign(**{METRIC: estimate.estimates[METRIC] * np.exp(0.5 * correction)})
    every = [HeldOutModel(model, np.arange(len(subset.X)))]
    origins = build_origins(subset.groups, owners)
    assert fit_carry_over(every, subset.X, y, origins)[1][METRIC] == pytest.approx(0.5)
    assert (fit_carry_over(every, subset.X, subset.y * np.nan, origins)[1][METRIC] == 1.0).all()
    half = {METRIC: np.full(len(ENGINES), 0.5)}
    predicted = predict_by_fold([fold.carried_over(1.0, half) for fold in every], subset.X)[METRIC]
    np.testing.assert_allclose(predicted, y[METRIC], rtol=1e-6)


def test_each_stack_is_predicted_by_a_model_that_never_saw_it(subset: TrainingSet) -> None:
    owners = pd.Series(np.resize(["a", "b", "c"], len(subset.X)), subset.X.index)
    predictor = RatioModel(QUICK, (METRIC,))
    folds = fit_held_out(predictor, subset.X, subset.y, subset.groups, held_out=owners)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(subset.X)))
    for fold in folds:
        absurd = subset.y.copy()
        absurd.iloc[fold.test] *= 1000
        again = fit_held_out(predictor, subset.X, absurd, subset.groups, held_out=owners)
        same = next(other for other in again if np.array_equal(other.test, fold.test))
        X = subset.X.iloc[fold.test]
        np.testing.assert_array_equal(same.model.predict(X), fold.model.predict(X))


@pytest.mark.parametrize(("single", "share"), [(1.5, 0.5), (3.0, 0.8)])
def test_an_owner_weighs_as_the_root_of_its_rows(single: float, share: float) -> None:
    """Four rows of one owner weigh two, more than a correction of 1.5 of another owner, and less than one of 3."""
    owners = pd.Series(["four"] * 4 + ["single"])
    correction = np.array([1.0, 1.0, 1.0, 1.0, single])
    prediction = SimpleNamespace(
        value={METRIC: np.exp(correction)},
        estimates={METRIC: np.ones(5)},
        is_own=lambda _: np.ones(5, dtype=bool),
        apply_shifts=lambda shifts: {METRIC: np.exp(correction + shifts[METRIC])},
    )
    model = SimpleNamespace(
        coefficients=None, carried_over=lambda _: SimpleNamespace(predict_ratio=lambda _: prediction)
    )
    y = pd.DataFrame({METRIC: np.exp(correction * np.array([0.5, 0.5, 0.5, 0.5, 0.8]))})
    X = pd.DataFrame({"config.engine": np.zeros(5)})
    folds = [HeldOutModel(cast("RatioModel", model), np.arange(5))]
    assert fit_carry_over(folds, X, y, build_origins(owners, owners))[1][METRIC] == pytest.approx(share)


def build_origins(lineages: pd.Series, owners: pd.Series) -> Origins:
    return Origins(lineages, owners, pd.Series(False, owners.index))


def test_coefficients_carry_over_as_far_as_stacks_left_out_are_between_prior_and_fit(subset: TrainingSet) -> None:
    """Measurements half way between two estimates, in the logarithms of the coefficients, choose half."""
    owners = pd.Series(np.resize(["a", "b", "c"], len(subset.X)), subset.X.index)
    model = RatioModel(QUICK, (METRIC,), DEFAULT_COEFFICIENTS.with_values(dense_ratio=3.0, layer_overhead_s=2e-4))
    model.fit(subset.X, subset.y * np.nan, subset.groups)
    model.coefficients = None
    model.metrics_, model.regressors_ = (METRIC,), {METRIC: cast("ResidualRegressor", _Constant())}
    half = model.carried_over(0.5).predict_ratio(subset.X).estimates[METRIC]
    y = subset.y.assign(**{METRIC: half})
    every = [HeldOutModel(model, np.arange(len(subset.X)))]
    found, _ = fit_carry_over(every, subset.X, y, build_origins(subset.groups, owners))
    assert (found == 0.5).all()


def test_engines_that_no_competent_operator_runs_have_a_share_of_their_own(subset: TrainingSet) -> None:
    """Measurements by the priors on one engine, and half way from them on another."""
    n = len(subset.X)
    engine = np.resize([ENGINES.index("vllm"), ENGINES.index("tgi")], n)
    X = subset.X.assign(**{"config.engine": engine.astype(float)})
    owners = pd.Series(np.resize([f"owner {i}" for i in range(MIN_COMPETENT_OWNER)], n), X.index)
    model = RatioModel(QUICK, (METRIC,), DEFAULT_COEFFICIENTS.with_values(dense_ratio=3.0, layer_overhead_s=2e-4))
    model.fit(X, subset.y * np.nan, subset.groups)
    model.coefficients = None
    model.metrics_, model.regressors_ = (METRIC,), {METRIC: cast("ResidualRegressor", _Constant())}
    share = np.zeros((len(ENGINES), len(NAMES)))
    share[np.ix_(np.array(ENGINES) != "vllm", ~np.isin(NAMES, QUEUEING))] = 0.5
    y = subset.y.assign(**{METRIC: model.carried_over(share).predict_ratio(X).estimates[METRIC]})
    origins = Origins(subset.groups, owners, pd.Series(engine == ENGINES.index("vllm"), X.index))
    found, _ = fit_carry_over([HeldOutModel(model, np.arange(n))], X, y, origins)
    np.testing.assert_array_equal(found, share)


def test_owners_keep_their_coefficients_when_less_carries_over() -> None:
    fitted = DEFAULT_COEFFICIENTS.with_values(wait_step=4.0)
    model = RatioModel()
    model.coefficients_ = fitted
    model.owner_offsets_ = OwnerOffsets(("a",), np.array([0]), np.full((1, len(fitted.typical)), 0.1))
    other = model.carried_over(0.25)
    for name in ("wait_step", "dense_ratio"):
        before, after = (m.owner_offsets_.of_owner("a", m.coefficients_).value(name, "vllm") for m in (model, other))
        assert after == pytest.approx(before)
    assert other.coefficients_.value("wait_step", "vllm") == pytest.approx(4.0**0.25)


class _Constant:
    def predict_unchecked(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X))
