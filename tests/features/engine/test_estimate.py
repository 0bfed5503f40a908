import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import (
    Estimate,
    estimate,
    estimate_at_loads,
    load_independent,
    running_batch,
)
from roofcast.features.engine.finite_run import prompt_wait_s
from roofcast.features.engine.kernels.row_kernels import kernels_by_row
from roofcast.features.engine.operators import estimate_prefill, estimate_step
from roofcast.features.engine.pass_communication import EngineInputs
from roofcast.features.engine.pass_cost import n_accepted
from tests.builders import FloatArray, an_example

NAN = float("nan")
ONE = np.ones(1)
REQUEST_S = C.value("request_overhead_s")


def ask(**changes: float) -> Estimate:
    return estimate(an_example(**changes), C)


def at_rate(rate: float, **changes: float) -> dict[str, FloatArray]:
    endless = {"workload__n_request": np.inf} | changes
    return an_example(workload__concurrency=NAN, workload__request_rate_per_s=rate, **endless)


def setting(d: dict[str, FloatArray]) -> EngineInputs:
    return EngineInputs(d, C.by_row(d["config.engine"]), kernels_by_row(d))


def test_one_user_by_hand() -> None:
    d = an_example(workload__concurrency=1.0)
    e = estimate(d, C)
    step, prefill = (f(setting(d), ONE).total_s[0] for f in (estimate_step, estimate_prefill))
    assert e.batch[0] == 1.0
    assert e.queue_s[0] == e.interference_s[0] == e.prompts_ahead_s[0] == 0.0
    assert e.itl_s[0] == e.tpot_s[0] == pytest.approx(step)
    assert e.ttft_s[0] == pytest.approx(REQUEST_S + e.startup_s[0] + prefill)
    assert e.e2e_s[0] == pytest.approx(e.ttft_s[0] + 199 * step)
    assert e.output_throughput_token_per_s[0] == pytest.approx(200 / e.e2e_s[0])
    assert e.request_throughput_per_s[0] == pytest.approx(1 / e.e2e_s[0])


def test_eight_users_slow_each_others_tokens_and_first_tokens() -> None:
    e = ask()
    assert e.batch[0] == pytest.approx(8.0, rel=1e-4)
    assert e.interference_s[0] == pytest.approx(
        C.value("prefill_interference") * (e.batch[0] - 1) * e.prompt_s[0] / 200
    )
    assert e.tpot_s[0] == pytest.approx(e.itl_s[0] + e.interference_s[0])
    assert 0 < e.prompts_ahead_s[0] < 7 * e.prefill_s[0]


def test_requests_of_one_length_wait_for_each_other_instead() -> None:
    varied, fixed = (ask(workload__length_variation=v) for v in (0.1, 0.0))
    assert fixed.interference_s[0] == pytest.approx(varied.interference_s[0] * (1 - C.value("lockstep")))
    assert fixed.prompts_ahead_s[0] > varied.prompts_ahead_s[0]


def test_whoever_does_not_fit_waits_for_the_stay_of_those_who_do() -> None:
    e = ask(workload__concurrency=4.0, model__n_param=70e9, workload__n_wave=np.inf)
    assert e.memory.capacity[0] == 0.0
    assert e.batch[0] == pytest.approx(1.0, abs=0.01)
    stay = ask(workload__concurrency=1.0, model__n_param=70e9).e2e_s[0]
    assert e.queue_s[0] == pytest.approx(3 * stay, rel=0.02)
    assert e.e2e_s[0] == pytest.approx(4 * stay, rel=0.02)


def test_seldom_looks_and_waits_to_batch_lengthen_the_first_token() -> None:
    plain, polled, waited = (
        ask(**changes) for changes in ({}, {"config__poll_interval_step": 31}, {"config__batching_wait_step": 50})
    )
    alone = [e.ttft_s[0] - e.prompts_ahead_s[0] - e.queue_s[0] for e in (plain, polled, waited)]
    assert alone[1] - alone[0] == pytest.approx(30 * C.value("poll_ratio") * plain.itl_s[0])
    assert alone[2] - alone[0] == pytest.approx(50 * plain.itl_s[0])
    assert polled.tpot_s[0] == waited.tpot_s[0] == plain.tpot_s[0]


def test_an_idle_engine_looks_at_once() -> None:
    often, seldom = (ask(workload__concurrency=1.0, config__poll_interval_step=n) for n in (1, 30))
    assert often.ttft_s[0] == seldom.ttft_s[0]


@pytest.mark.parametrize(
    ("concurrency", "capacity", "batch"),
    [(1, 1e9, 1), (64, 1e9, 64), (1e6, 8, 8), (8, 8, 8 / 2**0.25), (5, 0, 1), (0.01, 100, 1)],
)
def test_running_batch(concurrency: float, capacity: float, batch: float) -> None:
    found = running_batch(np.array([concurrency]), np.array([capacity]), np.array([0.5]))
    assert found[0] == pytest.approx(batch, rel=1e-3)


def test_fixed_lengths_feel_the_limit_late() -> None:
    at_the_limit = running_batch(np.full(2, 8.0), np.full(2, 8.0), np.array([0.0, 1.0]))
    np.testing.assert_allclose(at_the_limit, [8 / 2 ** (1 / 24), 8 / 2**0.25])


@pytest.mark.parametrize(
    ("rivals", "prompt_s", "cycle_s", "wait_s"),
    [(0, 1, 5, 0), (1, 1, 1e4, 0.5e-4), (3, 1, 1, 2.581), (50, 1, 60, 2.071), (1e3, 1, 10, 4.5), (7, 0, 5, 0)],
)
def test_waiting_for_prompts(rivals: float, prompt_s: float, cycle_s: float, wait_s: float) -> None:
    found = prompt_wait_s(rivals * ONE, prompt_s * ONE, cycle_s * ONE, ONE)
    assert found[0] == pytest.approx(wait_s, rel=0.01)


def test_drafts_that_are_accepted_make_tokens() -> None:
    np.testing.assert_allclose(n_accepted(np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 3.0])), [1.5, 1.0, 1.0])
    assert n_accepted(ONE, 3 * ONE)[0] == pytest.approx(4.0, rel=0.01)
    plain, drafted = (ask(workload__concurrency=1.0, config__n_draft_token=n) for n in (0, 3))
    cost = (1 + 3 * C.value("draft_ratio")) / (1 + 0.7 + 0.7**2 + 0.7**3)
    assert drafted.itl_s[0] == pytest.approx(drafted.step.total_s[0] * cost)
    assert drafted.itl_s[0] < 0.6 * plain.itl_s[0]


def test_a_rare_request_runs_alone() -> None:
    rare, alone = estimate(at_rate(1e-6), C), ask(workload__concurrency=1.0, workload__n_wave=np.inf)
    assert rare.e2e_s[0] == pytest.approx(alone.e2e_s[0])
    assert rare.concurrency[0] == pytest.approx(1e-6 * alone.e2e_s[0])
    assert rare.output_throughput_token_per_s[0] == pytest.approx(2e-4)


def test_a_saturated_run_queues_until_it_ends() -> None:
    full = estimate(at_rate(1.0), C)
    limit = 1.0 / full.rate_ratio[0]
    short, long, endless = (estimate(at_rate(2 * limit, workload__n_request=n), C) for n in (1e3, 1e4, np.inf))
    assert short.ttft_s[0] < long.ttft_s[0] < endless.ttft_s[0]
    assert long.queue_s[0] == pytest.approx(1e4 / 2 * (1 / limit - 1 / (2 * limit)), rel=0.1)
    assert long.rate_ratio[0] == pytest.approx(2.0, rel=1e-3)
    assert short.request_throughput_per_s[0] < long.request_throughput_per_s[0] <= limit


def test_a_run_that_fits_into_the_batch_never_queues() -> None:
    few = estimate(at_rate(1e3, workload__n_request=8.0), C)
    assert few.is_saturated[0]
    assert few.queue_s[0] < 1e-3 * few.e2e_s[0]
    assert few.concurrency[0] < 8


def test_requests_at_once_queue_half_as_long_as_steady_clients() -> None:
    burst, offline = (
        ask(workload__n_wave=1.0, workload__concurrency=1e4),
        estimate(an_example(workload__concurrency=NAN, workload__n_request=1e4), C),
    )
    stay = burst.e2e_s[0] - burst.queue_s[0]
    last = (1e4 / burst.batch[0] - 1) * stay
    assert burst.queue_s[0] == pytest.approx(last / 2, rel=0.02)
    assert offline.ttft_s[0] == pytest.approx(burst.ttft_s[0])


def test_the_first_token_is_the_sum_of_its_parts() -> None:
    e = ask(workload__concurrency=64.0, workload__n_wave=4.0)
    parts = e.overhead_s + e.startup_s + e.wait_s + e.prefill_s + e.transfer_s + e.prompts_ahead_s + e.queue_s
    np.testing.assert_allclose(e.ttft_s, parts)


def test_a_limit_of_sequences_queues_the_others() -> None:
    free, limited = (ask(config__max_num_seqs=n, workload__n_wave=np.inf) for n in (np.inf, 4.0))
    assert limited.batch[0] == pytest.approx(4.0, rel=1e-3)
    assert free.queue_s[0] < 1e-2 < limited.queue_s[0]
    assert ask(config__max_num_seqs=8.0).queue_s[0] == pytest.approx(ask().queue_s[0], abs=1e-5)


def test_small_chunks_share_more_steps() -> None:
    small, large = (ask(config__chunk_token=n) for n in (500.0, 8000.0))
    assert small.wait_s[0] - large.wait_s[0] == pytest.approx(small.itl_s[0])
    assert ask(workload__concurrency=1.0, config__chunk_token=500.0).wait_s[0] == 0.0


def test_an_engine_that_gathers_prompts_answers_in_waves() -> None:
    alternating = {"config__is_mixed": 0.0, "workload__n_wave": np.inf}
    vllm, tgi = (ask(config__engine=ENGINES.index(name), **alternating) for name in ("vllm", "tgi"))
    assert tgi.prompts_ahead_s[0] == pytest.approx(3.5 * tgi.prefill.total_s[0], rel=0.2)
    assert vllm.prompts_ahead_s[0] < tgi.prompts_ahead_s[0]


def test_saturation_begins_at_the_throughput_of_a_full_replica() -> None:
    full = ask(workload__concurrency=1e4, workload__n_wave=np.inf).request_throughput_per_s[0]
    assert not estimate(at_rate(0.999 * full), C).is_saturated[0]
    assert estimate(at_rate(1.001 * full), C).is_saturated[0]


def test_an_endless_queue_fills_the_replica() -> None:
    d = an_example(workload__concurrency=NAN)
    e = estimate(d, C)
    assert e.concurrency[0] == e.memory.capacity[0]
    assert e.output_throughput_token_per_s[0] <= ask(workload__concurrency=1e4).output_throughput_token_per_s[0]


def test_a_static_batch_starts_and_ends_together() -> None:
    e = ask(workload__is_static=1.0, workload__length_variation=0.0)
    assert e.interference_s[0] == e.prompts_ahead_s[0] == 0.0
    assert e.queue_s[0] == pytest.approx(0.0, abs=1e-9)
    together = estimate_prefill(setting(an_example()), 8 * ONE).total_s[0]
    assert e.ttft_s[0] == pytest.approx(C.value("batch_overhead_s") + together)
    assert e.e2e_s[0] == pytest.approx(e.ttft_s[0] + 199 * e.step.total_s[0])


def test_prefill_apart_interrupts_nothing() -> None:
    apart = ask(config__n_prefill_accelerator=1.0)
    assert apart.interference_s[0] == 0.0
    assert apart.tpot_s[0] == apart.itl_s[0] <= ask().itl_s[0]
    busy, idle = (ask(config__n_prefill_accelerator=n, workload__concurrency=64.0) for n in (1.0, 8.0))
    assert idle.prompts_ahead_s[0] < busy.prompts_ahead_s[0]


def test_requests_that_prefill_apart_do_not_decode() -> None:
    split = {"config__n_prefill_accelerator": 1.0, "workload__n_input_token": 4000.0}
    e = ask(**split, workload__concurrency=256.0, workload__n_output_token=50.0)
    per_prompt = load_independent(an_example(**split), C).full_s[0]
    decode_s = 49 * e.tpot_s[0]
    assert e.request_throughput_per_s[0] == pytest.approx(1 / per_prompt, rel=0.1)  # prefill is the bottleneck
    assert e.batch[0] == pytest.approx(256 * decode_s / e.e2e_s[0], rel=0.05)  # Little's law
    assert e.batch[0] < 64
    many = split | {"config__n_prefill_accelerator": 256.0}
    assert ask(**many, workload__concurrency=256.0, workload__n_output_token=50.0).batch[0] > 2 * e.batch[0]


def test_prompts_that_prefill_apart_share_full_passes() -> None:
    short = {"workload__n_input_token": 100.0}
    together, apart = (load_independent(an_example(**short, config__n_prefill_accelerator=n), C) for n in (0.0, 1.0))
    assert together.full_s[0] == together.prefill.total_s[0]
    assert apart.full_s[0] < 0.7 * apart.prefill.total_s[0]


def test_slots_that_limit_decoding_after_prefill_apart_are_always_in_use() -> None:
    few = {"config__n_prefill_accelerator": 8.0, "config__max_num_seqs": 8.0, "workload__n_wave": np.inf}
    e = ask(**few, workload__concurrency=64.0)
    assert e.queue_s[0] > 5 * 199 * e.tpot_s[0]
    assert e.request_throughput_per_s[0] * 199 * e.tpot_s[0] == pytest.approx(e.batch[0], rel=1e-3)  # Little's law


def test_stages_of_a_pipeline_take_their_turns() -> None:
    split = {"config__n_accelerator": 4, "workload__concurrency": 64.0}
    e = ask(config__pp=4, **split)
    step = estimate_step(setting(an_example(config__pp=4)), 16 * ONE).total_s[0]
    assert e.itl_s[0] == pytest.approx(step, rel=0.01)


def test_concurrency_wins_over_a_rate_given_beside_it() -> None:
    assert ask(workload__request_rate_per_s=1e6).concurrency.tolist() == [8.0]


@pytest.mark.parametrize("loads", [("workload__concurrency", 1.0, 64.0), ("workload__request_rate_per_s", 0.5, 3.0)])
@pytest.mark.parametrize("rows", [[0, 0], [1, 0, 1]])
def test_one_load_independent_part_serves_all_loads(loads: tuple[str, float, float], rows: list[int]) -> None:
    name, *values = loads
    none = {"workload__concurrency": NAN, "workload__n_request": np.inf}
    replicas = [an_example(**none, config__n_accelerator=float(n), config__tp=float(n)) for n in (1, 2)][
        : max(rows) + 1
    ]
    table = {column: np.concatenate([one[column] for one in replicas]) for column in replicas[0]}
    index, load = np.array(rows), np.resize(values, len(rows))
    d = {column: cells[index] for column, cells in table.items()} | {name.replace("__", "."): load}
    shared = estimate_at_loads(load_independent(table, C).take(index, d))
    own = estimate(d, C)
    np.testing.assert_array_equal(shared.e2e_s, own.e2e_s)
    np.testing.assert_array_equal(shared.memory.capacity, own.memory.capacity)
