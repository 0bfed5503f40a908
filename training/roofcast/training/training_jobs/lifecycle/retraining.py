"""Retraining of the predictor of training jobs, promoted unless the champion is better."""

from __future__ import annotations

from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.registry.version_description import describe_version
from roofcast.training.lifecycle.retraining import RetrainingReport, submit_candidate
from roofcast.training.training_jobs.lifecycle.bundle import TrainingJobBundle
from roofcast.training.training_jobs.lifecycle.fit import fit_training_bundle
from roofcast.training.training_jobs.lifecycle.judgement import judge
from roofcast.training.training_jobs.lifecycle.run_set import RunSet


def retrain_training_jobs(
    data: RunSet, registry: Registry[TrainingJobBundle], progress: Progress | None = None, *, hold: bool = False
) -> RetrainingReport:
    """Fit a candidate, register it, and promote it unless the champion is better: see `submit_candidate`.

    Parameters
    ----------
    hold
        Register the candidate alone, however it is judged.
    """
    from roofcast.training.training_jobs.lifecycle.tracking import log_training_jobs  # noqa: PLC0415  (MLflow)

    candidate = fit_training_bundle(data, progress)
    rows = data.rows
    groups = {"campaigns": rows.measurements["campaign"], "stacks": rows.owners, "groups": rows.groups}
    version, decision = submit_candidate(
        registry,
        lambda incumbent, no_champion: judge(candidate, incumbent, no_champion, data, progress),
        lambda: log_training_jobs(registry, candidate, data),
        lambda decision, champion, moment: describe_version(decision, champion, candidate.scores, moment, **groups),
        hold="it waits for `roofcast promote --target training`" if hold else "",
        progress=progress,
    )
    return RetrainingReport(
        version=version,
        promoted=decision.promoted,
        reason=decision.reason,
        is_challenger=False,
        candidate_error=decision.candidate,
        champion_error=decision.champion,
        n_row=len(data.ids),
        n_group=int(rows.groups.nunique()),
        set_aside=data.set_aside,
        scores=candidate.scores,
    )
