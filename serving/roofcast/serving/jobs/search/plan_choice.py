"""Choice of a plan: the fastest that fits, by the predictor, of those that the estimate proposes."""

from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.features.jobs.plan_enumeration import LEAN
from roofcast.features.queries import RowIndex
from roofcast.serving.defaults import DEFAULT_CONFIDENCE
from roofcast.serving.jobs.search.plan_shortlist import shortlist_plans
from roofcast.serving.jobs.search.plans import PLAN_COLUMNS
from roofcast.training.jobs import JobPrediction, JobPredictor

JUDGE_LEVEL: Final = 0.8
"""Level of the intervals that the probabilities of limits follow from, whatever level is reported."""


def predict_jobs(
    table: pd.DataFrame, catalog: Catalog, predictor: JobPredictor, level: float = JUDGE_LEVEL
) -> JobPrediction:
    """Return the prediction of jobs whose plans are stated, with memory in use on the device."""
    jobs = table.drop(columns="hardware", errors="ignore").assign(memory_kind="device")
    return predictor.predict(jobs, coverage=level, catalog=catalog)


def with_fastest_plans(table: pd.DataFrame, catalog: Catalog, predictor: JobPredictor) -> pd.DataFrame:
    """Return the table of jobs with the fastest plan of each that fits with probability `DEFAULT_CONFIDENCE`.

    Where none is so likely to fit, the likeliest is stated; where none is near the memory, plans stay open.
    """
    indexed = table.assign(hardware=np.arange(len(table)))
    candidates = shortlist_plans(indexed, catalog, len(table), len(LEAN)).table
    if not len(candidates):
        return table
    chosen = candidates.iloc[_fastest(candidates, predict_jobs(candidates, catalog, predictor))]
    jobs = chosen["hardware"].to_numpy(dtype=np.intp)
    columns = {}
    for name in PLAN_COLUMNS:
        columns[name] = table[name].to_numpy().copy()
        columns[name][jobs] = chosen[name]
    return table.assign(**columns)


def _fastest(candidates: pd.DataFrame, prediction: JobPrediction) -> RowIndex:
    job = candidates["hardware"].to_numpy()
    fits = prediction.p_fits >= DEFAULT_CONFIDENCE
    preferred = np.where(fits, prediction.token_per_s_per_accelerator, prediction.p_fits)
    order = np.lexsort((-preferred, ~fits, job))
    return np.asarray(order[np.unique(job[order], return_index=True)[1]], dtype=np.intp)
