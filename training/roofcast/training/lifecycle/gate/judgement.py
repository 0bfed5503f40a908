"""Judgement of a candidate: against the champion, and against what the measurements of no API key teach.

A row judges only if both recipes could learn from it, it is held out of both, and its owner has added no
measurements since the champion: nobody's rows vouch for new ones of the same key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.descriptors.config_hash import CELL, config_hashes, joint_hash
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import is_uploaded, stack_owners
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.errors.grouped_conformal import pool_scores
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import (
    Progress,
    RatioModel,
    fit_held_out,
    predict_by_fold,
    predict_held_out,
)
from roofcast.training.learner.trees.carry_over import fit_carry_over
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.gate.comparison import PromotionDecision, compare
from roofcast.training.lifecycle.gate.slice_bootstrap import SIGNIFICANCE

BoolArray = npt.NDArray[np.bool_]

LEVELS: Final = (0.5, 0.8, 0.9)
COVERAGE_SLACK: Final = 0.03
"""Interval levels that are checked, and how far below its level the coverage of others' rows may be."""

CHAMPION: Final = "the champion"
BASELINE: Final = "a predictor without the measurements of API keys"

ENOUGH_LEVEL: Final = 0.95
"""Level of intervals beyond which a candidate may support less than the champion."""


@dataclass(frozen=True, slots=True)
class Rival:
    """Recipe that a candidate is compared with.

    Parameters
    ----------
    name
        In reasons.
    config
        Settings of its learner.
    trainable : shape (n_row,)
        Rows that it learns from.
    judged : tuple of shape (n_row,)
        Sets of rows that judge, one after the other.
    by_stack
        Whether stacks are held out, besides lineages.
    """

    name: str
    config: TrainingConfig
    trainable: BoolArray
    judged: tuple[BoolArray, ...]
    by_stack: bool


def judge(
    candidate: ModelBundle,
    incumbent: ModelBundle | None,
    no_champion: str,
    data: TrainingSet,
    progress: Progress | None = None,
) -> PromotionDecision:
    """Return whether a candidate, fitted to `data`, replaces the incumbent.

    Parameters
    ----------
    incumbent
        Bundle of the champion; None if there is none.
    no_champion
        Reason if there is none.
    """
    predictor, slices = candidate.predictor, build_slices(data)
    decision = compare(data.y, predictor.held_out_, None, slices, no_champion=no_champion)
    lost = lost_answers(candidate, incumbent)
    if lost or not decision.promoted:
        return decision.refuse(lost) if lost else decision
    results, compared = {}, rivals(candidate, incumbent, data)
    significance = significance_of_each(compared, predictor)
    for rival in compared:
        results[rival.name] = result = compare_with(
            rival, predictor, data, slices, progress, significance=significance
        )
        if not result.promoted:
            return result
    if incumbent is not None:
        decision = results.get(CHAMPION) or compare(data.y, predictor.held_out_, predictor.held_out_, slices)
    uncovered = uncovered_intervals(predictor, data)
    return decision.refuse(uncovered) if uncovered else decision


def rivals(candidate: ModelBundle, incumbent: ModelBundle | None, data: TrainingSet) -> list[Rival]:
    """Return what a candidate is compared with: nothing if the champion's recipe is its own, and no key uploaded."""
    config = candidate.predictor.config or TrainingConfig()
    is_upload = is_uploaded(data.stacks).to_numpy()
    result = []
    if incumbent is not None:
        known = data.ids.isin(incumbent.row_ids).to_numpy()
        settings = incumbent.predictor.config or TrainingConfig()
        if not known.all() or settings != config:
            judged = tuple(known & ~owned for owned in changed_rows(data.stacks, known))
            by_stack = not is_upload.any() or bool((known == ~is_upload).all())
            result.append(Rival(CHAMPION, settings, known, judged, by_stack))
    if is_upload.any() and not any(r.config == config and (r.trainable == ~is_upload).all() for r in result):
        result.append(Rival(BASELINE, config, ~is_upload, (~is_upload,), by_stack=True))
    return result


def changed_rows(stacks: pd.Series, known: BoolArray) -> list[BoolArray]:
    """Return the rows of each owner, an API key or the operator, that has rows which the champion does not know."""
    owners = stack_owners(stacks)
    is_local = is_uploaded(stacks) | (owners == "")
    changed = owners[is_local & ~known].unique()
    return [(owners == owner).to_numpy() for owner in changed] or [np.zeros(len(known), dtype=bool)]


def build_slices(data: TrainingSet) -> pd.DataFrame:
    """Return the lineage, cell, accelerator and owner of the stack of each row, as `find_regressions` takes them."""
    cells = joint_hash(config_hashes(data.X), CELL)
    accelerator, stack = data.measurements["accelerator"], stack_owners(data.stacks)
    return pd.DataFrame({"lineage": data.groups, "cell": cells, "accelerator": accelerator, "stack": stack})


def significance_of_each(rivals: Sequence[Rival], predictor: RoofcastPredictor) -> float:
    """Return the significance of each comparison with rivals, by which any of them errs as rarely as `SIGNIFICANCE`.

    A candidate is refused by the first comparison that finds it worse, so only the first step of Holm's procedure
    matters: the least p-value is compared with ``SIGNIFICANCE / n``.

    References
    ----------
    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6(2), 1979.
    """
    n = sum(len(rival.judged) * (1 + _judges_stacks(rival, predictor)) for rival in rivals)
    return SIGNIFICANCE / max(n, 1)


def _judges_stacks(rival: Rival, predictor: RoofcastPredictor) -> bool:
    return rival.by_stack and bool(predictor.stack_held_out_.notna().any(axis=None))


def compare_with(
    rival: Rival,
    predictor: RoofcastPredictor,
    data: TrainingSet,
    slices: pd.DataFrame,
    progress: Progress | None,
    *,
    significance: float,
) -> PromotionDecision:
    """Return the first refusal by a set of judging rows, or else the decision by the first of them.

    Of `predictor` only the settings and `held_out_` and `stack_held_out_` are used.
    """
    wanted = np.logical_or.reduce(rival.judged)
    model = RatioModel(rival.config, predictor.metrics, predictor.coefficients)
    decisions = []
    lineages = predict_held_out(
        model, data.X, data.y, data.groups, progress, stacks=data.stacks, trainable=rival.trainable, judged=wanted
    )
    tables = [(predictor.held_out_, lineages, "")]
    if _judges_stacks(rival, predictor):
        stacks = predict_stacks_held_out(model, data, rival.trainable, wanted, progress)
        tables.append((predictor.stack_held_out_, stacks, ", stacks held out"))
    for own, other, protocol in tables:
        for rows in rival.judged:
            name = rival.name + protocol
            judging = other.where(np.broadcast_to(rows[:, None], other.shape))
            decision = compare(data.y, own, judging, slices, rival=name, significance=significance)
            if not decision.promoted:
                return decision
            decisions.append(decision)
    return decisions[0]


def predict_stacks_held_out(
    model: RatioModel, data: TrainingSet, trainable: BoolArray, judged: BoolArray, progress: Progress | None = None
) -> pd.DataFrame:
    """Return predictions of judged rows from what is learnt without the owner of their stack; the others are NaN."""
    owners = stack_owners(data.stacks)
    folds = fit_held_out(
        model, data.X, data.y, data.groups, progress,
        trainable=trainable, held_out=owners, stacks=data.stacks, judged=judged,
    )  # fmt: skip
    is_public = trainable & ~is_uploaded(data.stacks).to_numpy()
    measured = data.y.where(np.broadcast_to(is_public[:, None], data.y.shape))
    return predict_by_fold(folds, data.X, fit_carry_over(folds, data.X, measured, owners))


def lost_answers(candidate: ModelBundle, incumbent: ModelBundle | None) -> str:
    """Return what the incumbent answers and the candidate does not; blank if there is nothing."""
    if incumbent is None:
        return ""
    before, after = incumbent.predictor, candidate.predictor
    lost = [metric for metric in before.metrics_ if metric not in after.metrics_]
    if lost:
        return f"the candidate no longer predicts {', '.join(lost)}"
    for metric in before.metrics_:
        levels = [p.error_distributions_[metric].conformal.highest_level for p in (before, after)]
        if levels[1] < min(levels[0], ENOUGH_LEVEL):
            return (
                f"the candidate supports intervals of {metric} up to {levels[1]:.3f}, the champion to {levels[0]:.3f}"
            )
    return ""


def uncovered_intervals(predictor: RoofcastPredictor, data: TrainingSet) -> str:
    """Return which intervals cover fewer rows of others' stacks than they promise; blank if none."""
    others = (~is_uploaded(data.stacks) & (data.stacks != "")).to_numpy()
    groups = data.groups[others], stack_owners(data.stacks[others])
    for metric, scores in predictor.scores_.items():
        conformal = predictor.error_distributions_[metric].conformal
        if np.isnan(scores[:, others]).all():
            continue
        of_others = pool_scores(scores[:, others], groups)
        for level in (level for level in LEVELS if level <= min(conformal.highest_level, of_others.highest_level)):
            if of_others.quantile(level - COVERAGE_SLACK) > conformal.quantile(level):
                least = level - COVERAGE_SLACK
                return f"intervals of {metric} at level {level:g} cover less than {least:.0%} of the others' rows"
    return ""
