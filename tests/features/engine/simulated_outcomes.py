"""Statistics of simulated runs, stored beside this module so that the tests need not repeat the simulation.

``python -m tests.features.engine.simulated_outcomes`` simulates every scenario again and rewrites the file. The open
loops' request rates are inputs and stay: they were drawn once, from 0.2 to 0.9 of the analytic saturation rate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roofcast.features.queries import FloatArray
from tests.features.engine.serving_simulation import Engine, Load, Outcome, simulate

FILE = Path(__file__).with_name("simulated_outcomes.csv")
LEVELS = (0.5, 0.9, 0.95, 0.99)
N_WAVE = 10
SIGNIFICANT_DIGITS = 6


class Settings:
    """Random engines and loads, alike for the simulation (one at a time) and the formulas (all at once)."""

    def __init__(self, n: int, seed: int, *, is_steady: bool) -> None:
        random = np.random.default_rng(seed)

        def log_even(low: float, high: float) -> FloatArray:
            return np.exp(random.uniform(np.log(low), np.log(high), n))

        self.concurrency = np.floor(log_even(1, 512))
        self.n_input, self.n_output = np.floor(log_even(128, 8192)), np.floor(log_even(64, 1024))
        self.fixed_step = log_even(4e-3, 3e-2)
        self.slope = self.fixed_step * log_even(1e-3, 3e-2)
        self.per_token = log_even(2e-6, 5e-5)
        self.spread = random.choice([0.0, 0.2], n)
        self.chunk = random.choice([0, 0, 512, 2048, 8192], n)
        self.pass_token = random.choice([1, 8192], n)
        self.poll = random.choice([1, 1, 1, 10, 30], n)
        bound = np.floor(np.maximum(self.concurrency * log_even(0.2, 3), 1.0))
        self.capacity = np.where(random.random(n) < 0.4, bound, 1e6)
        self.is_steady = is_steady

    def step_s(self, batch: FloatArray) -> FloatArray:
        return self.fixed_step + self.slope * batch

    def engine(self, i: int) -> Engine:
        return Engine(
            step_s=lambda batch, _: float(self.fixed_step[i] + self.slope[i] * batch),
            prefill_s=lambda token: float(self.per_token[i] * token),
            capacity_request=float(self.capacity[i]),
            chunk_token=int(self.chunk[i]) or None,
            pass_token=int(self.pass_token[i]),
            poll_pass=int(self.poll[i]),
        )

    def closed_load(self, i: int) -> Load:
        concurrency = int(self.concurrency[i])
        return self.load(i, n_request=N_WAVE * concurrency, concurrency=concurrency, is_steady=self.is_steady)

    def load(self, i: int, **kind: Any) -> Load:
        n_input, n_output, spread = int(self.n_input[i]), int(self.n_output[i]), float(self.spread[i])
        return Load(n_input=n_input, n_output=n_output, spread=spread, **kind)


def compute_bound_settings(n: int, seed: int, *, is_steady: bool) -> Settings:
    """Return settings whose decode steps compute as much per token as prefills do."""
    s = Settings(n, seed, is_steady=is_steady)
    s.slope = s.slope + s.per_token
    return s


def open_loop_settings() -> Settings:
    s = Settings(60, 11, is_steady=True)
    s.capacity = np.minimum(s.capacity, s.concurrency)
    return s


def estimate_closed_settings(*, is_steady: bool, is_chunked: bool) -> Settings:
    s = compute_bound_settings(120, 5, is_steady=is_steady)
    s.chunk = np.where(s.chunk > 0, s.chunk, 2048) if is_chunked else np.zeros_like(s.chunk)
    return s


def estimate_open_settings() -> Settings:
    s = compute_bound_settings(40, 11, is_steady=True)
    s.capacity, s.chunk = np.minimum(s.capacity, s.concurrency), np.zeros_like(s.chunk)
    return s


CLOSED_LOOPS: dict[str, Callable[[], Settings]] = {
    "closed_loop steady": partial(Settings, 300, 7, is_steady=True),
    "closed_loop cold": partial(Settings, 300, 7, is_steady=False),
    "estimate steady chunked": partial(estimate_closed_settings, is_steady=True, is_chunked=True),
    "estimate steady whole": partial(estimate_closed_settings, is_steady=True, is_chunked=False),
    "estimate cold chunked": partial(estimate_closed_settings, is_steady=False, is_chunked=True),
    "estimate cold whole": partial(estimate_closed_settings, is_steady=False, is_chunked=False),
}
OPEN_LOOPS: dict[str, tuple[Callable[[], Settings], int, int]] = {
    "open_loop": (open_loop_settings, 8000, 2000),
    "estimate open": (estimate_open_settings, 4000, 1000),
}
"""Settings, number of requests, and how many of them come before the measurement."""

SCENARIOS = (*CLOSED_LOOPS, *OPEN_LOOPS)


def simulate_row(scenario: str, i: int, rate_per_s: float) -> Outcome:
    """Return the outcome of one setting of a scenario, with its index as seed; the rate is that of an open loop."""
    if scenario in CLOSED_LOOPS:
        s = CLOSED_LOOPS[scenario]()
        return simulate(s.engine(i), s.closed_load(i), seed=i)
    make, n_request, n_warm_up = OPEN_LOOPS[scenario]
    s = make()
    load = s.load(i, rate_per_s=rate_per_s, n_request=n_request, n_warm_up=n_warm_up)
    return simulate(s.engine(i), load, seed=i)


def statistics(outcome: Outcome, levels: tuple[float, ...]) -> dict[str, float]:
    """Return the means, the request throughput and the quantiles of an outcome."""
    of_request = {"ttft": outcome.ttft_s, "tpot": outcome.tpot_s, "e2e": outcome.e2e_s}
    values = {name: float(times.mean()) for name, times in of_request.items()} | {"rate": outcome.request_per_s}
    for q in levels:
        values |= {f"{name} {q}": float(np.quantile(times, q)) for name, times in of_request.items()}
        values[f"itl {q}"] = outcome.gap_quantile_s(q)
    return values


@cache
def stored_outcomes() -> pd.DataFrame:
    """Return the statistics of every scenario, by scenario and index of the setting."""
    return pd.read_csv(FILE, index_col=["scenario", "setting"])


def stored_scenario(scenario: str) -> pd.DataFrame:
    """Return the statistics of a scenario, by index of the setting."""
    return pd.DataFrame(stored_outcomes().loc[scenario])


def median_errors(scenario: str, estimates: dict[str, FloatArray]) -> dict[str, float]:
    """Return the median absolute relative error of each estimated statistic over the settings of a scenario."""
    stored = stored_scenario(scenario)
    return {
        name: float(np.median(np.abs(estimate / stored[name].to_numpy() - 1))) for name, estimate in estimates.items()
    }


def simulate_scenario(scenario: str, rates_per_s: pd.Series[float]) -> pd.DataFrame:
    """Return the statistics of a scenario's settings, simulated at these rates."""
    levels = () if scenario.startswith("estimate") else LEVELS
    rows = {i: statistics(simulate_row(scenario, i, float(rate)), levels) for i, rate in rates_per_s.items()}  # type: ignore[arg-type]
    return pd.DataFrame.from_dict(rows, orient="index")


def main() -> None:
    """Simulate every scenario at its stored rates and rewrite the file."""
    stored = stored_outcomes()
    tables = {name: simulate_scenario(name, stored_scenario(name)["rate_per_s"]) for name in SCENARIOS}
    table = pd.concat(tables, names=["scenario", "setting"])
    table.insert(0, "rate_per_s", stored["rate_per_s"])
    table.to_csv(FILE, float_format=f"%.{SIGNIFICANT_DIGITS}g")


if __name__ == "__main__":
    main()
