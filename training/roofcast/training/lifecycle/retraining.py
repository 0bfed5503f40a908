"""Retraining: fit a candidate to all measurements of a target and promote it unless the champion is better."""

import logging
from collections.abc import Callable
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.specs import Spec
from roofcast.training.config import TrainingConfig
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.bundles.bundle_types import B
from roofcast.training.lifecycle.gate.budget import over_budget
from roofcast.training.lifecycle.gate.challenger_alias import set_challenger
from roofcast.training.lifecycle.gate.comparison import PromotionDecision
from roofcast.training.lifecycle.gate.judgement import judge
from roofcast.training.lifecycle.learned_targets import D, LearnedTarget
from roofcast.training.lifecycle.registry.registry import Champion, Registry
from roofcast.training.lifecycle.registry.version_description import describe_version

logger = logging.getLogger(__name__)

RETRAINING: Final = "a retraining"
"""Caller of its promotions, for the audit log."""


class RetrainingReport(Spec):
    """Result of a retraining.

    - `version`: Registered version of the candidate.
    - `promoted`, `reason`: Promotion decision.
    - `is_challenger`: Whether the candidate answers beside the champion instead.
    - `candidate_error`, `champion_error`: Mean absolute log error on the same held-out lineages.
    - `n_row`, `n_group`: Size of the training set.
    - `set_aside`: Number of measurements that were not trained on, by rule of `roofcast.training.dataset.review`.
    - `scores`: Held-out errors of the candidate by metric.
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


def retrain(
    target: LearnedTarget[D, B],
    data: D,
    registry: Registry[B],
    config: TrainingConfig | None = None,
    progress: Progress | None = None,
    *,
    shadow: bool = False,
) -> RetrainingReport:
    """Fit a candidate, register it, and promote it unless the champion is better.

    A champion that cannot be read, as after an upgrade that changed the columns, is replaced. Otherwise `judge`
    refits the champion's settings and training rows with lineages and stacks held out, and compares both on rows that
    both know. A candidate beyond the budget of size and time, of which the registry's shipped predictor is the
    measure, is refused. If the champion changes during the fit, the comparison is repeated with the new one.

    `progress`: the registration is its last round. An error that it raises before leaves the registry as it was.
    `shadow`: where there is a champion, make the candidate the challenger instead, however it is judged; a candidate
    of a target without challengers is only registered.
    """
    from roofcast.training.lifecycle.registry.tracking import log_training  # noqa: PLC0415  (plots, which no server needs to start)

    candidate = target.fit(data, config or TrainingConfig(), progress)
    trial = target.trial(candidate.predictor, data)
    measure = registry.load(registry.shipped.champion) if registry.shipped else None
    excess = over_budget(candidate, measure, *target.predict_sample(data))

    def decide(champion: Champion | None) -> PromotionDecision:
        incumbent, no_champion = _load(registry, champion)
        rows = data.ids, data.stacks
        decision = judge(candidate, incumbent, trial, rows, progress, no_champion=no_champion)
        return decision.refuse(excess) if excess and decision.promoted else decision

    def register() -> str:
        return log_training(target, registry, candidate, data, trial)

    champion = registry.champion()
    decision = decide(champion)
    is_held = shadow and champion is not None
    rounds = progress([register], 1, "registration") if progress else [register]
    (version,) = [step() for step in rounds]
    if is_held:
        where = "answers beside the champion" if target.has_challenger else "waits for `roofcast promote`"
        decision = decision.refuse(f"it {where}; judgement: {decision.reason}")
    while decision.promoted and not _promote_over(champion, version, registry):
        champion = registry.champion()
        decision = decide(champion)
    if is_held and target.has_challenger:
        set_challenger(registry, version, by=RETRAINING)
    _describe(registry, version, lambda: describe_version(decision, champion, candidate.scores, data))
    return RetrainingReport(
        version=version,
        promoted=decision.promoted,
        reason=decision.reason,
        is_challenger=is_held and target.has_challenger,
        candidate_error=decision.candidate,
        champion_error=decision.champion,
        n_row=len(data.ids),
        n_group=int(data.groups.nunique()),
        set_aside=data.set_aside,
        scores=candidate.scores,
    )


def _describe(registry: Registry[B], version: str, describe: Callable[[], str]) -> None:
    try:
        registry.describe(version, describe())
    except Exception:  # the promotion stands whatever fails after it
        logger.warning("version %s has no description", version, exc_info=True)


def _promote_over(champion: Champion | None, version: str, registry: Registry[B]) -> bool:
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
