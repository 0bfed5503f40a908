"""The learner of training jobs, as the lifecycle uses it: fit of a bundle, its held-out errors, its settings."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.jobs import held_out, job_effects
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_predictor import JobPrediction, JobPredictor
from roofcast.training.jobs.run_set import RunSet
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.gate.budget import query_rows

COVERAGE: Final = 0.9
"""Coverage of the intervals that candidates predict for their budget, if they support it."""

HELD_OUT: Final = ("lineage", "owner")
"""What is held out, in the order of `HeldOutErrors`."""


def fit_job_bundle(data: RunSet, config: TrainingConfig | None = None, progress: Progress | None = None) -> JobBundle:
    """Return a bundle fitted to runs; the learner has no settings.

    Raises `InputError` if those of no API key span fewer than two lineages, or owners of stacks, so that none can be
    held out.
    """
    del config
    is_public = ~is_uploaded(data.rows.owners).to_numpy(dtype=bool)
    for name, groups in (("lineages", data.rows.groups), ("owners of stacks", data.rows.owners)):
        if groups[is_public].nunique() < 2:
            problem = f"must span two {name} at least beside those of API keys"
            raise InputError("measurements", f"{problem}; import another campaign without a key")
    predictor = JobPredictor().fit_rows(data.rows, progress)
    errors = score_groups(predictor, data)
    by_lineage = errors[errors["held_out"] == HELD_OUT[0]]
    scores = by_lineage.groupby("metric")[["mape", "median_ape", "within_25"]].mean()
    return JobBundle(
        predictor=predictor,
        fingerprint=JobBundle.layout(),
        data_digest=data.digest,
        row_ids=tuple(data.ids),
        scores={str(m): {str(k): float(v) for k, v in row.items()} for m, row in scores.iterrows()},
    )


def score_groups(predictor: JobPredictor, data: RunSet) -> pd.DataFrame:
    """Return the held-out errors of each lineage and owner of stacks: columns `held_out`, `group`, `metric`, scores.

    Of a predictor that was just fitted to the runs.
    """
    rows = []
    for metric, errors in data.errors.items():
        known = errors.rows.is_measured
        for i, groups in enumerate((errors.rows.lineage, errors.rows.owner)):
            predicted = np.exp(predictor.held_out_[metric].correction[i])
            for group in sorted(set(groups[known])):
                inside = known & (groups == group)
                summary = error_summary(np.exp(errors.rows.error[inside]), predicted[inside])
                line = {"held_out": HELD_OUT[i], "group": group, "metric": metric, "n_row": int(inside.sum())}
                rows.append(line | summary)
    return pd.DataFrame(rows)


def predict_runs(data: RunSet) -> tuple[Callable[[JobBundle], object], int]:
    """Return what predicts some of the runs by a bundle, and their number: see `over_budget`."""
    queries = query_rows(len(data.ids))
    table = data.rows.take(queries)

    def predict(bundle: JobBundle) -> JobPrediction:
        return bundle.predictor.predict_table(table, coverage=min(COVERAGE, bundle.predictor.highest_coverage))

    return predict, len(queries)


def fit_parameters(predictor: JobPredictor) -> dict[str, Any]:
    """Return the settings of a fit."""
    carry_over = {
        f"{name}.carry_over_{i}": one.carry_over
        for name, model in predictor.models_.items()
        for i, one in enumerate(model.of_class)
    }
    return {"n_fold": held_out.N_FOLD, "max_point": job_effects.MAX_POINT, **carry_over}
