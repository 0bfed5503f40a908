"""Retraining: fit a candidate to all measurements and promote it unless the champion is better."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from typing import Any, Final

import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.specs import Spec
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import is_uploaded, stack_owners
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.explain.contributions import build_training_points
from roofcast.training.learner.errors.blank_doubt import BlankDoubt
from roofcast.training.learner.out_of_memory import fit_out_of_memory
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.bundles.bundle import ModelBundle, layout
from roofcast.training.lifecycle.bundles.bundle_kind import B
from roofcast.training.lifecycle.gate.budget import over_budget, query_rows
from roofcast.training.lifecycle.gate.challenger import set_challenger
from roofcast.training.lifecycle.gate.comparison import PromotionDecision
from roofcast.training.lifecycle.gate.judgement import judge
from roofcast.training.lifecycle.registry.registry import Champion, Registry
from roofcast.training.lifecycle.registry.version_description import describe_version
from roofcast.training.lifecycle.shipped import load_shipped

logger = logging.getLogger(__name__)

RETRAINING: Final = "a retraining"
"""Caller of its promotions, for the audit log."""


class RetrainingReport(Spec):
    """Result of a retraining.

    Parameters
    ----------
    version
        Registered version of the candidate.
    promoted, reason
        Promotion decision.
    is_challenger
        Whether the candidate answers beside the champion instead.
    candidate_error, champion_error
        Mean absolute log error on the same held-out lineages.
    n_row, n_group
        Size of the training set.
    set_aside
        Number of measurements that were not trained on, by rule of `roofcast.training.dataset.review`.
    scores
        Held-out errors of the candidate by metric.
    """

    version: str
    promoted: bool
    reason: str
    is_challenger: bool = False
    candidate_error: float
    champion_error: float | None
    n_row: int
    n_group: int
    set_aside: dict[str, int]
    scores: dict[str, dict[str, float]]


def fit_bundle(
    data: TrainingSet, config: TrainingConfig | None = None, progress: Progress | None = None
) -> ModelBundle:
    """Return a bundle fitted to the training set.

    Raises
    ------
    InputError
        If the rows of no API key span fewer than two lineages, so that none can be held out.
    """
    if data.groups[~is_uploaded(data.stacks)].nunique() < 2:
        raise InputError("measurements", "must span two LLM lineages at least, got one; import another campaign")
    predictor = RoofcastPredictor(config or TrainingConfig())
    predictor.fit(data.X, data.y, data.groups, progress, stacks=data.stacks)
    folds = score_folds(data, predictor.held_out_)
    scores = folds.groupby("metric")[["mape", "median_ape", "within_25"]].mean()
    return ModelBundle(
        predictor=predictor,
        fingerprint=layout(),
        data_digest=data.digest,
        row_ids=tuple(data.ids),
        engines=tuple(sorted(set(data.measurements["engine"]) - {""})),
        accelerators=tuple(sorted(set(data.measurements["accelerator"]))),
        scores={str(m): {str(k): float(v) for k, v in row.items()} for m, row in scores.iterrows()},
        anchors=build_training_points(predictor, data),
        doubt=BlankDoubt.fit(predictor, data.X, data.blanked),
        feasibility=fit_out_of_memory(data.attempts, predictor.coefficients_) if data.attempts else None,
    )


def score_folds(data: TrainingSet, held_out: pd.DataFrame, groups: pd.Series | None = None) -> pd.DataFrame:
    """Return the held-out errors of each group and metric.

    Parameters
    ----------
    groups : shape (n_row,)
        Lineages by default, of the rows of no API key, so that uploads do not move published errors. Rows without a
        prediction are left out of other groups.
    """
    rows: list[dict[str, Any]] = []
    is_public = ~is_uploaded(data.stacks).to_numpy()
    of_lineages, groups = groups is None, data.groups if groups is None else groups
    for group in groups.unique():
        inside = (groups == group).to_numpy()
        for metric in held_out.columns:
            known = inside & (data.y[metric] > 0).to_numpy()
            known &= is_public if of_lineages else held_out[metric].notna().to_numpy()
            if known.any():
                errors = error_summary(data.y[metric][known], held_out[metric][known])
                rows.append({"group": group, "metric": metric, "n_row": int(known.sum()), **errors})
    return pd.DataFrame(rows)


def retrain(
    data: TrainingSet,
    registry: Registry,
    config: TrainingConfig | None = None,
    progress: Progress | None = None,
    *,
    shadow: bool = False,
) -> RetrainingReport:
    """Fit a candidate, register it, and promote it unless the champion is better.

    A champion that cannot be read, as after an upgrade that changed the columns, is replaced. Otherwise `judge`
    refits the champion's settings and training rows with lineages and stacks held out, and compares both on rows that
    both know. A candidate beyond the budget of size and time is refused. If the champion changes during the fit, the
    comparison is repeated with the new one.

    Parameters
    ----------
    shadow
        Make the candidate the challenger instead, however it is judged; where there is no champion, it is promoted.
    """
    from roofcast.training.lifecycle.registry.tracking import log_training  # noqa: PLC0415  (plots, which no server needs to start)

    config = config or TrainingConfig()
    candidate = fit_bundle(data, config, progress)
    folds = score_folds(data, candidate.predictor.held_out_)
    stacks = score_folds(data, candidate.predictor.stack_held_out_, stack_owners(data.stacks))
    rows = {"campaigns": data.measurements["campaign"], "stacks": data.stacks, "groups": data.groups}
    queries = data.X.iloc[query_rows(len(data.X))]
    assumed = [""] * len(queries)
    is_challenger = shadow and registry.champion() is not None
    version, decision = submit_candidate(
        registry,
        lambda incumbent, no_champion: judge(candidate, incumbent, no_champion, data, progress),
        lambda: log_training(registry, candidate, data, config, folds=folds, stacks=stacks),
        lambda decision, champion, moment: describe_version(decision, champion, candidate.scores, moment, **rows),
        excess=over_budget(candidate, load_shipped(), lambda bundle: bundle.predict(queries, assumed), len(queries)),
        hold="it answers beside the champion" if is_challenger else "",
        progress=progress,
    )
    if is_challenger:
        set_challenger(registry, version, by=RETRAINING)
    return RetrainingReport(
        version=version,
        promoted=decision.promoted,
        reason=decision.reason,
        is_challenger=is_challenger,
        candidate_error=decision.candidate,
        champion_error=decision.champion,
        n_row=len(data.X),
        n_group=int(data.groups.nunique()),
        set_aside=data.set_aside,
        scores=candidate.scores,
    )


def submit_candidate(
    registry: Registry[B],
    judge_against: Callable[[B | None, str], PromotionDecision],
    register: Callable[[], str],
    describe: Callable[[PromotionDecision, Champion | None, dt.datetime], str],
    *,
    excess: str = "",
    hold: str = "",
    progress: Progress | None = None,
) -> tuple[str, PromotionDecision]:
    """Judge a candidate, register it, and promote it unless it is refused; return its version and the decision.

    A champion that changes meanwhile is compared with, too.

    Parameters
    ----------
    judge_against
        Returns the decision against the champion's bundle, or without one the reason why there is none.
    register
        Registers the candidate and returns its version.
    describe
        Returns the description of the version.
    excess
        What the candidate takes too much of, for which it is refused; blank if nothing.
    hold
        Why a candidate is registered and not promoted, however it is judged; blank if it may be promoted.
    progress
        The registration is its last round. An error that it raises before leaves the registry as it was.
    """

    def decide(champion: Champion | None) -> PromotionDecision:
        decision = judge_against(*_load(registry, champion))
        return decision.refuse(excess) if excess and decision.promoted else decision

    champion = registry.champion()
    decision = decide(champion)
    rounds = progress([register], 1, "registration") if progress else [register]
    (version,) = [step() for step in rounds]
    if hold:
        decision = decision.refuse(f"{hold}; judgement: {decision.reason}")
    while decision.promoted and not _promote_over(champion, version, registry):
        champion = registry.champion()
        decision = decide(champion)
    try:
        registry.describe(version, describe(decision, champion, dt.datetime.now(dt.UTC)))
    except Exception:  # the promotion stands whatever fails after it
        logger.warning("version %s has no description", version, exc_info=True)
    return version, decision


def _promote_over(champion: Champion | None, version: str, registry: Registry[B]) -> bool:
    """Promote a version if the champion is still the one that it was compared with; return whether it is."""
    with registry.changing():
        is_same = registry.champion() == champion
        if is_same:
            registry.promote(version, by=RETRAINING)
    return is_same


def _load(registry: Registry[B], champion: Champion | None) -> tuple[B | None, str]:
    if champion is None:
        return None, "there was no champion"
    try:
        return registry.load(champion), ""
    except InputError as error:
        return None, f"the champion, version {champion.version}, cannot be used: {error}"
