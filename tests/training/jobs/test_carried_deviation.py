import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from roofcast.features.queries import FloatArray
from roofcast.training.jobs.held_out import CarriedDeviation
from roofcast.training.learner.carry_over import carry_over_share
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal

MANY = np.array(["a"] * 8 + ["b", "c"], dtype=object)


@pytest.mark.parametrize(
    ("correction", "factor", "owner", "share"),
    [
        (np.resize([0.2, -0.2], 10), np.array([0.9] * 8 + [0.4, 0.3]), MANY, 0.4),
        (np.array([0.1, 0.2, -0.3]), -1.0, MANY[7:], 0.0),
        (np.array([0.1, 0.2, -0.3]), 2.0, MANY[7:], 1.0),
        (np.zeros(2), 1.0, MANY[8:], 1.0),
    ],
    ids=["one vote an owner", "not turned", "not enlarged", "no correction"],
)
def test_the_share_that_carries_over_is_the_median_of_owners(
    correction: FloatArray, factor: FloatArray | float, owner: npt.NDArray[np.object_], share: float
) -> None:
    assert carry_over_share(correction, factor * correction, owner, size_exponent=0.0) == pytest.approx(share)


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_intervals_cover_new_groups_as_often_as_they_promise(slope: float) -> None:
    generator, n_group, n_row, level, inside = np.random.default_rng(0), 30, 8, 0.9, []
    group = np.repeat(np.arange(n_group + 1), n_row).astype(object)
    for _ in range(300):
        predicted = np.exp(generator.normal(-2.0, 0.7, len(group)))
        shared = np.repeat(generator.normal(size=n_group + 1), n_row)
        error = np.abs(0.3 * predicted**slope * (shared + 0.5 * generator.normal(size=len(group))))
        old, new = slice(n_row, None), slice(n_row)
        deviation = CarriedDeviation.fit(error[old], predicted[old], group[old])
        scores = error[old] / deviation.carry(predicted[old])
        half = GroupedConformal(scores, pd.Series(group[old])).quantile(level) * deviation.carry(predicted[new])
        inside.append(float((error[new] <= half).mean()))
    error_of_mean = np.std(inside) / np.sqrt(len(inside))
    assert level * n_group / (n_group + 1) - 3.0 * error_of_mean < np.mean(inside) < level + 3.0 * error_of_mean


def test_deviations_that_tell_nothing_of_new_groups_become_one() -> None:
    generator = np.random.default_rng(0)
    predicted, error = np.exp(generator.normal(size=(2, 400)))
    deviation = CarriedDeviation.fit(error, predicted, np.arange(400).astype(object))
    assert deviation.slope < 0.1
    assert CarriedDeviation.fit(predicted * error**0.1, predicted, np.arange(400).astype(object)).slope > 0.8
    assert CarriedDeviation.fit(error, np.ones(400), np.arange(400).astype(object)).slope == 1.0
