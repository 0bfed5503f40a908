"""The start of a run: what it does to the mean and to the median of the first token."""

import numpy as np
import pandas as pd

from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.engine.finite_run import requests_per_slot, startup_burst_ratio
from roofcast.features.examples import example_descriptors
from roofcast.features.pipeline import estimate_statistics


def _asked(waves: list[float], *, is_mean: float = 1.0) -> dict[str, np.ndarray]:
    rows = {name: np.repeat(values, len(waves)) for name, values in example_descriptors().items()}
    told = {"workload.n_wave": waves, "workload.concurrency": 64.0, "workload.is_mean": is_mean}
    return rows | {
        name: np.broadcast_to(np.asarray(value, dtype=float), (len(waves),)) for name, value in told.items()
    }


def test_short_runs_show_their_start_in_the_mean() -> None:
    first_token = estimate(_asked([1.0, 10.0, 1000.0]), DEFAULT_COEFFICIENTS).ttft_s
    assert (np.diff(first_token) < 0).all()


def test_the_median_leaves_the_start_out() -> None:
    d = _asked([10.0, np.inf], is_mean=0.0)
    e = estimate(d, DEFAULT_COEFFICIENTS)
    usual, steady = estimate_statistics(d, DEFAULT_COEFFICIENTS, e)["ttft_s"] / e.ttft_s
    assert usual < steady


def test_nothing_starts_together_at_a_rate() -> None:
    d = _asked([np.nan]) | {
        "workload.concurrency": np.array([np.nan]),
        "workload.request_rate_per_s": np.array([2.0]),
    }
    waves = requests_per_slot(d, np.ones(1))
    assert waves[0] == np.inf
    assert startup_burst_ratio(waves, np.array([0.08]))[0] == 0.0


def test_all_of_one_wave_come_together_at_most() -> None:
    assert startup_burst_ratio(np.ones(1), np.array([0.3]))[0] == 1.0


def test_what_a_run_by_the_clock_sent_is_its_outcome() -> None:
    catalog = load_catalog()
    run = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_input_token": 10.0}
    run |= {"n_output_token": 10.0, "concurrency": 8.0, "n_request": 80.0}
    rows = pd.DataFrame([run | {"duration_s": s} for s in (120.0, 93.4, None)])
    described = describe(rows, catalog.models, catalog.accelerators)
    waves, duration = described["workload.n_wave"], described["workload.duration_s"]
    assert np.isnan(waves[0])
    assert duration[0] == 120.0
    assert duration[1:].isna().all()
    assert waves[1:].tolist() == [10.0, 10.0]
