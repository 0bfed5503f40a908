import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.job_campaigns import job_catalog
from roofcast.data.specs import AcceleratorSpec
from roofcast.training.jobs.chip_order import chip_peers
from roofcast.training.jobs.job_table import build_job_table
from roofcast.training.lifecycle.shipped import load_shipped_job_predictor
from tests.training.jobs.test_job_predictor import own_runs

H100, H200, H800 = "nvidia-h100-sxm-80gb", "nvidia-h200-sxm-141gb", "nvidia-h800-sxm-80gb"
A100, SMALL_A100 = "nvidia-a100-sxm-80gb", "nvidia-a100-sxm-40gb"
N_RUN = {H100: 3, H200: 2, H800: 1}


def jobs_on(accelerator: str, **cells: Any) -> pd.DataFrame:
    frameworks = ("megatron-lm", "torchtitan", "deepspeed", "transformers")
    choices = itertools.product(("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"), frameworks, (8, 512), (1, 4))
    return pd.DataFrame([
        {"model": model, "framework": framework, "n_accelerator": n, "tp": tp, "pp": 1, "accelerator": accelerator,
         "n_token_per_sequence": 4096, "n_global_batch_sequence": 4 * n, "n_micro_batch_sequence": 1,
         "recomputation": "selective"} | cells
        for model, framework, n, tp in choices
    ])  # fmt: skip


@pytest.mark.parametrize(("less", "more"), [(H100, H200), (H800, H100), (SMALL_A100, A100)])
def test_more_memory_or_links_on_the_same_chip_are_not_slower(less: str, more: str) -> None:
    predictor = load_shipped_job_predictor()
    slow, fast = (predictor.predict(jobs_on(name)).token_per_s_per_accelerator for name in (less, more))
    assert (fast >= slow * (1.0 - 1e-12)).all()


def test_own_runs_on_an_accelerator_are_no_subject_of_the_order() -> None:
    job = own_runs(1.0)
    runs = job.assign(accelerator=H200, throughput_token_per_s=0.5 * job["throughput_token_per_s"])
    own = load_shipped_job_predictor().with_references(runs)
    rate = own.predict(runs.drop(columns=["stack", "campaign"])).token_per_s_per_accelerator
    np.testing.assert_allclose(rate * runs["n_accelerator"] / runs["throughput_token_per_s"], 1.0, atol=0.2)


def test_the_peer_is_the_best_measured_accelerator_of_the_chip() -> None:
    jobs = pd.concat([jobs_on(name).iloc[:1] for name in (H200, H800, H100, A100)], ignore_index=True)
    table = build_job_table(jobs, job_catalog())
    peers = chip_peers(table, job_catalog(), N_RUN, np.ones(4, dtype=bool))
    assert peers is not None
    assert peers.rows.tolist() == [0, 1]
    assert peers.is_least.tolist() == [True, False]
    assert peers.table.text("accelerator").tolist() == [H100, H100]
    np.testing.assert_array_equal(peers.table.runs.plan.tp, table.runs.plan.tp[:2])
    assert chip_peers(table, job_catalog(), N_RUN, np.zeros(4, dtype=bool)) is None


def test_an_accelerator_of_another_power_is_another_chip() -> None:
    def peer_of(h200: AcceleratorSpec) -> object:
        catalog = job_catalog().with_accelerators([h200])
        table = build_job_table(jobs_on(H200).iloc[:1], catalog)
        return chip_peers(table, catalog, N_RUN, np.ones(1, dtype=bool))

    spec = job_catalog().accelerators[H200]
    assert peer_of(spec) is not None
    assert peer_of(spec.model_copy(update={"tdp_w": 500.0})) is None
    assert peer_of(spec.model_copy(update={"tdp_w": None})) is None
