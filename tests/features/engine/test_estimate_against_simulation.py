"""The loop inside `estimate` against the event simulation, on the estimate's own steps and prefills."""

import numpy as np
import pytest

from roofcast.features.engine.coefficients import PRIORS, Coefficients
from roofcast.features.engine.engine_budgets import activation_byte, budget_column
from roofcast.features.engine.estimate import Estimate, estimate
from tests.builders import FloatArray, an_example
from tests.features.engine.ideal import IDEAL, INSTANT, free_coefficients, logs
from tests.features.engine.simulated_outcomes import (
    Settings,
    estimate_closed_settings,
    estimate_open_settings,
    median_errors,
    stored_outcomes,
)

LOOP = ("prefill_interference", "lockstep", "burst", "collision", "poll_ratio")
"""Coefficients of the loop; at their priors here, while the engine itself costs nothing but steps and prefills."""

WEIGHTS = 32 * (4 * 4096**2 + 3 * 4096 * 11008)


def questions(s: Settings) -> dict[str, FloatArray]:
    """Return the settings as questions about a model whose prefill costs what the setting says."""
    mean = 1 - s.spread / 2
    n_input, n_output = s.n_input * mean, s.n_output * mean
    kv = 32 * 8192 * 2 * (n_input + n_output / 2)
    own = budget_column(an_example(), "own_byte") + activation_byte(an_example())
    changed = {
        "hardware.bandwidth_byte_per_s": np.full_like(mean, INSTANT),
        "hardware.attention_flop_per_s": np.full_like(mean, INSTANT),
        "hardware.dense_flop_per_s": 2 * WEIGHTS / s.per_token,
        "hardware.memory_byte": (14e9 + s.capacity * kv + own) / 0.9,
        "workload.n_input_token": n_input,
        "workload.n_output_token": n_output,
        "workload.n_wave": np.full_like(mean, np.nan),
        "workload.n_request": np.full_like(mean, np.inf),
        "workload.length_variation": s.spread / np.sqrt(12) / mean,
        "workload.concurrency": s.concurrency,
        "config.poll_interval_step": s.poll.astype(float),
        "config.is_mixed": (s.chunk > 0).astype(float),
    }
    return {name: np.repeat(values, len(mean)) for name, values in an_example().items()} | changed


def estimated(s: Settings, d: dict[str, FloatArray]) -> Estimate:
    """Return the estimate on ideal kernels, with the setting's cost of a step as that of the engine."""
    free = free_coefficients(**{name: PRIORS[name].median for name in LOOP})
    own = free | {"step_overhead_s": s.fixed_step, "sequence_overhead_s": s.slope - s.per_token}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofcast.features.engine.estimate.kernels_by_row", lambda _: IDEAL)
        patch.setattr(Coefficients, "by_row", lambda *_: own)
        return estimate(d, logs())


def errors(scenario: str, e: Estimate) -> dict[str, float]:
    """Return the median absolute relative errors of the means."""
    means = {"ttft": e.ttft_s, "tpot": e.tpot_s, "e2e": e.e2e_s, "rate": e.request_throughput_per_s}
    return median_errors(scenario, means)


BOUNDS = {"tpot": 0.015, "e2e": 0.04, "rate": 0.04}
OPEN_BOUNDS = {"ttft": 0.25, "tpot": 0.015, "e2e": 0.03, "rate": 0.02}


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("is_steady", [True, False])
def test_a_closed_loop_is_that_of_the_simulation(is_steady: bool, is_chunked: bool) -> None:
    s = estimate_closed_settings(is_steady=is_steady, is_chunked=is_chunked)
    scenario = f"estimate {'steady' if is_steady else 'cold'} {'chunked' if is_chunked else 'whole'}"
    found = errors(scenario, estimated(s, questions(s)))
    limits = BOUNDS | {"ttft": 0.45 if is_steady else 0.3}
    assert not {name: error for name, error in found.items() if not error <= limits[name]}


def test_a_rate_is_served_as_in_the_simulation() -> None:
    s = estimate_open_settings()
    rate = stored_outcomes().loc["estimate open"]["rate_per_s"].to_numpy()
    no_clients = {"workload.concurrency": np.full(len(rate), np.nan)}
    found = errors("estimate open", estimated(s, questions(s) | no_clients | {"workload.request_rate_per_s": rate}))
    assert not {name: found[name] for name, limit in OPEN_BOUNDS.items() if not found[name] <= limit}
