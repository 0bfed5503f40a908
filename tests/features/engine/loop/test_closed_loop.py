from dataclasses import replace

import numpy as np
import pytest

from roofcast.features.engine.loop.closed_loop import Loop, Requests, closed_loop, crowding
from roofcast.features.engine.loop.open_loop import open_loop, saturation_rate
from roofcast.features.engine.loop.percentiles import e2e_quantile, itl_quantile, tpot_quantile, ttft_quantile
from roofcast.features.queries import FloatArray
from tests.features.engine.serving_simulation import Engine, Load, simulate
from tests.features.engine.simulated_outcomes import (
    LEVELS,
    Settings,
    median_errors,
    open_loop_settings,
    stored_outcomes,
)


def loop_statistics(loop: Loop) -> dict[str, FloatArray]:
    """Return the means and quantiles that a simulation reports, by the formulas."""
    estimates = {"ttft": loop.ttft_s, "tpot": loop.tpot_s, "e2e": loop.e2e_s, "rate": loop.request_per_s}
    quantiles = {"ttft": ttft_quantile, "tpot": tpot_quantile, "e2e": e2e_quantile, "itl": itl_quantile}
    return estimates | {f"{name} {q}": quantile(loop, q) for name, quantile in quantiles.items() for q in LEVELS}


BOUNDS = {"ttft": 0.05, "tpot": 0.01, "e2e": 0.02, "rate": 0.02}
TAIL_BOUNDS = {"ttft": 0.2, "tpot": 0.03, "e2e": 0.05, "itl": 0.05}


def outside(errors: dict[str, float], **wider: float) -> dict[str, float]:
    limits = BOUNDS | {f"{name} {q}": bound for name, bound in TAIL_BOUNDS.items() for q in LEVELS} | wider
    return {name: errors[name] for name, limit in limits.items() if not errors[name] <= limit}


@pytest.mark.parametrize("is_steady", [True, False])
def test_the_closed_loop_is_that_of_the_simulation(is_steady: bool) -> None:
    settings = Settings(300, 7, is_steady=is_steady)
    loop = closed_loop(settings.concurrency, settings.capacity, settings.step_s, settings.requests())
    scenario = f"closed_loop {'steady' if is_steady else 'cold'}"
    assert not outside(median_errors(scenario, loop_statistics(loop)))


def test_the_open_loop_is_that_of_the_simulation() -> None:
    settings = open_loop_settings()
    rate = stored_outcomes().loc["open_loop"]["rate_per_s"].to_numpy()
    loop = open_loop(rate, settings.capacity, settings.step_s, settings.requests())
    errors = median_errors("open_loop", loop_statistics(loop))
    assert not outside(errors, ttft=0.07, **{"e2e 0.99": 0.1})


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
@pytest.mark.parametrize("n_wave", [1.0, np.inf])
def test_a_prefill_is_paid_once_in_ttft_or_in_tpot(n_chunk: float, n_together: float, n_wave: float) -> None:
    n = 8
    step = np.full(n, 0.01)
    count = np.arange(2.0, 2 + n)
    chunks = {"n_chunk": n_chunk, "n_together": n_together, "requests_per_slot": n_wave}
    with_prefill, without = (
        closed_loop(count, 100 + count, lambda _: step, some_requests(n, prefill_s=p, **chunks)) for p in (0.05, 0.0)
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


@pytest.mark.parametrize("load_ratio", [0.01, 0.3, 0.9])
def test_tpot_at_a_rate_rises_from_its_median_without_a_jump(load_ratio: float) -> None:
    requests, capacity = some_requests(20, spread=0.5), np.full(20, 50.0)
    rate = load_ratio * saturation_rate(capacity, a_step, requests)
    loop = open_loop(rate, capacity, a_step, requests)
    values = np.array([tpot_quantile(loop, q) for q in (0.1, 0.499, 0.5, 0.501, 0.9, 0.95, 0.99)])
    assert (np.diff(values, axis=0) >= 0).all()
    np.testing.assert_allclose(values[1:4], np.broadcast_to(values[2], (3, 20)), rtol=5e-3)


@pytest.mark.parametrize(("concurrency", "n_output"), [(8, 20), (32, 20), (16, 60), (8, 100)])
def test_short_answers_of_varied_lengths_have_the_tpot_of_the_simulation(concurrency: int, n_output: int) -> None:
    spread, one = 0.9, np.ones(1)
    load = Load(8000, 100, n_output, concurrency=concurrency, spread=spread, is_steady=True)
    tpot = simulate(Engine(lambda _batch, _context: 0.02, lambda token: 2e-4 * token), load, seed=1).tpot_s
    requests = some_requests(n_output=n_output * (1 - spread / 2), prefill_s=0.02 * (1 - spread / 2), spread=spread)
    loop = closed_loop(concurrency * one, np.inf * one, lambda batch: 0.02 + 0 * batch, requests)
    for q in LEVELS:
        measured = np.nanquantile(tpot, q) / np.nanmean(tpot)
        assert tpot_quantile(loop, q)[0] / loop.tpot_s[0] == pytest.approx(measured, abs=0.04)


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
