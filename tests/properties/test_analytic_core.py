"""What physics says of the estimate, whatever the question."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.features.batching import Estimate, estimate
from roofcast.features.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.coefficients import PRIORS, Coefficients
from roofcast.features.pipeline import arrays
from roofcast.training.calibration import FARTHEST
from tests.builders import FloatArray, a_model, a_question, an_accelerator, an_example, describe_questions

SLACK = 1 + 1e-9
LATENCIES = ("ttft_s", "itl_s", "tpot_s", "e2e_s")
WHOLE_LATENCIES = ("ttft_s", "e2e_s")
NAN = float("nan")

Question = dict[str, FloatArray]


@st.composite
def models(draw: st.DrawFn) -> dict[str, float]:
    """Return descriptors of a dense, grouped, sliding, mixture-of-experts or encoder-decoder model."""
    n_layer = draw(st.integers(1, 128))
    n_sliding = draw(st.integers(0, n_layer))
    n_head = draw(st.sampled_from([8, 16, 32, 64, 128]))
    n_kv_head = draw(st.sampled_from([1, 2, 4, 8]))
    n_expert = draw(st.sampled_from([0, 8, 64, 256]))
    dense, expert = draw(st.floats(1e8, 1e11)), draw(st.floats(1e9, 1e12)) * (n_expert > 0)
    encoder = draw(st.sampled_from([0.0, 0.0, dense / 2]))
    return {
        "model__n_layer": n_layer, "model__n_encoder_layer": n_layer * (encoder > 0),
        "model__hidden_size": n_head * 128, "model__n_param": dense + expert + encoder,
        "model__n_param_dense": dense, "model__n_param_expert": expert, "model__n_param_encoder": encoder,
        "model__n_expert": n_expert, "model__n_expert_per_token": min(n_expert, draw(st.integers(1, 8))),
        "model__attention_width": max(n_layer - n_sliding, 1) * n_head * 128,
        "model__kv_width": (n_layer - n_sliding) * 2 * n_kv_head * 128,
        "model__kv_width_sliding": n_sliding * 2 * n_kv_head * 128,
        "model__sliding_window": draw(st.sampled_from([128, 1024, 4096])) * (n_sliding > 0),
        "model__n_kv_head": n_kv_head,
    }  # fmt: skip


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Return any closed-loop question."""
    tp = draw(st.sampled_from([1, 2, 4, 8]))
    return an_example(
        **draw(models()),
        hardware__memory_byte=draw(st.floats(8e9, 3e11)),
        hardware__bandwidth_byte_per_s=draw(st.floats(1e11, 1e13)),
        hardware__flop_per_s=draw(st.floats(1e13, 5e15)),
        hardware__link_byte_per_s=draw(st.floats(1e10, 2e12)),
        config__n_accelerator=tp,
        config__tp=tp,
        config__weight_byte_per_element=draw(st.sampled_from([0.5, 1, 2, 4])),
        config__flash_attention=draw(st.sampled_from([0, 1])),
        workload__n_input_token=draw(st.floats(1, 1e5)),
        workload__n_output_token=draw(st.floats(1, 1e4)),
        workload__concurrency=draw(st.floats(1, 1e4)),
    )


@st.composite
def coefficients(draw: st.DrawFn) -> Coefficients:
    """Return any coefficients that calibration may find."""
    moved = {name: p.median * math.exp(draw(st.floats(-FARTHEST, FARTHEST)) * p.log_sd) for name, p in PRIORS.items()}
    return Coefficients(
        **{name: min(value, 1.0) if PRIORS[name].is_share else value for name, value in moved.items()}
    )


FACTORS = st.floats(1, 100)
many = settings(max_examples=120, deadline=None)


def changed(question: Question, name: str, factor: float) -> Question:
    return question | {name: question[name] * factor}


def assert_no_slower(after: Estimate, before: Estimate, metrics: tuple[str, ...] = LATENCIES) -> None:
    for metric in metrics:
        assert getattr(after, metric)[0] <= getattr(before, metric)[0] * SLACK, metric


@pytest.mark.parametrize("name", ["bandwidth_byte_per_s", "flop_per_s", "link_byte_per_s"])
@many
@given(c=coefficients(), question=questions(), factor=FACTORS)
def test_faster_hardware_is_never_slower(name: str, c: Coefficients, question: Question, factor: float) -> None:
    before, after = (estimate(q, c) for q in (question, changed(question, f"hardware.{name}", factor)))
    assert_no_slower(after, before)
    assert after.output_throughput_token_per_s[0] * SLACK >= before.output_throughput_token_per_s[0]


@many
@given(c=coefficients(), question=questions(), factor=FACTORS)
def test_more_memory_never_keeps_a_request_longer(c: Coefficients, question: Question, factor: float) -> None:
    """It does lengthen the step, because more requests share it: no claim on ITL or TPOT."""
    before, after = (estimate(q, c) for q in (question, changed(question, "hardware.memory_byte", factor)))
    assert_no_slower(after, before, WHOLE_LATENCIES)
    assert after.batch[0] * SLACK >= before.batch[0]
    assert after.output_throughput_token_per_s[0] * SLACK >= before.output_throughput_token_per_s[0]


def test_more_memory_can_lengthen_a_step() -> None:
    small, large = (
        estimate(an_example(hardware__memory_byte=byte, workload__concurrency=64.0), C) for byte in (20e9, 80e9)
    )
    assert large.itl_s[0] > small.itl_s[0]
    assert large.e2e_s[0] < small.e2e_s[0]


@pytest.mark.parametrize("name", ["n_input_token", "n_output_token", "concurrency"])
@many
@given(c=coefficients(), question=questions(), factor=FACTORS)
def test_more_work_is_never_done_sooner(name: str, c: Coefficients, question: Question, factor: float) -> None:
    before, after = (estimate(q, c) for q in (question, changed(question, f"workload.{name}", factor)))
    assert_no_slower(before, after, WHOLE_LATENCIES)


@many
@given(c=coefficients(), question=questions(), factor=FACTORS)
def test_more_users_never_lower_the_throughput(c: Coefficients, question: Question, factor: float) -> None:
    before, after = (estimate(q, c) for q in (question, changed(question, "workload.concurrency", factor)))
    assert after.output_throughput_token_per_s[0] * SLACK >= before.output_throughput_token_per_s[0]
    assert_no_slower(before, after)


@many
@given(c=coefficients(), question=questions())
def test_a_request_is_its_first_token_and_the_gaps_after_it(c: Coefficients, question: Question) -> None:
    e = estimate(question, c)
    n_output = question["workload.n_output_token"]
    np.testing.assert_allclose(e.e2e_s, e.ttft_s + (n_output - 1) * e.tpot_s)
    np.testing.assert_allclose(e.output_throughput_token_per_s * e.e2e_s, e.concurrency * n_output)
    np.testing.assert_allclose(e.request_throughput_per_s * n_output, e.output_throughput_token_per_s)
    assert e.tpot_s[0] >= e.itl_s[0]
    assert e.ttft_s[0] >= e.prefill_s[0] + e.queue_s[0]
    assert 1 <= e.batch[0] <= e.concurrency[0] * SLACK
    assert e.output_throughput_token_per_s[0] <= e.batch[0] / e.itl_s[0] * n_output[0] / max(n_output[0] - 1, 1e-9)


@many
@given(c=coefficients(), question=questions())
def test_every_estimate_is_finite_and_positive(c: Coefficients, question: Question) -> None:
    e = estimate(question, c)
    for metric in (*LATENCIES, "prefill_s", "batch", "output_throughput_token_per_s"):
        assert math.isfinite(getattr(e, metric)[0])
        assert getattr(e, metric)[0] > 0


@many
@given(question=questions())
def test_memory_adds_up(question: Question) -> None:
    memory = estimate(question, C).memory
    doubled = estimate(changed(question, "config.n_accelerator", 2), C).memory
    assert memory.needed_byte[0] == memory.weight_byte[0] + memory.kv_byte_per_sequence[0]
    assert doubled.usable_byte[0] == pytest.approx(2 * memory.usable_byte[0])
    assert doubled.weight_byte[0] == memory.weight_byte[0]
    held = memory.weight_byte[0] + memory.capacity[0] * memory.kv_byte_per_sequence[0]
    if memory.capacity[0] > 0 and question["config.flash_attention"][0] == 1:
        assert held <= memory.usable_byte[0] * SLACK


@many
@given(question=questions())
def test_one_rank_has_nobody_to_talk_to(question: Question) -> None:
    one = {"config.tp": np.ones(1), "config.n_accelerator": np.ones(1)}
    e = estimate(question | one, C)
    assert e.step.link_s[0] == 0
    slow = estimate(changed(question | one, "hardware.link_byte_per_s", 1e-6), C)
    assert slow.e2e_s[0] == e.e2e_s[0]


@many
@given(c=coefficients(), question=questions(), load=st.floats(1e-6, 3))
def test_a_rate_is_met_by_littles_law_or_flagged(c: Coefficients, question: Question, load: float) -> None:
    limit = estimate(question | {"workload.concurrency": np.array([1e5])}, c).request_throughput_per_s[0]
    rate = load * limit
    opened = {"workload.concurrency": np.array([NAN]), "workload.request_rate_per_s": np.array([rate])}
    e = estimate(question | opened, c)
    assert e.is_saturated[0] == (load > 1) or load == pytest.approx(1)
    assert e.concurrency[0] == pytest.approx(e.request_throughput_per_s[0] * e.e2e_s[0])
    if not e.is_saturated[0]:
        assert e.request_throughput_per_s[0] == pytest.approx(rate, rel=1e-6)
        closed = estimate(question | {"workload.concurrency": e.concurrency}, c)
        for metric in LATENCIES:
            assert getattr(closed, metric)[0] == getattr(e, metric)[0]


@many
@given(question=questions(), n_rank=st.integers(2, 16))
def test_data_parallel_ranks_are_so_many_replicas(question: Question, n_rank: int) -> None:
    """As long as users and memory suffice for one request a rank, ranks times the users changes no latency."""
    alone = estimate(question, C)
    ranks = question
    for name in ("config.dp", "config.n_accelerator", "workload.concurrency"):
        ranks = changed(ranks, name, n_rank)
    together = estimate(ranks, C)
    for metric in LATENCIES:
        assert getattr(together, metric)[0] == pytest.approx(getattr(alone, metric)[0])
    assert together.output_throughput_token_per_s[0] == pytest.approx(n_rank * alone.output_throughput_token_per_s[0])


@many
@given(question=questions(), factor=st.floats(0.1, 10))
def test_a_slower_clock_stretches_every_time_alike(question: Question, factor: float) -> None:
    """Seconds are the only unit of time: rates divided and fixed costs multiplied by one factor scale the answer."""
    times = {name: getattr(C, name) * factor for name in PRIORS if name.endswith("_s")}
    slow = replace(C, **times)
    stretched = question
    for name in ("bandwidth_byte_per_s", "flop_per_s", "link_byte_per_s"):
        stretched = changed(stretched, f"hardware.{name}", 1 / factor)
    before, after = estimate(question, C), estimate(stretched, slow)
    for metric in LATENCIES:
        assert getattr(after, metric)[0] == pytest.approx(factor * getattr(before, metric)[0])


@settings(max_examples=50, deadline=None)
@given(shorter=st.integers(1, 8000), longer=st.integers(1, 8000))
def test_fewer_bits_never_take_longer(shorter: int, longer: int) -> None:
    question = a_question(n_input_token=shorter, n_output_token=longer)
    part = an_accelerator(peak_flop_per_s={"bf16": 3e14, "fp8": 6e14})
    estimates = [
        estimate(arrays(table), C)
        for table in (
            describe_questions(question | {"weight_precision": p}, model=a_model(), accelerator=part)
            for p in ("fp8", "bf16")
        )
    ]
    assert_no_slower(estimates[0], estimates[1])
