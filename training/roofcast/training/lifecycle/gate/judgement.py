"""Judgement of a candidate: against the champion, and against what the measurements of no API key teach.

A row judges only if both recipes could learn from it, it is held out of both, and its owner has added no
measurements since the champion: nobody's rows vouch for new ones of the same key.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.features.queries import BoolArray
from roofcast.training.dataset.stacks import is_uploaded, stack_owners
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.bundles.bundle_io import Bundle
from roofcast.training.lifecycle.gate.comparison import PromotionDecision, compare
from roofcast.training.lifecycle.gate.slice_bootstrap import SIGNIFICANCE
from roofcast.training.lifecycle.gate.trial import HELD_OUT, Recipe, Trial

LEVELS: Final = (0.5, 0.8, 0.9)
COVERAGE_SLACK: Final = 0.03
"""Interval levels that are checked, and how far below its level the coverage of others' rows may be."""

CHAMPION: Final = "the champion"
BASELINE: Final = "a predictor without the measurements of API keys"

ENOUGH_LEVEL: Final = 0.95
"""Level of intervals beyond which a candidate may support less than the champion."""


def judge(
    candidate: Bundle,
    incumbent: Bundle | None,
    trial: Trial,
    rows: tuple[pd.Series, pd.Series],
    progress: Progress | None = None,
    *,
    no_champion: str = "there was no champion",
) -> PromotionDecision:
    """Return whether a candidate, just fitted, replaces the incumbent.

    `rows`: ids and stacks of the rows that the candidate was fitted to: shapes (n_row,).
    """
    decision = compare(trial.measured, trial.held_out[0], None, trial.slices, no_champion=no_champion)
    before = trial.levels(incumbent.predictor) if incumbent else None
    lost = lost_answers(trial.levels(candidate.predictor), before)
    if lost or not decision.promoted:
        return decision.refuse(lost) if lost else decision
    settings = trial.settings(candidate.predictor)
    known = (incumbent.row_ids, trial.settings(incumbent.predictor)) if incumbent else None
    results, compared = {}, recipes(settings, known, *rows)
    significance = significance_of_each(compared, trial)
    for recipe in compared:
        results[recipe.name] = result = compare_with(recipe, trial, progress, significance=significance)
        if not result.promoted:
            return result
    if incumbent is not None:
        own = trial.held_out[0]
        decision = results.get(CHAMPION) or compare(trial.measured, own, own, trial.slices)
    uncovered = uncovered_intervals(trial)
    return decision.refuse(uncovered) if uncovered else decision


def recipes(
    settings: Any, champion: tuple[Sequence[str], Any] | None, ids: pd.Series, stacks: pd.Series
) -> list[Recipe]:
    """Return what a candidate is compared with: nothing if the champion's recipe is its own, and no key uploaded.

    `champion`: ids of the rows that it was fitted to, and its settings; None if there is none.
    """
    is_upload, result = is_uploaded(stacks).to_numpy(dtype=bool), []
    if champion is not None:
        known = ids.isin(champion[0]).to_numpy(dtype=bool)
        if not known.all() or champion[1] != settings:
            judged = tuple(known & ~owned for owned in changed_rows(stacks, known))
            holds_out_stacks = not is_upload.any() or bool((known == ~is_upload).all())
            result.append(Recipe(CHAMPION, champion[1], known, judged, holds_out_stacks))
    if is_upload.any() and not any(r.settings == settings and (r.learns == ~is_upload).all() for r in result):
        result.append(Recipe(BASELINE, settings, ~is_upload, (~is_upload,)))
    return result


def changed_rows(stacks: pd.Series, known: BoolArray) -> list[BoolArray]:
    """Return the rows of each owner, an API key or the operator, that has rows which the champion does not know."""
    owners = stack_owners(stacks)
    is_local = is_uploaded(stacks) | (owners == "")
    changed = owners[is_local & ~known].unique()
    return [(owners == owner).to_numpy(dtype=bool) for owner in changed] or [np.zeros(len(known), dtype=bool)]


def significance_of_each(compared: Sequence[Recipe], trial: Trial) -> float:
    """Return the significance of each comparison, by which any of them errs as rarely as `SIGNIFICANCE`.

    A candidate is refused by the first comparison that finds it worse, so only the first step of Holm's procedure
    matters: the least p-value is compared with ``SIGNIFICANCE / n``.

    References
    ----------
    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6(2), 1979.
    """
    n = sum(len(recipe.judged) * (1 + trial.judges_stacks(recipe)) for recipe in compared)
    return SIGNIFICANCE / max(n, 1)


def compare_with(
    recipe: Recipe, trial: Trial, progress: Progress | None = None, *, significance: float
) -> PromotionDecision:
    """Return the first refusal by a set of judging rows, or else the decision by the first of them."""
    tables = trial.refit(recipe, progress, holds_out_stacks=trial.judges_stacks(recipe))
    decisions = []
    for own, other, held_out in zip(trial.held_out, tables, HELD_OUT, strict=False):
        for rows in recipe.judged:
            judging, name = other.where(np.broadcast_to(rows[:, None], other.shape)), recipe.name + held_out
            decision = compare(trial.measured, own, judging, trial.slices, rival=name, significance=significance)
            if not decision.promoted:
                return decision
            decisions.append(decision)
    return decisions[0]


def lost_answers(after: Mapping[str, float], before: Mapping[str, float] | None) -> str:
    """Return what the incumbent answers and the candidate does not; blank if there is nothing.

    `after` and `before`: highest level of intervals by metric, of the candidate and the incumbent; None if there is
    none.
    """
    if before is None:
        return ""
    lost = [metric for metric in before if metric not in after]
    if lost:
        return f"the candidate no longer predicts {', '.join(lost)}"
    for metric, level in before.items():
        if after[metric] < min(level, ENOUGH_LEVEL):
            return (
                f"the candidate supports intervals of {metric} up to {after[metric]:.3f}, the champion to {level:.3f}"
            )
    return ""


def uncovered_intervals(trial: Trial) -> str:
    """Return which intervals cover fewer rows of others' stacks than they promise; blank if none."""
    for metric, conformal, of_others in trial.coverages():
        for level in (level for level in LEVELS if level <= min(conformal.highest_level, of_others.highest_level)):
            if of_others.quantile(level - COVERAGE_SLACK) > conformal.quantile(level):
                least = level - COVERAGE_SLACK
                return f"intervals of {metric} at level {level:g} cover less than {least:.0%} of the others' rows"
    return ""
