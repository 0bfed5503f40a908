"""Retraining of the predictor of training jobs, promoted unless the champion is better."""

from __future__ import annotations

from typing import Final

from roofcast.training.jobs.job_table import table_of_runs
from roofcast.training.jobs.lifecycle.bundle import JobBundle
from roofcast.training.jobs.lifecycle.fit import fit_job_bundle
from roofcast.training.jobs.lifecycle.judgement import judge
from roofcast.training.jobs.lifecycle.run_set import RunSet
from roofcast.training.jobs.predictor import JobPrediction
from roofcast.training.jobs.shipped import load_shipped_job_bundle
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.gate.budget import over_budget, query_rows
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.registry.version_description import describe_version
from roofcast.training.lifecycle.retraining import RetrainingReport, submit_candidate

COVERAGE: Final = 0.9
"""Coverage of the intervals that candidates predict for their budget, if they support it."""


def retrain_jobs(
    data: RunSet, registry: Registry[JobBundle], progress: Progress | None = None, *, hold: bool = False
) -> RetrainingReport:
    """Fit a candidate, register it, and promote it unless the champion is better: see `submit_candidate`.

    Parameters
    ----------
    hold
        Register the candidate alone, however it is judged.
    """
    from roofcast.training.jobs.lifecycle.tracking import log_jobs  # noqa: PLC0415  (MLflow)

    candidate = fit_job_bundle(data, progress)
    rows = data.rows
    groups = {"campaigns": rows.measurements["campaign"], "stacks": rows.owners, "groups": rows.groups}
    version, decision = submit_candidate(
        registry,
        lambda incumbent, no_champion: judge(candidate, incumbent, no_champion, data, progress),
        lambda: log_jobs(registry, candidate, data),
        lambda decision, champion, moment: describe_version(decision, champion, candidate.scores, moment, **groups),
        excess=training_excess(candidate, data),
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


def training_excess(candidate: JobBundle, data: RunSet) -> str:
    """Return what a candidate takes too much of, by the shipped predictor and some of the runs: see `over_budget`."""
    queries = query_rows(len(data.ids))
    table = table_of_runs(data.rows.take(queries))

    def predict(bundle: JobBundle) -> JobPrediction:
        return bundle.predictor.predict_table(table, coverage=min(COVERAGE, bundle.predictor.highest_coverage))

    return over_budget(candidate, load_shipped_job_bundle(), predict, len(queries))
