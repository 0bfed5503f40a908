"""Choice of a plan: the fastest that fits, by the predictor, of those that the estimate proposes."""

from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.features.queries import FloatArray, RowIndex
from roofcast.serving.defaults import DEFAULT_CONFIDENCE
from roofcast.serving.jobs.search.plan_shortlist import shortlist_plans
from roofcast.serving.jobs.search.plans import PLAN_COLUMNS
from roofcast.training.jobs.job_predictor import JobPrediction, JobPredictor

LEAST_P_FITS: Final = 0.1
"""Probability of fitting below which a job has no times."""

JUDGE_LEVEL: Final = 0.8
"""Level of the intervals that the probabilities of limits follow from, whatever level is reported."""


def predict_jobs(
    table: pd.DataFrame, catalog: Catalog, predictor: JobPredictor, level: float = JUDGE_LEVEL
) -> JobPrediction:
    """Return the prediction of jobs whose plans are stated, with memory in use on the device."""
    jobs = table.drop(columns=["hardware", "step"], errors="ignore").assign(memory_kind="device")
    return predictor.predict(jobs, coverage=level, catalog=catalog)


def with_fastest_plans(table: pd.DataFrame, catalog: Catalog, predictor: JobPredictor) -> pd.DataFrame:
    """Return the table of jobs with the fastest plan of each that fits with probability `DEFAULT_CONFIDENCE`.

    Leaner settings are used only where no others are so likely to fit. Where none is, the likeliest is stated; where
    none is near the memory, plans stay open.
    """
    indexed = table.assign(hardware=np.arange(len(table)))
    planned = shortlist_plans(indexed, catalog, len(table), has_offload=True)
    candidates = planned.table
    if not len(candidates):
        return table
    prediction = predict_jobs(candidates, catalog, predictor)
    best = _fastest(candidates, prediction.p_fits, prediction.token_per_s_per_accelerator)
    chosen = candidates.iloc[best]
    jobs = chosen["hardware"].to_numpy(dtype=np.intp)
    columns = {}
    for name in PLAN_COLUMNS:
        columns[name] = table[name].to_numpy().copy()
        columns[name][jobs] = chosen[name]
    return table.assign(**columns)


def _fastest(candidates: pd.DataFrame, p_fits: FloatArray, rate: FloatArray) -> RowIndex:
    job = candidates["hardware"].to_numpy()
    fits = p_fits >= DEFAULT_CONFIDENCE
    preferred = np.where(fits, rate, p_fits)
    step = np.where(fits, candidates["step"], 0)
    order = np.lexsort((-preferred, step, ~fits, job))
    return np.asarray(order[np.unique(job[order], return_index=True)[1]], dtype=np.intp)
