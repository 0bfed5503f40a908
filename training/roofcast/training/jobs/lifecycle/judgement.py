"""Judgement of a candidate of training jobs: against the champion, and against what the runs of no API key teach.

A run judges only if both recipes could learn from it, its lineage or its stack's owner is held out of both, and its
owner has added no runs since the champion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.jobs.held_out import HeldOutErrors
from roofcast.training.jobs.job_table import framework_families
from roofcast.training.jobs.lifecycle.bundle import JobBundle
from roofcast.training.jobs.lifecycle.run_set import RunSet
from roofcast.training.jobs.predictor import (
    LEARNS_UPLOADS,
    JobPredictor,
    MetricErrors,
    metric_errors,
)
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.gate.comparison import PromotionDecision, compare
from roofcast.training.lifecycle.gate.judgement import (
    BASELINE,
    CHAMPION,
    COVERAGE_SLACK,
    ENOUGH_LEVEL,
    LEVELS,
    changed_rows,
)
from roofcast.training.lifecycle.gate.slice_bootstrap import SIGNIFICANCE

BoolArray = npt.NDArray[np.bool_]
Corrections = Mapping[str, FloatArray]
"""Held-out corrections by metric: shape (2, n_row), of lineages and of owners."""

CELL: Final = ("accelerator", "model", "method", "compute_precision", "n_accelerator")
"""Columns of a configuration, which the bootstrap draws where there are too few lineages."""

PROTOCOLS: Final = ("", ", stacks held out")


@dataclass(frozen=True)
class Rival:
    """Recipe that a candidate is compared with.

    Parameters
    ----------
    name
        In reasons.
    learns : shape (n_run,)
        Runs that it learns from.
    judged : tuple of shape (n_run,)
        Sets of runs that judge, one after the other.
    """

    name: str
    learns: BoolArray
    judged: tuple[BoolArray, ...]


def judge(
    candidate: JobBundle,
    incumbent: JobBundle | None,
    no_champion: str,
    data: RunSet,
    progress: Progress | None = None,
) -> PromotionDecision:
    """Return whether a candidate, just fitted to `data`, replaces the incumbent.

    Parameters
    ----------
    incumbent
        Bundle of the champion; None if there is none.
    no_champion
        Reason if there is none.
    """
    errors, slices = metric_errors(data.rows), build_slices(data)
    own = {name: held_out.correction for name, held_out in candidate.predictor.held_out_.items()}
    measured, (by_lineage, _) = _measured(errors, len(data.ids)), _tables(errors, own, len(data.ids))
    decision = compare(measured, by_lineage, None, slices, no_champion=no_champion)
    lost = _lost_level(candidate, incumbent)
    if lost or not decision.promoted:
        return decision.refuse(lost) if lost else decision
    results, compared = {}, rivals(incumbent, data)
    n_comparison = sum(len(rival.judged) * len(PROTOCOLS) for rival in compared)
    for rival in compared:
        results[rival.name] = result = compare_with(
            rival, own, errors, slices, progress, significance=SIGNIFICANCE / n_comparison
        )
        if not result.promoted:
            return result
    if incumbent is not None:
        decision = results.get(CHAMPION) or compare(measured, by_lineage, by_lineage, slices)
    uncovered = uncovered_intervals(candidate.predictor, errors)
    return decision.refuse(uncovered) if uncovered else decision


def rivals(incumbent: JobBundle | None, data: RunSet) -> list[Rival]:
    """Return what a candidate is compared with: nothing if the champion learnt the same runs, and no key uploaded."""
    is_upload, result = is_uploaded(data.rows.owners).to_numpy(dtype=bool), []
    if incumbent is not None:
        known = data.ids.isin(incumbent.row_ids).to_numpy(dtype=bool)
        if not known.all():
            judged = tuple(known & ~owned for owned in changed_rows(data.rows.owners, known))
            result.append(Rival(CHAMPION, known, judged))
    if is_upload.any() and not any((rival.learns == ~is_upload).all() for rival in result):
        result.append(Rival(BASELINE, ~is_upload, (~is_upload,)))
    return result


def build_slices(data: RunSet) -> pd.DataFrame:
    """Return lineage, configuration, accelerator, framework and owner of runs, as `find_regressions` takes them."""
    runs = data.rows.measurements
    cell = runs[[*CELL]].astype(str).agg("|".join, axis=1)
    return pd.DataFrame({
        "lineage": data.rows.groups, "cell": cell, "accelerator": runs["accelerator"],
        "framework": framework_families(runs), "stack": data.rows.owners,
    })  # fmt: skip


def compare_with(
    rival: Rival,
    own: Corrections,
    errors: Mapping[str, MetricErrors],
    slices: pd.DataFrame,
    progress: Progress | None = None,
    *,
    significance: float = SIGNIFICANCE,
) -> PromotionDecision:
    """Return the first refusal by a set of judging runs, or else the decision by the first of them."""
    n = len(slices)
    others = {name: _fit_rival(rival, name, one, progress) for name, one in errors.items()}
    measured, decisions = _measured(errors, n), []
    for protocol, mine, other in zip(PROTOCOLS, _tables(errors, own, n), _tables(errors, others, n), strict=True):
        for rows in rival.judged:
            judging = other.where(np.broadcast_to(rows[:, None], other.shape))
            name = rival.name + protocol
            decision = compare(measured, mine, judging, slices, rival=name, significance=significance)
            if not decision.promoted:
                return decision
            decisions.append(decision)
    return decisions[0]


def _fit_rival(rival: Rival, name: str, errors: MetricErrors, progress: Progress | None) -> FloatArray:
    label = f"{rival.name}, {name}, held-out lineages and stacks"
    learns = rival.learns[errors.index]
    return HeldOutErrors.fit(
        errors.rows, learns_uploads=LEARNS_UPLOADS[name], learns=learns, progress=progress, label=label
    ).correction


def _measured(errors: Mapping[str, MetricErrors], n_run: int) -> pd.DataFrame:
    """Return measurements over estimates by metric; NaN where nothing was measured: shape (n_run, n_metric)."""
    table = pd.DataFrame(np.nan, index=range(n_run), columns=list(errors))
    for name, one in errors.items():
        table.loc[one.index, name] = np.where(one.rows.is_measured, np.exp(one.rows.error), np.nan)
    return table


def _tables(errors: Mapping[str, MetricErrors], corrections: Corrections, n_run: int) -> Iterator[pd.DataFrame]:
    """Yield predictions over estimates, with lineages and with owners held out: shapes (n_run, n_metric)."""
    for i in range(len(PROTOCOLS)):
        table = pd.DataFrame(np.nan, index=range(n_run), columns=list(errors))
        for name, one in errors.items():
            table.loc[one.index, name] = np.exp(corrections[name][i])
        yield table


def _lost_level(candidate: JobBundle, incumbent: JobBundle | None) -> str:
    if incumbent is None:
        return ""
    before, after = incumbent.predictor.highest_coverage, candidate.predictor.highest_coverage
    if after < min(before, ENOUGH_LEVEL):
        return f"the candidate supports intervals up to {after:.3f}, the champion to {before:.3f}"
    return ""


def uncovered_intervals(predictor: JobPredictor, errors: Mapping[str, MetricErrors]) -> str:
    """Return which intervals cover fewer runs of others' stacks than they promise; blank if none."""
    for name, one in errors.items():
        rows, model = one.rows, predictor.models_[name]
        others = rows.is_public & (rows.owner != "")
        pairs = ((rows.lineage, model.of_lineage), (rows.owner, model.of_owner))
        for scores, (groups, conformal) in zip(predictor.held_out_[name].scores, pairs, strict=True):
            of_others = GroupedConformal(scores[others], pd.Series(groups[others]))
            for level in LEVELS:
                if level > min(conformal.highest_level, of_others.highest_level):
                    continue
                if of_others.quantile(level - COVERAGE_SLACK) > conformal.quantile(level):
                    least = level - COVERAGE_SLACK
                    return f"intervals of {name} at level {level:g} cover less than {least:.0%} of the others' runs"
    return ""
