"""Held-out errors, and what rows of API keys can change."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from roofcast.training.jobs.held_out import ErrorRows, HeldOutErrors, LogErrorModel
from roofcast.training.jobs.job_predictor import MEMORY, MetricErrors
from roofcast.training.jobs.job_trial import JobTrial
from roofcast.training.lifecycle.gate.judgement import BASELINE, compare_with
from roofcast.training.lifecycle.gate.slice_bootstrap import SIGNIFICANCE
from roofcast.training.lifecycle.gate.trial import Recipe
from tests.training.jobs.builders import error_rows, slices_of, with_upload

N = 240


def test_rows_of_a_key_move_no_metric_that_does_not_learn_from_them() -> None:
    rows = error_rows(N)
    poisoned = with_upload(rows, n=60, error=-2.3)
    clean, dirty = (HeldOutErrors.fit(one, learns_uploads=False).model for one in (rows, poisoned))
    np.testing.assert_array_equal(clean.effects.errors_, dirty.effects.errors_)
    assert [one.of_owner.n_group for one in clean.of_class] == [one.of_owner.n_group for one in dirty.of_class]
    np.testing.assert_allclose(mean_of(clean, rows), mean_of(dirty, rows), atol=0.05)


def mean_of(model: LogErrorModel, rows: ErrorRows) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return model.predict(rows.x, rows.keys, rows.is_plain)[0]


def copies(rows: ErrorRows, n: int) -> ErrorRows:
    """Return rows after `n` uploads of a key, all of one lineage that others measured."""
    own = with_upload(rows, n=1, error=0.0)
    at = np.concatenate([np.full(n, len(rows.error)), np.arange(len(rows.error))])
    return taken(own, at)


def whales(rows: ErrorRows, n: int) -> ErrorRows:
    """Return rows after four uploaded lineages, each larger than all others together."""
    own = with_upload(rows, n=n, error=0.0)
    lineage = own.lineage.copy()
    lineage[len(rows.error) :] = [f"whale-{i % 4}" for i in range(n)]
    at = np.concatenate([np.resize(np.arange(len(rows.error), len(own.error)), 5 * len(own.error)),
                         np.arange(len(rows.error))])  # fmt: skip
    return taken(dataclasses.replace(own, lineage=lineage), at)


def taken(rows: ErrorRows, at: np.ndarray[tuple[int], np.dtype[np.intp]]) -> ErrorRows:
    fields = {field.name: getattr(rows, field.name) for field in dataclasses.fields(rows)}
    return dataclasses.replace(rows, **{name: x[at] for name, x in fields.items() if name != "columns"})


@pytest.mark.parametrize("uploaded", [copies, whales])
def test_uploads_change_nothing_learnt_from_held_out_rows(
    uploaded: Callable[[ErrorRows, int], ErrorRows],
) -> None:
    rows = error_rows(N)
    more = uploaded(rows, 60)
    clean, dirty = HeldOutErrors.fit(rows, learns_uploads=False), HeldOutErrors.fit(more, learns_uploads=False)
    public = more.is_public
    np.testing.assert_array_equal(clean.model.scale.predict(rows.x), dirty.model.scale.predict(rows.x))
    np.testing.assert_array_equal(clean.model.effects.sd_, dirty.model.effects.sd_)
    assert [one.carry_over for one in clean.model.of_class] == [one.carry_over for one in dirty.model.of_class]
    np.testing.assert_allclose(clean.correction, dirty.correction[:, public], atol=1e-9)
    np.testing.assert_allclose(clean.scores, dirty.scores[:, public], atol=1e-9)


def test_every_fold_learns_from_public_rows() -> None:
    held_out = HeldOutErrors.fit(whales(error_rows(40), 20), learns_uploads=True)
    assert np.isfinite(held_out.correction).all()


def test_what_a_key_s_rows_change_for_others_is_bounded() -> None:
    rows = error_rows(N)
    poisoned = with_upload(rows, n=N, error=-2.3)
    clean, dirty = (HeldOutErrors.fit(one, learns_uploads=True).model for one in (rows, poisoned))
    moved = np.abs(mean_of(dirty, rows) - mean_of(clean, rows))
    assert 0.0 < moved.mean() < 0.1
    taught = (mean_of(dirty, poisoned) - mean_of(clean, poisoned))[N : 2 * N]
    assert taught.mean() < 0.0


def test_rows_of_a_group_are_predicted_without_it() -> None:
    rows = error_rows(N)
    outlier = dataclasses.replace(rows, error=np.where(rows.lineage == "lineage-0", 3.0, rows.error))
    held_out = HeldOutErrors.fit(outlier, learns_uploads=False)
    assert np.abs(held_out.correction[0][outlier.lineage == "lineage-0"]).max() < 1.5


@pytest.mark.parametrize(("shift", "promoted"), [(0.0, True), (0.5, False)])
def test_a_candidate_that_is_worse_on_others_is_refused(shift: float, promoted: bool) -> None:
    rows = with_upload(error_rows(N), n=20, error=0.0)
    is_public, errors = rows.is_public, {MEMORY: MetricErrors(rows, np.arange(len(rows.error)))}
    own = {MEMORY: HeldOutErrors.fit(rows, learns_uploads=False, learns=is_public).correction + shift}
    recipe, trial = Recipe(BASELINE, None, is_public, (is_public,)), JobTrial(errors, own, slices_of(rows))
    decision = compare_with(recipe, trial, significance=SIGNIFICANCE)
    assert decision.promoted is promoted
    assert BASELINE in decision.reason
