from __future__ import annotations

import numpy as np
import pytest

from roofcast.features.batching import estimate, running_batch
from roofcast.features.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.operators import estimate_prefill_s, estimate_step
from tests.builders import FloatArray, an_example

NAN = float("nan")


def at_rate(rate: float, **changes: float) -> dict[str, FloatArray]:
    return an_example(workload__concurrency=NAN, workload__request_rate_per_s=rate, **changes)


def test_one_user_by_hand() -> None:
    d = an_example(workload__concurrency=1.0)
    e = estimate(d, C)
    step, prefill = estimate_step(d, C, np.ones(1)).total_s[0], estimate_prefill_s(d, C)[0]
    assert e.batch[0] == 1.0
    assert e.queue_s[0] == e.interference_s[0] == 0.0
    assert e.itl_s[0] == e.tpot_s[0] == pytest.approx(step)
    assert e.ttft_s[0] == pytest.approx(10e-3 + prefill + step)
    assert e.e2e_s[0] == pytest.approx(10e-3 + prefill + 200 * step)
    assert e.output_throughput_token_per_s[0] == pytest.approx(200 / e.e2e_s[0])
    assert e.request_throughput_per_s[0] == pytest.approx(1 / e.e2e_s[0])


def test_eight_users_slow_each_others_tokens() -> None:
    e = estimate(an_example(), C)
    n_other = e.batch[0] - 1
    assert e.interference_s[0] == pytest.approx(0.8 * n_other * e.prefill_s[0] / 200)
    assert e.tpot_s[0] == pytest.approx(e.itl_s[0] + e.interference_s[0])


def test_whoever_does_not_fit_waits_for_the_stay_of_those_who_do() -> None:
    d = an_example(workload__concurrency=4.0, model__n_param=70e9)
    e = estimate(d, C)
    assert e.memory.capacity[0] == 0.0
    assert e.batch[0] == 1.0
    stay = 10e-3 + e.prefill_s[0] + e.itl_s[0] + 199 * e.tpot_s[0]
    assert e.queue_s[0] == pytest.approx(3 * stay)
    assert e.e2e_s[0] == pytest.approx(4 * stay)


def test_a_single_output_token_ends_with_the_first() -> None:
    e = estimate(an_example(workload__n_output_token=1.0), C)
    assert e.e2e_s[0] == e.ttft_s[0]


@pytest.mark.parametrize(
    ("concurrency", "capacity", "batch"),
    [(1, 1e9, 1), (64, 1e9, 64), (1e6, 8, 8), (8, 8, 8 / 2**0.25), (5, 0, 1), (0.01, 100, 1)],
)
def test_running_batch(concurrency: float, capacity: float, batch: float) -> None:
    assert running_batch(np.array([concurrency]), np.array([capacity]))[0] == pytest.approx(batch, rel=1e-6)


def test_a_rate_is_served_by_the_concurrency_that_yields_it() -> None:
    e = estimate(at_rate(2.0), C)
    assert e.request_throughput_per_s[0] == pytest.approx(2.0, rel=1e-6)
    assert e.output_throughput_token_per_s[0] == pytest.approx(400.0, rel=1e-6)
    assert e.concurrency[0] > 1
    assert not e.is_saturated[0]


def test_a_rare_request_runs_alone() -> None:
    rare, alone = estimate(at_rate(1e-6), C), estimate(an_example(workload__concurrency=1.0), C)
    assert rare.e2e_s[0] == pytest.approx(alone.e2e_s[0])
    assert rare.concurrency[0] == pytest.approx(1e-6 * alone.e2e_s[0])
    assert rare.output_throughput_token_per_s[0] == pytest.approx(2e-4)


def test_a_rate_beyond_the_replica_saturates_it() -> None:
    e = estimate(at_rate(1e3), C)
    assert e.is_saturated.tolist() == [True]
    assert e.request_throughput_per_s[0] < 1e3


def test_saturation_begins_at_the_throughput_of_a_full_replica() -> None:
    full = estimate(an_example(workload__concurrency=1e4), C).request_throughput_per_s[0]
    assert not estimate(at_rate(0.999 * full), C).is_saturated[0]
    assert estimate(at_rate(1.001 * full), C).is_saturated[0]


def test_closed_and_open_loops_share_a_table() -> None:
    closed, rated = an_example(), at_rate(2.0)
    both = {name: np.concatenate([closed[name], rated[name]]) for name in closed}
    e = estimate(both, C)
    assert e.e2e_s[0] == estimate(closed, C).e2e_s[0]
    assert e.e2e_s[1] == estimate(rated, C).e2e_s[0]
    assert e.is_saturated.tolist() == [False, False]


def test_concurrency_wins_over_a_rate_given_beside_it() -> None:
    e = estimate(an_example(workload__request_rate_per_s=1e6), C)
    assert e.concurrency.tolist() == [8.0]


def test_no_question_has_no_estimate() -> None:
    empty = {name: values[:0] for name, values in an_example().items()}
    assert len(estimate(empty, C).e2e_s) == 0
