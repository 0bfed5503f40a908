"""A predictor of training jobs that answers the estimate, with fixed intervals."""

from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.features.jobs.plan_enumeration import choose_plans, host_ratio
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.step import throughput_token_per_s
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_predictor import JobPrediction, JobPredictor
from roofcast.training.lifecycle.registry.registry import Champion

LOG_SD = 0.2


class EstimatePredictor(JobPredictor):
    """The estimate, with an error of 20 % in time and of 10 % in memory."""

    highest_coverage = 0.99

    def predict(self, jobs: pd.DataFrame, *, coverage: float = 0.9, catalog: Catalog | None = None) -> JobPrediction:
        known = catalog or load_catalog()
        choice = choose_plans(build_jobs(jobs, known.models, known.accelerators))
        rate = throughput_token_per_s(choice.runs, choice.time) / choice.runs.job.n_accelerator
        memory = choice.memory.device
        width = np.exp(LOG_SD * NormalDist().inv_cdf(0.5 + coverage / 2))
        filled = np.maximum(memory / choice.runs.hardware.memory_byte, host_ratio(choice.runs, choice.memory))
        room = -np.log(filled)
        p_fits = np.array([NormalDist(0.0, 0.1).cdf(value) for value in np.broadcast_to(room, memory.shape)])
        return JobPrediction(
            rate,
            rate / width,
            rate * width,
            memory,
            memory / 1.1,
            memory * 1.1,
            p_fits,
            np.zeros(len(rate), dtype=bool),
        )


def an_estimate_model() -> LoadedModel[JobBundle]:
    """Return a version of the predictor of training jobs that answers the estimate."""
    return LoadedModel(Champion("estimate", "", ""), JobBundle(EstimatePredictor(), "", "", (), {}))


def a_job(**changes: Any) -> dict[str, Any]:
    """Return a row of a training prediction: a full fine-tuning of 8B parameters on eight H100."""
    row = {
        "model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 8,
        "method": "full", "n_token_per_sequence": 4096, "n_global_batch_sequence": 128,
    }  # fmt: skip
    return row | changes


def a_training_demand(**changes: Any) -> dict[str, Any]:
    """Return a request of a recommendation: a fine-tuning of 8B parameters with quantised LoRA."""
    request = {"model": "meta-llama/Llama-3.1-8B", "method": "qlora", "n_token": 20_000_000, "n_epoch": 3}
    return request | changes
