"""The loop inside `estimate` against the event simulation, on the estimate's own steps and prefills."""

import numpy as np
import pytest

from roofcast.features.engine.coefficients import PRIORS, Coefficients
from roofcast.features.engine.engine_budgets import activation_byte, budget_column
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.engine.loop.latency_quantiles import latency_quantiles
from tests.builders import FloatArray, an_example
from tests.features.engine.ideal import IDEAL, INSTANT, free_coefficients, logs
from tests.features.engine.serving_simulation import Engine, Load, simulate
from tests.features.engine.simulated_outcomes import (
    LEVELS,
    N_WAVE,
    Settings,
    estimate_closed_settings,
    estimate_open_settings,
    median_errors,
    open_loop_settings,
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


def estimated(s: Settings, d: dict[str, FloatArray]) -> tuple[Estimate, dict[str, FloatArray]]:
    """Return the estimate and its quantiles on ideal kernels, with the setting's cost of a step as the engine's."""
    free = free_coefficients(**{name: PRIORS[name].median for name in LOOP})
    own = free | {"step_overhead_s": s.fixed_step, "sequence_overhead_s": s.slope - s.per_token}
    if s.is_steady:
        own["lockstep"] = np.zeros(1)  # Requests of a steady simulation start apart.
    own = {name: np.broadcast_to(values, s.spread.shape) for name, values in own.items()}
    asked = d | {"workload.is_mean": np.zeros_like(s.spread)}
    quantiles = dict[str, FloatArray]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofcast.features.engine.estimate.kernels_by_row", lambda _: IDEAL)
        patch.setattr(Coefficients, "by_row", lambda *_: own)
        e = estimate(d, logs())
        for q in LEVELS:
            at = latency_quantiles(asked | {"workload.quantile": np.full_like(s.spread, q)}, logs(), e)[1]
            quantiles |= {f"{name.removesuffix('_s')} {q}": values for name, values in at.items()}
    return e, quantiles


def mean_errors(scenario: str, e: Estimate) -> dict[str, float]:
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
    found = mean_errors(scenario, estimated(s, questions(s))[0])
    limits = BOUNDS | {"ttft": 0.31 if is_steady else 0.26}
    assert not {name: error for name, error in found.items() if not error <= limits[name]}


def at_stored_rate(scenario: str) -> dict[str, FloatArray]:
    """Return the load of an open loop's settings."""
    rate = stored_outcomes().loc[scenario]["rate_per_s"].to_numpy()
    return {"workload.concurrency": np.full_like(rate, np.nan), "workload.request_rate_per_s": rate}


def test_a_rate_is_served_as_in_the_simulation() -> None:
    s = estimate_open_settings()
    found = mean_errors("estimate open", estimated(s, questions(s) | at_stored_rate("estimate open"))[0])
    assert not {name: found[name] for name, limit in OPEN_BOUNDS.items() if not found[name] <= limit}


@pytest.mark.parametrize(
    ("scenario", "limits"),
    [
        ("closed_loop steady", {"ttft": 0.365, "tpot": 0.016, "e2e": 0.032, "itl": 0.08}),
        ("closed_loop cold", {"ttft": 0.43, "tpot": 0.015, "e2e": 0.055, "itl": 0.16}),
        ("open_loop", {"ttft": 0.25, "tpot": 0.03, "e2e": 0.09, "itl": 0.05}),
    ],
)
def test_quantiles_are_those_of_the_simulation(scenario: str, limits: dict[str, float]) -> None:
    s = open_loop_settings() if scenario == "open_loop" else Settings(300, 7, is_steady=scenario.endswith("steady"))
    load = {"workload.n_wave": np.full_like(s.spread, np.inf if s.is_steady else N_WAVE)}
    load |= at_stored_rate(scenario) if scenario == "open_loop" else {}
    found = median_errors(scenario, estimated(s, questions(s) | load)[1])
    assert not {name: error for name, error in found.items() if not error <= limits[name.split()[0]]}


@pytest.mark.parametrize(("concurrency", "n_output"), [(8, 20), (32, 20), (16, 60), (8, 100)])
def test_short_answers_of_varied_lengths_have_the_tpot_of_the_simulation(concurrency: int, n_output: int) -> None:
    load = Load(8000, 100, n_output, concurrency=concurrency, spread=0.9, is_steady=True)
    tpot = simulate(Engine(lambda _batch, _context: 0.02, lambda token: 2e-4 * token), load, seed=1).tpot_s
    s = Settings(1, 0, is_steady=True)
    values = {"n_input": 100.0, "n_output": n_output, "concurrency": concurrency, "capacity": 1e6, "spread": 0.9}
    values |= {"chunk": 0.0, "poll": 1.0, "fixed_step": 0.02, "per_token": 2e-4, "slope": 0.0}
    for name, value in values.items():
        setattr(s, name, np.full(1, value))
    e, quantiles = estimated(s, questions(s) | {"workload.n_wave": np.full(1, np.inf)})
    for q in LEVELS:
        measured = np.nanquantile(tpot, q) / np.nanmean(tpot)
        assert quantiles[f"tpot {q}"][0] / e.tpot_s[0] == pytest.approx(measured, abs=0.06)
