"""Intervals of groups never seen, on errors whose law is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from roofcast.features.columns import FEATURE_NAMES
from roofcast.training.learner.boosted_trees import at_quantile
from roofcast.training.learner.errors.error_distribution import ErrorDistribution, FoldErrors, fit_error_distribution
from roofcast.training.learner.errors.group_keys import TARGET_STACK, GroupKeys
from roofcast.training.learner.errors.grouped_conformal import Origins
from tests.training.builders import places_of

FloatArray = npt.NDArray[np.float64]

N_GROUP, N_NEW, N_WORLD = 40, 400, 3
LEVELS = (0.5, 0.8, 0.9)
BUSY = FEATURE_NAMES.index("memory.pressure_log")
"""The column that the size of the errors hangs on."""


@dataclass(frozen=True)
class Rows:
    features: FloatArray
    places: GroupKeys
    error: FloatArray
    group: pd.Series

    def fit(
        self, held_out: FloatArray | None = None, owners: pd.Series | None = None, **changes: Any
    ) -> tuple[ErrorDistribution, FloatArray, FloatArray]:
        """Return what is fitted to rows whose lineages, and not stacks, were held out, if nothing else is given."""
        none, every = np.zeros(len(self.error)), np.ones(len(self.error), dtype=bool)
        residual = changes.pop("residual", none)
        options = {"stack_residual": residual, "fold_errors": self.fold_errors, "is_central": every} | changes
        errors = np.stack([self.error, np.full(len(none), np.nan)]) if held_out is None else held_out
        owner = self.group if owners is None else owners
        origins = Origins(self.group, owner, pd.Series(False, index=owner.index))
        return fit_error_distribution(self.features, self.places, errors, origins, residual=residual, **options)

    def fitted(self, residual_share: float = 0.0, **changes: Any) -> ErrorDistribution:
        """Return the distribution if the final predictor's residuals are a share of the errors."""
        return self.fit(residual=residual_share * self.error, **changes)[0]

    @property
    def fold_errors(self) -> FoldErrors:
        """Errors of models that have learnt nothing from any row, each without one group."""
        return FoldErrors(self.group.to_numpy(), np.tile(self.error, (self.group.nunique(), 1)))

    def is_inside(self, known: ErrorDistribution, level: float) -> npt.NDArray[np.bool_]:
        mean, sd, _ = known.predict(self.features, self.places)
        return np.asarray(np.abs(self.error - mean) <= sd * known.conformal.quantile(level))


def draw_rows(n_group: int, n_each: int, seed: int, first_group: int = 1) -> Rows:
    """Return rows of LLMs that each err in their own way, more on some engines and with long tails where busy."""
    rng = np.random.default_rng(seed)
    n = n_group * n_each
    group = np.repeat(np.arange(n_group), n_each)
    features = np.zeros((n, len(FEATURE_NAMES)))
    features[:, [BUSY, 0, 1]] = rng.uniform(0, 1, (n, 3))
    size = np.where(features[:, BUSY] > 0.5, 0.3, 0.1)
    keys = dict.fromkeys(("precision", "load", "split", "kind"), np.ones(n, dtype=np.int64))
    keys |= {
        "model": group + first_group,
        "engine": rng.integers(1, 4, n),
        "accelerator": rng.integers(1, 4, n_group)[group],
    }
    engine = np.array([0.0, 0.6, -0.4, 0.2])[keys["engine"]]
    error = size * (engine + rng.normal(0, 0.6, n_group)[group] + 0.7 * rng.standard_t(4, n))
    return Rows(features, places_of(keys, rng.uniform(0, 6, (n, 3))), error, pd.Series(group))


@pytest.fixture(scope="module")
def worlds() -> list[tuple[ErrorDistribution, Rows]]:
    """Return what was fitted in each world, and one row of each of its LLMs that were never seen."""
    return [
        (draw_rows(N_GROUP, 4, seed).fitted(), draw_rows(N_NEW, 1, 100 + seed, first_group=10_000))
        for seed in range(N_WORLD)
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_intervals_hold_new_groups_as_promised(level: float, worlds: list[tuple[ErrorDistribution, Rows]]) -> None:
    """The quantile scatters as one of `N_GROUP` in each world, the count of those inside as a binomial."""
    share = np.mean([rows.is_inside(known, level).mean() for known, rows in worlds])
    scatter = np.sqrt(level * (1 - level) * (1 / (N_WORLD * N_GROUP) + 1 / (N_WORLD * N_NEW)))
    assert level * N_GROUP / (N_GROUP + 1) - 3 * scatter < share < level + 3 * scatter


def test_a_tail_has_the_mean_and_the_median_sd_of_its_median(worlds: list[tuple[ErrorDistribution, Rows]]) -> None:
    known, rows = worlds[0]
    is_tail = np.arange(len(rows.features)) % 2 == 0
    tails = np.where(is_tail[:, None], at_quantile(rows.features, 0.95), rows.features)
    error = known.predict(tails, rows.places)
    median = known.predict(at_quantile(rows.features, 0.5), rows.places)
    np.testing.assert_array_equal(error.mean[is_tail], median.mean[is_tail])
    np.testing.assert_array_equal(error.median_sd[is_tail], median.sd[is_tail])
    plain = known.predict(rows.features, rows.places)
    np.testing.assert_array_equal(error.sd[~is_tail], plain.sd[~is_tail])


def test_intervals_are_wide_where_errors_are_large(worlds: list[tuple[ErrorDistribution, Rows]]) -> None:
    inside: dict[bool, list[float]] = {True: [], False: []}
    for known, rows in worlds:
        sd = known.predict(rows.features, rows.places)[1]
        is_busy = rows.features[:, BUSY] > 0.5
        assert sd[is_busy].mean() > 1.5 * sd[~is_busy].mean()
        for busy, part in inside.items():
            part.append(float(rows.is_inside(known, 0.8)[is_busy == busy].mean()))
    assert {busy: np.mean(part) for busy, part in inside.items()} == pytest.approx({True: 0.8, False: 0.8}, abs=0.12)


def test_residuals_that_engines_share_shift_the_mean(worlds: list[tuple[ErrorDistribution, Rows]]) -> None:
    for seed, (learnt, rows) in enumerate(worlds):
        left = draw_rows(N_GROUP, 4, seed).fitted(residual_share=1.0)
        assert np.corrcoef(left.predict(rows.features, rows.places)[0], rows.error)[0, 1] > 0.2
        np.testing.assert_array_equal(learnt.predict(rows.features, rows.places)[0], 0.0)


def test_calibration_points_of_a_new_group_reduce_its_errors(worlds: list[tuple[ErrorDistribution, Rows]]) -> None:
    known = worlds[0][0]
    rows = draw_rows(60, 6, 7, first_group=10_000)
    before = np.abs(rows.error - known.predict(rows.features, rows.places)[0])
    after = np.empty(len(before))
    for group in range(60):
        inside = (rows.group == group).to_numpy()
        given = inside & (np.arange(len(before)) % 6 < 3)
        told = known.condition_on(rows.features[given], rows.places.take(given), rows.error[given])
        after[inside] = np.abs(rows.error[inside] - told.predict(rows.features[inside], rows.places.take(inside))[0])
    asked = np.arange(len(before)) % 6 >= 3
    assert after[asked].mean() < 0.97 * before[asked].mean()


def test_tails_count_for_the_scale_and_not_for_the_effects() -> None:
    rows = draw_rows(12, 4, 3)
    is_central = np.arange(48) % 4 > 0
    known, _, expected = rows.fit(residual=rows.error, is_central=is_central)
    assert is_central[known.training_row].all()
    assert known.conformal.n_group == 12
    np.testing.assert_array_equal(np.isnan(expected[0]), ~is_central)
    assert np.isnan(expected[1]).all()
    scores = np.abs(rows.error)[is_central] / expected[0, is_central]
    assert np.median(scores) == pytest.approx(known.conformal.quantile(0.5), rel=0.2)


def test_the_joint_mean_is_that_of_the_interval(worlds: list[tuple[ErrorDistribution, Rows]]) -> None:
    known, rows = worlds[0]
    some = rows.places.take(np.arange(20))
    mean, covariance = known.predict_joint(rows.features[:20], some)
    np.testing.assert_allclose(mean, known.predict(rows.features[:20], some)[0])
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


def draw_stacks(n_stack: int, seed: int, first_stack: int = 1) -> tuple[Rows, npt.NDArray[np.intp]]:
    """Return rows of five LLMs on each stack, every stack off by a factor of its own, and their stacks."""
    rows = draw_rows(5, 4, seed)
    rng = np.random.default_rng(seed)
    n = len(rows.error) * n_stack
    stack = np.repeat(np.arange(n_stack), len(rows.error))
    tiled = np.tile(np.arange(len(rows.error)), n_stack)
    error = rng.normal(0, 0.4, n_stack)[stack] + 0.05 * rng.normal(size=n)
    keys = GroupKeys(rows.places.keys[tiled], rows.places.workload[tiled], (stack + first_stack).astype(np.uint64))
    return Rows(rows.features[tiled], keys, error, rows.group.iloc[tiled].reset_index(drop=True)), stack


def fit_to_stacks() -> ErrorDistribution:
    """Return the distribution where trees have learnt the stacks of training, and those left out are off."""
    rows, stack = draw_stacks(50, 1)
    known = 0.05 * np.random.default_rng(2).normal(size=len(rows.error))
    errors = FoldErrors(rows.group.to_numpy(), np.tile(known, (5, 1)))
    return rows.fit(np.stack([known, rows.error]), pd.Series(stack).astype(str), fold_errors=errors)[0]


@dataclass(frozen=True)
class MeasuredStacks:
    """Stacks whose factor a model without a lineage leaves on the others; lineages show a share of it.

    What the model leaves on the lineage itself is absurd, for nothing may learn from that.
    """

    rows: Rows
    stack: npt.NDArray[np.intp]
    factor: FloatArray
    error: FloatArray

    def fitted(self) -> tuple[ErrorDistribution, FloatArray, FloatArray]:
        fold = self.rows.group.to_numpy()
        errors = FoldErrors(fold, np.where(np.arange(5)[:, None] == fold, 99.0, self.factor))
        held_out, owners = np.stack([self.error, self.factor]), pd.Series(self.stack).astype(str)
        return self.rows.fit(held_out, owners, stack_residual=self.factor, fold_errors=errors)


def draw_measured_stacks(share: float) -> MeasuredStacks:
    rows, stack = draw_stacks(30, 1)
    rng = np.random.default_rng(3)
    factor = rng.normal(0, 0.4, 30)[stack]
    return MeasuredStacks(rows, stack, factor, share * factor + 0.01 * rng.normal(size=len(factor)))


def test_scores_of_a_measured_stack_are_of_what_its_residuals_leave() -> None:
    shared = draw_measured_stacks(1.0)
    known, remaining, expected = shared.fitted()
    assert np.abs(remaining[0]).mean() < 0.4 * np.abs(shared.error).mean()
    np.testing.assert_array_equal(remaining[1:], [shared.factor, shared.error])
    scores = np.abs(remaining[0]) / expected[0]
    assert known.lineage_conformal.quantile(0.5) == pytest.approx(np.median(scores), rel=0.2)


def test_a_measured_stack_is_predicted_from_all_its_rows_and_from_no_others() -> None:
    drawn = draw_measured_stacks(1.0)
    known, rows = drawn.fitted()[0], drawn.rows
    assert len(known.stack_points.keys) == len(rows.error)
    stack = rows.places.stack == 4
    on_stack = known.on_measured_stacks(np.array([4], dtype=np.uint64))
    assert (on_stack.effects.training_points_.stack == 4).all()
    assert len(on_stack.effects.errors_) == stack.sum()
    left = drawn.factor - on_stack.predict(rows.features, rows.places).mean
    assert np.abs(left[stack]).mean() < 0.3 * np.abs(drawn.factor[stack]).mean()
    assert on_stack.conformal is known.lineage_conformal


def test_imputed_errors_of_a_named_stack_count_on_measured_stacks_alone() -> None:
    """A stack without measured errors has imputed ones of three times the scale; LLMs share a stack's error."""
    drawn = draw_measured_stacks(1.0)
    rows, before = drawn.rows, drawn.fitted()[0]
    first_stack = rows.places.take(np.flatnonzero(drawn.stack == 0))
    imputed = GroupKeys(first_stack.keys, first_stack.workload, np.full_like(first_stack.stack, 1000))
    n_row = len(imputed.keys)
    features = rows.features[:n_row]
    after = before.with_imputed_errors(features, imputed, np.zeros(n_row), np.full(n_row, 0.15))
    target = imputed.on_target_stack()
    expected, given = before.predict(features, target), after.predict(features, target)
    np.testing.assert_array_equal(given.mean, expected.mean)
    np.testing.assert_array_equal(given.sd, expected.sd)
    assert after.conformal is before.conformal
    assert after.lineage_conformal is before.lineage_conformal
    stacks = imputed.stack[:1]
    shifts = [one.on_measured_stacks(stacks).predict(features, imputed).mean for one in (before, after)]
    np.testing.assert_array_equal(shifts[0], 0.0)
    assert (shifts[1] > 0.05).all()


def test_imputed_errors_of_the_users_own_stack_count_without_a_name() -> None:
    rows = draw_rows(12, 4, 3)
    before, own_rows, named_rows = rows.fitted(), np.arange(6), np.arange(6, 12)
    own = rows.places.take(own_rows).on_target_stack()
    other = rows.places.take(named_rows)
    named = GroupKeys(other.keys, other.workload, np.full(6, 7, dtype=np.uint64))
    features = rows.features[np.append(named_rows, own_rows)]
    residual, stack_residual = np.repeat([0.0, 0.4], 6), np.repeat([-0.4, 0.4], 6)
    after = before.with_imputed_errors(features, named.append(own), residual, stack_residual)
    on_stack = after.on_measured_stacks(named.stack[:1])
    assert (after.predict(rows.features[own_rows], own).mean > 0.05).all()
    assert (on_stack.predict(rows.features[named_rows], named).mean < -0.02).all()


@pytest.mark.slow
def test_intervals_hold_stacks_that_nobody_measured_and_own_runs_narrow_them() -> None:
    known = fit_to_stacks()
    inside, width = [], []
    for seed in range(60):
        rows, _ = draw_stacks(1, 100 + seed)
        own = GroupKeys(rows.places.keys, rows.places.workload, np.full_like(rows.places.stack, TARGET_STACK))
        mean, sd, _ = known.predict(rows.features, own)
        inside.append(np.abs(rows.error - mean) <= sd * known.conformal.quantile(0.9))
        is_first = (rows.group == 0).to_numpy()
        given = known.condition_on(rows.features[is_first], own.take(is_first), rows.error[is_first])
        after, narrow, _ = given.predict(rows.features[~is_first], own.take(~is_first))
        is_near = after != 0  # on an accelerator of the own runs
        if not is_near.any():
            continue
        width.append(np.mean(narrow[is_near]) / np.mean(sd[~is_first][is_near]))
        assert np.abs(rows.error[~is_first] - after)[is_near].mean() < 0.2
    assert 0.8 < np.mean(inside) < 0.98
    assert np.mean(width) < 0.7
