from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.serving.jobs.rows import job_table, parse_jobs
from roofcast.serving.jobs.search.plans import with_fastest_plans
from roofcast.training.jobs.job_predictor import JobPrediction
from tests.serving.jobs.builders import EstimatePredictor, a_job


class SmallFootprintsAreFast(EstimatePredictor):
    """Of plans that all fit, those of less memory are faster, whatever the estimate says."""

    def predict(self, jobs: pd.DataFrame, *, coverage: float = 0.9, catalog: Catalog | None = None) -> JobPrediction:
        prediction = super().predict(jobs, coverage=coverage, catalog=catalog)
        rate = 1.0 / prediction.peak_memory_byte
        return replace(prediction, token_per_s_per_accelerator=rate, p_fits=np.ones_like(rate))


class LargeFootprintsAreFast(EstimatePredictor):
    """Plans of more memory are faster, and above 40 GB less likely to fit."""

    def __init__(self, *, p_fits: float) -> None:
        self.p_fits = p_fits

    def predict(self, jobs: pd.DataFrame, *, coverage: float = 0.9, catalog: Catalog | None = None) -> JobPrediction:
        prediction = super().predict(jobs, coverage=coverage, catalog=catalog)
        is_small = prediction.peak_memory_byte < 40e9
        p_fits = np.where(is_small, self.p_fits, self.p_fits - 0.1)
        return replace(prediction, token_per_s_per_accelerator=prediction.peak_memory_byte, p_fits=p_fits)


def plan_of(predictor: EstimatePredictor, job: dict[str, Any]) -> pd.Series:
    catalog = load_catalog()
    jobs, problems = parse_jobs([job], catalog)
    assert problems == [None]
    return with_fastest_plans(job_table(jobs), catalog, predictor).iloc[0]


def memory_of(plan: pd.Series) -> float:
    return float(EstimatePredictor().predict(pd.DataFrame([plan])).peak_memory_byte[0])


def test_the_predictor_chooses_among_plans_that_the_estimate_proposes() -> None:
    job = a_job()
    usual, lean = plan_of(EstimatePredictor(), job), plan_of(SmallFootprintsAreFast(), job)
    assert memory_of(lean) < memory_of(usual)


@pytest.mark.parametrize(("p_fits", "is_small"), [(0.95, False), (0.85, True), (0.5, True)])
def test_a_fast_plan_counts_only_if_it_is_likely_to_fit(p_fits: float, is_small: bool) -> None:
    """With .95 and .85 the fastest plan does; with .85 and .75 the other ones alone; with .5 and .4 the likeliest."""
    plan = plan_of(LargeFootprintsAreFast(p_fits=p_fits), a_job())
    assert (memory_of(plan) < 40e9) is is_small


def test_what_a_job_states_stays() -> None:
    stated = {"tp": 2, "pp": 2, "n_micro_batch_sequence": 1, "recomputation": "full"}
    plan = plan_of(EstimatePredictor(), a_job(**stated))
    assert {name: plan[name] for name in stated} == stated
    assert plan["dp"] == 2


def test_a_plan_that_is_far_from_the_memory_stays_open() -> None:
    plan = plan_of(EstimatePredictor(), a_job(accelerator="rtx-4090-24gb", n_accelerator=1, offload="none"))
    assert np.isnan(plan["dp"])
