from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.data.training_campaigns import load_training_campaigns
from roofcast.training.training_jobs import TrainingJobPredictor

JOB = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 64,
    "n_global_batch_sequence": 128, "n_token_per_sequence": 8192, "framework": "torchtitan",
}  # fmt: skip


@pytest.fixture(scope="module")
def predictor() -> TrainingJobPredictor:
    names = ["torchtitan", "fms_fsdp", "torchtune", "fsdp_qlora", "kempner_forge", "sailor", "internevo", "paddlenlp",
             "alpa_osdi22", "colossalai", "libai", "a10_oke"]  # fmt: skip
    return TrainingJobPredictor().fit(load_training_campaigns(names))


def test_the_value_is_the_middle_of_its_interval(predictor: TrainingJobPredictor) -> None:
    p = predictor.predict(pd.DataFrame([JOB, JOB | {"n_accelerator": 8}]), coverage=0.8)
    middle = np.sqrt(p.token_per_s_per_accelerator_low * p.token_per_s_per_accelerator_high)
    np.testing.assert_allclose(p.token_per_s_per_accelerator, middle)
    np.testing.assert_allclose(p.peak_memory_byte, np.sqrt(p.peak_memory_byte_low * p.peak_memory_byte_high))
    assert (p.token_per_s_per_accelerator_low < p.token_per_s_per_accelerator).all()
    assert p.outside.dtype == bool


def test_a_job_that_needs_more_memory_fits_with_less_probability(predictor: TrainingJobPredictor) -> None:
    plan = {"tp": 1, "pp": 1, "sharding": "fsdp", "recomputation": "none"}
    rows = pd.DataFrame(
        [JOB | plan | {"n_micro_batch_sequence": n, "n_global_batch_sequence": 64 * n} for n in (1, 8)]
    )
    p = predictor.predict(rows)
    assert p.p_fits[0] > 0.5 > p.p_fits[1]
