from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from roofcast.features.engine.loop.closed_loop import FloatArray, Loop, Requests, closed_loop, crowding
from roofcast.features.engine.loop.open_loop import open_loop, saturation_rate
from roofcast.features.engine.loop.percentiles import e2e_quantile, itl_quantile, tpot_quantile, ttft_quantile
from tests.features.engine.serving_simulation import Engine, Load, Outcome, simulate

LEVELS = (0.5, 0.9, 0.95, 0.99)
N_WAVE = 10


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

    def requests(self) -> Requests:
        mean = 1 - self.spread / 2
        n_input = self.n_input * mean
        one = np.ones_like(mean)
        chunk = self.chunk.astype(float)
        together = np.where(chunk > 0, chunk / n_input, np.ceil(self.pass_token / n_input))
        requests_per_slot = np.full_like(mean, np.inf) if self.is_steady else N_WAVE * one
        return Requests(
            n_output=self.n_output * mean,
            prefill_s=self.per_token * n_input,
            fixed_s=0 * one,
            n_chunk=np.where(chunk > 0, n_input / np.maximum(chunk, 1), 0.0),
            n_together=np.maximum(together, 1.0),
            poll_step=self.poll.astype(float),
            interference_ratio=one,
            spread=self.spread,
            requests_per_slot=requests_per_slot,
        )

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

    def load(self, i: int, **arrivals: float) -> Load:
        return Load(
            n_request=int(arrivals.get("n_request", N_WAVE * self.concurrency[i])),
            n_input=int(self.n_input[i]),
            n_output=int(self.n_output[i]),
            spread=float(self.spread[i]),
            concurrency=int(arrivals.get("concurrency", 0)),
            rate_per_s=arrivals.get("rate_per_s", 0.0),
            is_steady=bool(arrivals.get("is_steady", False)),
            n_warm_up=int(arrivals.get("n_warm_up", 0)),
        )


def errors(loop: Loop, outcomes: list[Outcome]) -> dict[str, float]:
    """Return the median absolute relative error of each quantity and statistic."""

    def error(estimate: FloatArray, observed: list[float]) -> float:
        return float(np.median(np.abs(estimate / np.array(observed) - 1)))

    found = {
        "ttft": error(loop.ttft_s, [float(o.ttft_s.mean()) for o in outcomes]),
        "tpot": error(loop.tpot_s, [float(o.tpot_s.mean()) for o in outcomes]),
        "e2e": error(loop.e2e_s, [float(o.e2e_s.mean()) for o in outcomes]),
        "rate": error(loop.request_per_s, [o.request_per_s for o in outcomes]),
    }
    for q in LEVELS:
        found[f"ttft {q}"] = error(ttft_quantile(loop, q), [float(np.quantile(o.ttft_s, q)) for o in outcomes])
        found[f"tpot {q}"] = error(tpot_quantile(loop, q), [float(np.quantile(o.tpot_s, q)) for o in outcomes])
        found[f"e2e {q}"] = error(e2e_quantile(loop, q), [float(np.quantile(o.e2e_s, q)) for o in outcomes])
        found[f"itl {q}"] = error(itl_quantile(loop, q), [o.gap_quantile_s(q) for o in outcomes])
    return found


@cache
def closed_errors(*, is_steady: bool) -> dict[str, float]:
    settings = Settings(300, 7, is_steady=is_steady)
    loop = closed_loop(settings.concurrency, settings.capacity, settings.step_s, settings.requests())
    outcomes = [
        simulate(settings.engine(i), settings.load(i, concurrency=int(c), is_steady=is_steady), seed=i)
        for i, c in enumerate(settings.concurrency)
    ]
    return errors(loop, outcomes)


@cache
def open_errors() -> dict[str, float]:
    settings = Settings(60, 11, is_steady=True)
    settings.capacity = np.minimum(settings.capacity, settings.concurrency)
    requests = settings.requests()
    limit = saturation_rate(settings.capacity, settings.step_s, requests)
    rate = limit * np.random.default_rng(1).uniform(0.2, 0.9, 60)
    loop = open_loop(rate, settings.capacity, settings.step_s, requests)
    outcomes = [
        simulate(settings.engine(i), settings.load(i, n_request=8000, rate_per_s=float(r), n_warm_up=2000), seed=i)
        for i, r in enumerate(rate)
    ]
    return errors(loop, outcomes)


BOUNDS = {"ttft": 0.05, "tpot": 0.01, "e2e": 0.02, "rate": 0.02}
TAIL_BOUNDS = {"ttft": 0.2, "tpot": 0.03, "e2e": 0.05, "itl": 0.05}


def outside(found: dict[str, float], **wider: float) -> dict[str, float]:
    limits = BOUNDS | {f"{name} {q}": bound for name, bound in TAIL_BOUNDS.items() for q in LEVELS} | wider
    return {name: found[name] for name, limit in limits.items() if not found[name] <= limit}


@pytest.mark.parametrize("is_steady", [True, False])
def test_the_closed_loop_is_that_of_the_simulation(is_steady: bool) -> None:
    assert not outside(closed_errors(is_steady=is_steady))


def test_the_open_loop_is_that_of_the_simulation() -> None:
    assert not outside(open_errors(), ttft=0.07, **{"e2e 0.99": 0.1})


def some_requests(n: int = 1, **changes: float) -> Requests:
    values = {
        "n_output": 201.0,
        "prefill_s": 0.05,
        "fixed_s": 0.0,
        "n_chunk": 0.0,
        "n_together": 1.0,
        "poll_step": 1.0,
        "interference_ratio": 1.0,
        "spread": 0.2,
        "requests_per_slot": np.inf,
    } | changes
    return Requests(**{name: np.full(n, value) for name, value in values.items()})


def a_step(batch: FloatArray) -> FloatArray:
    return np.asarray(0.01 + 1e-4 * batch)


def test_one_client_meets_nobody() -> None:
    one = np.ones(1)
    loop = closed_loop(one, 8 * one, a_step, some_requests(fixed_s=0.003, poll_step=10.0))
    assert loop.ttft_s[0] == pytest.approx(0.053)
    assert loop.tpot_s[0] == pytest.approx(0.0101)
    assert loop.e2e_s[0] == pytest.approx(0.053 + 200 * 0.0101)
    assert loop.request_per_s[0] == pytest.approx(1 / loop.e2e_s[0])
    assert itl_quantile(loop, 0.5)[0] == pytest.approx(0.0101)
    assert ttft_quantile(loop, 0.5)[0] == pytest.approx(0.053)


def test_beyond_capacity_requests_wait_for_the_stays_of_others() -> None:
    one = np.ones(1)
    full, double = (closed_loop(c * one, 8 * one, a_step, some_requests()) for c in (8, 16))
    assert double.queue_s[0] == pytest.approx(full.e2e_s[0])
    assert double.request_per_s[0] == pytest.approx(full.request_per_s[0])


@pytest.mark.parametrize("n_chunk", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("n_together", [1.0, 3.0])
def test_a_prefill_is_paid_once_in_ttft_or_in_tpot(n_chunk: float, n_together: float) -> None:
    n = 8
    step = np.full(n, 0.01)
    count = np.arange(2.0, 2 + n)
    with_prefill, without = (
        closed_loop(
            count, 100 + count, lambda _: step, some_requests(n, prefill_s=p, n_chunk=n_chunk, n_together=n_together)
        )
        for p in (0.05, 0.0)
    )
    np.testing.assert_allclose(with_prefill.e2e_s - without.e2e_s, count * 0.05)


def test_a_common_start_makes_the_first_wait() -> None:
    one = np.ones(1)
    steady, cold = (
        closed_loop(64 * one, 99 * one, a_step, some_requests(requests_per_slot=w)) for w in (np.inf, 10.0)
    )
    assert cold.ttft_s[0] > 3 * steady.ttft_s[0]
    assert ttft_quantile(cold, 0.99)[0] > 5 * ttft_quantile(steady, 0.99)[0]
    assert crowding(some_requests())[0] == 1.0
    assert (
        crowding(some_requests(requests_per_slot=10.0))[0]
        > 2.0
        > crowding(some_requests(requests_per_slot=100.0))[0]
        > 1.0
    )


@pytest.mark.parametrize("n_chunk", [0.0, 0.5, 3.0])
def test_more_clients_are_never_faster_and_never_serve_less(n_chunk: float) -> None:
    clients = np.geomspace(1, 300, 80)
    loop = closed_loop(clients, np.full(80, 100.0), a_step, some_requests(80, n_chunk=n_chunk))
    assert (np.diff(loop.request_per_s) >= -1e-9).all()
    assert (np.diff(loop.e2e_s) >= -1e-9).all()


@pytest.mark.parametrize("n_chunk", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("capacity", [1.0, 7.5, 100.0, 1e6])
def test_load_and_waits_rise_with_the_rate(n_chunk: float, capacity: float) -> None:
    requests = some_requests(120, n_chunk=n_chunk)
    limit = saturation_rate(np.full(120, capacity), a_step, requests)
    rate = limit * np.linspace(0.001, 1.2, 120)
    loop = open_loop(rate, np.full(120, capacity), a_step, requests)
    for values in (loop.running, loop.concurrency):
        assert (np.diff(values) >= -1e-6 * values[1:]).all()
    for values in (loop.ttft_s, loop.tpot_s, loop.e2e_s):
        assert (np.diff(values) >= -1e-3 * values[1:]).all()
    assert (loop.is_saturated == (rate >= limit)).all()
    assert loop.running[0] == pytest.approx(rate[0] * loop.e2e_s[0], rel=0.01)


def test_a_lone_request_meets_the_same_in_both_loops() -> None:
    one = np.ones(1)
    closed = closed_loop(one, 9 * one, a_step, some_requests())
    opened = open_loop(1e-6 * one, 9 * one, a_step, some_requests())
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        assert getattr(opened, name)[0] == pytest.approx(getattr(closed, name)[0], rel=1e-4)


def test_quantiles_rise_with_their_level() -> None:
    settings = Settings(200, 3, is_steady=True)
    requests = replace(settings.requests(), spread=np.full(200, 0.2))
    loop = closed_loop(settings.concurrency, settings.capacity, settings.step_s, requests)
    for quantile in (ttft_quantile, itl_quantile, tpot_quantile, e2e_quantile):
        values = np.array([quantile(loop, q) for q in LEVELS])
        assert np.isfinite(values).all()
        assert (np.diff(values, axis=0) >= -1e-12).all()


def test_the_simulation_serves_each_request_once_and_repeats_itself() -> None:
    engine = Engine(lambda batch, _: 0.01 + 1e-4 * batch, lambda token: 1e-5 * token, capacity_token=10_000)
    first, again = (simulate(engine, Load(100, 1000, 100, concurrency=20), seed=1) for _ in range(2))
    assert (first.ttft_s == again.ttft_s).all()
    assert len(first.e2e_s) == 100
    np.testing.assert_allclose(
        first.e2e_s, first.ttft_s + first.tpot_s * np.rint((first.e2e_s - first.ttft_s) / first.tpot_s)
    )
    assert (first.ttft_s[:9] < 0.2).all()
    assert first.ttft_s[19] > 0.8


def test_the_simulation_by_hand() -> None:
    engine = Engine(lambda *_: 0.01, lambda token: 1e-4 * token)
    o = simulate(engine, Load(2, 1000, 101, concurrency=2, spread=0.0))
    np.testing.assert_allclose(o.ttft_s, [0.1, 0.2])
    np.testing.assert_allclose(o.e2e_s, [1.2, 1.2])
    assert o.gap_quantile_s(0.999) == pytest.approx(0.11)
