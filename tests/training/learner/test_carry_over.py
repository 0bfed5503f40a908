from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.carry_over import fit_carry_over
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
    assert fit_carry_over(every, subset.X, y, owners) == {METRIC: pytest.approx(0.5)}
    assert fit_carry_over(every, subset.X, subset.y * np.nan, owners) == {METRIC: 1.0}
    predicted = predict_by_fold(every, subset.X, {METRIC: 0.5})[METRIC]
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


@pytest.mark.parametrize(("single", "share"), [(1.5, 0.2), (3.0, 0.8)])
def test_an_owner_weighs_as_the_root_of_its_rows(single: float, share: float) -> None:
    """Four rows of one owner weigh two, more than a correction of 1.5 of another owner, and less than one of 3."""
    owners = pd.Series(["four"] * 4 + ["single"])
    correction = np.array([1.0, 1.0, 1.0, 1.0, single])
    prediction = SimpleNamespace(
        value={METRIC: np.exp(correction)}, estimates={METRIC: np.ones(5)}, is_own=lambda _: np.ones(5, dtype=bool)
    )
    model = cast("RatioModel", SimpleNamespace(predict_ratio=lambda _: prediction))
    y = pd.DataFrame({METRIC: np.exp(correction * np.array([0.2, 0.2, 0.2, 0.2, 0.8]))})
    assert fit_carry_over([HeldOutModel(model, np.arange(5))], y, y, owners) == {METRIC: pytest.approx(share)}
