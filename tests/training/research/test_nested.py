from typing import Any

import numpy as np
import pytest

from research import nested
from research.nested import (
    BLEND,
    LEARNERS,
    METHODS,
    NONE,
    PRESENT,
    WEIGHTED,
    Outcome,
    Split,
    blend_weights,
    build_splits,
    compare,
    corrections,
    seek,
)
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.pipeline import build_features
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.ratio_model import RatioModel

METRIC = "itl_s"


@pytest.fixture(scope="module", autouse=True)
def _few_trees() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested, "N_TREE", (5, 10))
        yield


def splits(data: TrainingSet, rows: Any = None, metric: str = METRIC) -> list[Split]:
    """Return the folds of some rows, or of all, under the priors."""
    rows = np.arange(len(data.X)) if rows is None else rows
    return [
        build_splits(data, rows[train], rows[test], DEFAULT_COEFFICIENTS, [metric])[metric]
        for train, test in leave_one_group_out(data.groups.iloc[rows])
    ]


@pytest.fixture(scope="module")
def outcomes(subset: TrainingSet) -> dict[str, Outcome]:
    outer = splits(subset)[0]
    return compare(outer, splits(subset, outer.train.row), n_trial=2)


def test_split_separates_lineages_and_tests_means_and_medians(campaign: TrainingSet) -> None:
    split = splits(campaign)[0]
    assert not set(campaign.groups.iloc[split.train.row]) & set(campaign.groups.iloc[split.test.row])
    quantile = campaign.X["workload.quantile"]
    assert set(quantile.iloc[split.test.row]) == {0.5}
    assert quantile.iloc[split.train.row].max() > 0.5
    _, estimates, _ = build_features(campaign.X, DEFAULT_COEFFICIENTS)
    row = split.test.row[0]
    assert np.exp(split.test.target[0]) * estimates[METRIC][row] == pytest.approx(campaign.y[METRIC].iloc[row])


def test_present_learner_is_the_production_learner(subset: TrainingSet) -> None:
    """Of a metric without gate, whose trees are as many as configured."""
    metric = "nttft_s_per_token"
    split = splits(subset, metric=metric)[0]
    train = split.train.row
    service = RatioModel(metrics=(metric,), coefficients=DEFAULT_COEFFICIENTS)
    service.fit(subset.X.iloc[train], subset.y.iloc[train], subset.groups.iloc[train])
    _, estimates, _ = build_features(subset.X, DEFAULT_COEFFICIENTS)
    predicted = estimates[metric][split.test.row] * np.exp(corrections(LEARNERS[PRESENT], {}, [split]))
    assert predicted == pytest.approx(service.predict(subset.X.iloc[split.test.row])[metric].to_numpy())


def test_methods_are_evaluated_on_the_same_rows(subset: TrainingSet, outcomes: dict[str, Outcome]) -> None:
    outer = splits(subset)[0]
    assert set(outcomes) == set(METHODS)
    for outcome in outcomes.values():
        assert outcome.row.tolist() == outer.test.row.tolist()
        assert len(outcome.inner) == len(np.unique(outer.train.row))
        assert np.isfinite(outcome.outer).all()
    assert outcomes[NONE].outer == pytest.approx(outer.test.target)


def test_outer_rows_do_not_affect_selection(subset: TrainingSet, outcomes: dict[str, Outcome]) -> None:
    data = TrainingSet(subset.measurements, subset.X, subset.y.copy(), subset.groups, subset.stacks, subset.ids)
    data.y.iloc[outcomes[NONE].row] *= 3.0
    outer = splits(data)[0]
    again = compare(outer, splits(data, outer.train.row), n_trial=2)
    for name, outcome in outcomes.items():
        assert again[name].settings == outcome.settings
        assert again[name].outer == pytest.approx(outcome.outer + np.log(3.0))


def test_weights_reduce_the_inner_error(outcomes: dict[str, Outcome]) -> None:
    error = {name: float(np.abs(outcome.inner).mean()) for name, outcome in outcomes.items()}
    assert error[WEIGHTED] <= min(error[NONE], error[PRESENT]) + 1e-9
    assert error[BLEND] <= min(error.values()) + 1e-9
    assert min(outcomes[BLEND].settings.values()) >= 0
    weight = outcomes[WEIGHTED].settings["weight"]
    correction = outcomes[NONE].outer - outcomes[PRESENT].outer
    assert outcomes[NONE].outer - outcomes[WEIGHTED].outer == pytest.approx(weight * correction)


def test_more_trials_do_not_increase_the_inner_error(subset: TrainingSet) -> None:
    inner, learner = splits(subset), LEARNERS["ridge"]
    known = np.concatenate([split.test.target for split in inner])

    def error(n_trial: int) -> float:
        return float(np.abs(known - corrections(learner, seek(learner, inner, n_trial), inner)).mean())

    assert error(8) <= error(1)
    assert seek(learner, inner, 3) == seek(learner, inner, 3)


@pytest.mark.parametrize("seed", range(3))
def test_blend_weights_minimise_the_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.standard_t(2, 60)
    best = blend_weights(X, y)
    assert (best >= 0).all()
    least = np.abs(y - X @ best).sum()
    for _ in range(200):
        other = np.maximum(best + 0.3 * rng.normal(size=3), 0.0)
        assert np.abs(y - X @ other).sum() >= least - 1e-9
