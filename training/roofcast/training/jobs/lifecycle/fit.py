"""Fit of the bundle of training jobs, and its held-out errors."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.jobs.lifecycle.bundle import JobBundle, layout
from roofcast.training.jobs.lifecycle.run_set import RunSet
from roofcast.training.jobs.predictor import JobPredictor, metric_errors
from roofcast.training.learner.ratio_model import Progress

HELD_OUT: Final = ("lineage", "owner")
"""What is held out, in the order of `HeldOutErrors`."""


def fit_job_bundle(data: RunSet, progress: Progress | None = None) -> JobBundle:
    """Return a bundle fitted to runs.

    Raises
    ------
    InputError
        If those of no API key span fewer than two lineages, or owners of stacks, so that none can be held out.
    """
    is_public = ~is_uploaded(data.rows.owners).to_numpy(dtype=bool)
    for name, groups in (("lineages", data.rows.groups), ("owners of stacks", data.rows.owners)):
        if groups[is_public].nunique() < 2:
            problem = f"must span two {name} at least beside those of API keys"
            raise InputError("measurements", f"{problem}; import another campaign without a key")
    predictor = JobPredictor().fit_rows(data.rows, progress)
    errors = score_groups(data, predictor)
    by_lineage = errors[errors["held_out"] == HELD_OUT[0]]
    scores = by_lineage.groupby("metric")[["mape", "median_ape", "within_25"]].mean()
    return JobBundle(
        predictor=predictor,
        fingerprint=layout(),
        data_digest=data.digest,
        row_ids=tuple(data.ids),
        scores={str(m): {str(k): float(v) for k, v in row.items()} for m, row in scores.iterrows()},
    )


def score_groups(data: RunSet, predictor: JobPredictor) -> pd.DataFrame:
    """Return the held-out errors of each lineage and owner of stacks: columns `held_out`, `group`, `metric`, scores.

    Of a predictor that was just fitted to the runs.
    """
    rows = []
    for metric, errors in metric_errors(data.rows).items():
        known = errors.rows.is_measured
        for i, groups in enumerate((errors.rows.lineage, errors.rows.owner)):
            predicted = np.exp(predictor.held_out_[metric].correction[i])
            for group in sorted(set(groups[known])):
                inside = known & (groups == group)
                summary = error_summary(np.exp(errors.rows.error[inside]), predicted[inside])
                line = {"held_out": HELD_OUT[i], "group": group, "metric": metric, "n_row": int(inside.sum())}
                rows.append(line | summary)
    return pd.DataFrame(rows)
