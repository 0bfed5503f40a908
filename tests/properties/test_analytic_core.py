"""Physical properties of the estimate, for random queries."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.coefficients import PRIORS, Coefficients
from roofcast.features.engine.engine_budgets import RANK_BYTE, graph_byte, usable_byte
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.engine.kernels.efficiency import GemmEfficiency
from roofcast.features.engine.memory import weight_byte
from roofcast.features.pipeline import METRICS, estimate_metrics, estimate_statistics
from roofcast.features.queries import descriptor_arrays
from tests.builders import a_model, a_question, an_accelerator, an_example, describe_questions
from tests.effort import n_example
from tests.features.engine.ideal import IDEAL, INSTANT, logs
from tests.properties.strategies import Question, coefficients, questions

SLACK = 1 + 1e-9
HOST = ("config.host_dense_ratio", "config.host_expert_ratio")
LATENCIES = ("ttft_s", "itl_s", "tpot_s", "e2e_s")
NAN = float("nan")
FACTORS = st.floats(1, 100)
RATES = ("bandwidth_byte_per_s", "flop_per_s", "dense_flop_per_s", "attention_flop_per_s", "link_byte_per_s",
         "network_byte_per_s")  # fmt: skip
random_queries = settings(max_examples=n_example(60), deadline=None)


def scale_columns(question: Question, factor: float, *names: str) -> Question:
    return question | {name: question[name] * factor for name in names}


def assert_no_slower(
    after: Estimate, before: Estimate, metrics: tuple[str, ...] = LATENCIES, slack: float = SLACK
) -> None:
    for metric in metrics:
        assert getattr(after, metric)[0] <= getattr(before, metric)[0] * slack, metric


FASTER = [
    ("bandwidth_byte_per_s",),
    ("flop_per_s", "dense_flop_per_s", "attention_flop_per_s"),
    ("link_byte_per_s",),
    ("network_byte_per_s",),
]


@pytest.mark.parametrize("names", FASTER, ids=lambda names: str(names[0]))
@random_queries
@given(c=coefficients(), question=questions(), factor=FACTORS)
def test_faster_hardware_is_never_slower(
    names: tuple[str, ...], c: Coefficients, question: Question, factor: float
) -> None:
    """Requests that decode faster return sooner and then wait longer for prefills: TTFT may rise, E2E does not."""
    faster = scale_columns(question, factor, *(f"hardware.{name}" for name in names))
    before, after = estimate(question, c), estimate(faster, c)
    assert_no_slower(after, before, ("itl_s", "tpot_s", "e2e_s"))
    assert after.output_throughput_token_per_s[0] * SLACK >= before.output_throughput_token_per_s[0]
    lone = {"workload.concurrency": np.ones(1), "config.dp": np.ones(1)}
    assert_no_slower(estimate(faster | lone, c), estimate(question | lone, c))


@random_queries
@given(c=coefficients(), question=questions(), n_prefill=st.sampled_from([1, 8]), factor=FACTORS)
def test_faster_hardware_is_never_slower_with_disaggregated_prefill(
    c: Coefficients, question: Question, n_prefill: int, factor: float
) -> None:
    disaggregated = question | {"config.n_prefill_accelerator": np.array([float(n_prefill)])}
    for names in FASTER:
        faster = scale_columns(disaggregated, factor, *(f"hardware.{name}" for name in names))
        lone = {"workload.concurrency": np.ones(1), "config.dp": np.ones(1)}
        before, after = estimate(disaggregated | lone, c), estimate(faster | lone, c)
        assert_no_slower(after, before, ("itl_s", "tpot_s"))
        assert after.transfer_s[0] + after.prefill_s[0] <= (before.transfer_s[0] + before.prefill_s[0]) * SLACK


@random_queries
@given(question=questions(), factor=FACTORS)
def test_more_memory_never_keeps_a_request_longer(question: Question, factor: float) -> None:
    """More requests share a step and lengthen it: nothing is claimed of ITL, TPOT or the start of a run."""
    steady = question | {"workload.n_wave": np.array([np.inf])}
    before, after = (estimate(q, C) for q in (steady, scale_columns(steady, factor, "hardware.memory_byte")))
    assert after.batch[0] * SLACK >= before.batch[0]
    assert after.e2e_s[0] <= before.e2e_s[0] * slack_of_heavy_prefill(question, before)


def slack_of_heavy_prefill(question: Question, at_few: Estimate) -> float:
    """Return by how much throughput may fall with the batch: random arrivals overstate waits for prefills.

    None where a prompt takes less than .3 of the time of its answer; elsewhere a search found falls of up to 1.66.
    """
    answer_s = question["workload.n_output_token"][0] * at_few.itl_s[0]
    return SLACK if at_few.prefill_s[0] < 0.3 * answer_s else 2.0


def test_more_memory_can_lengthen_a_step() -> None:
    small, large = (
        estimate(an_example(hardware__memory_byte=byte, workload__concurrency=64.0), C) for byte in (20e9, 80e9)
    )
    assert large.itl_s[0] > small.itl_s[0]
    assert large.e2e_s[0] < small.e2e_s[0]


@pytest.mark.parametrize("name", ["n_input_token", "n_output_token", "concurrency"])
@random_queries
@given(c=coefficients(), question=questions(), factor=FACTORS)
def test_more_work_is_never_done_sooner(name: str, c: Coefficients, question: Question, factor: float) -> None:
    before, after = (estimate(q, c) for q in (question, scale_columns(question, factor, f"workload.{name}")))
    is_open = not np.isnan(question["workload.request_rate_per_s"][0])
    slack = 1.05 if is_open else SLACK  # the queue of a run that ends is approximate
    assert_no_slower(before, after, ("e2e_s",), slack=slack)


@random_queries
@given(question=questions(), ratio=st.floats(0, 0.99))
def test_cached_prefixes_are_never_slower(question: Question, ratio: float) -> None:
    cold, warm = (estimate(question | {"workload.prefix_cache_ratio": np.array([r])}, C) for r in (0.0, ratio))
    assert_no_slower(warm, cold, ("itl_s", "tpot_s", "e2e_s"))
    assert warm.prefill_s[0] <= cold.prefill_s[0] * SLACK


@random_queries
@given(c=coefficients(), question=questions(), factor=FACTORS)
def test_more_users_raise_throughput_and_waits(c: Coefficients, question: Question, factor: float) -> None:
    before, after = (estimate(q, c) for q in (question, scale_columns(question, factor, "workload.concurrency")))
    slack = slack_of_heavy_prefill(question, before)
    assert after.output_throughput_token_per_s[0] * slack >= before.output_throughput_token_per_s[0]
    assert_no_slower(before, after)


@random_queries
@given(c=coefficients(), question=questions())
def test_e2e_is_ttft_plus_the_gaps(c: Coefficients, question: Question) -> None:
    e = estimate(question, c)
    n_gap = question["workload.n_output_token"][0] - 1
    assert e.e2e_s[0] == pytest.approx(e.ttft_s[0] + n_gap * e.tpot_s[0])
    assert e.tpot_s[0] >= e.itl_s[0]
    steady = estimate(question | {"workload.n_wave": np.array([np.inf])}, c)
    tokens = question["workload.concurrency"][0] * question["workload.n_output_token"][0]
    assert steady.output_throughput_token_per_s[0] == pytest.approx(tokens / steady.e2e_s[0])


@random_queries
@given(c=coefficients(), question=questions(), quantile=st.sampled_from([0.5, 0.9, 0.99]), is_mean=st.booleans())
def test_every_estimate_is_finite_and_positive(
    c: Coefficients, question: Question, quantile: float, is_mean: bool
) -> None:
    varied = question | {"workload.quantile": np.array([quantile]), "workload.is_mean": np.array([float(is_mean)])}
    e = estimate(varied, c)
    for values in (*estimate_statistics(varied, c, e).values(), e.prefill_s, e.batch):
        assert math.isfinite(values[0])
        assert values[0] > 0


@random_queries
@given(question=questions())
def test_memory_adds_up(question: Question) -> None:
    memory = estimate(question, C).memory
    assert memory.needed_byte[0] == memory.weight_byte[0] + memory.longest_byte[0]
    assert memory.longest_byte[0] >= memory.kv_byte_per_sequence[0]
    held = memory.weight_byte[0] + memory.capacity[0] * memory.kv_byte_per_sequence[0]
    if memory.capacity[0] > 0 and question["model.n_encoder_layer"][0] == 0:
        assert held <= memory.usable_byte[0] * SLACK
    two = scale_columns(question, 2.0, "config.n_accelerator", "config.pp")
    n, (one, both) = question["config.n_accelerator"][0], (usable_byte(q)[0] for q in (question, two))
    buffers = n * RANK_BYTE if n == question["config.dp"][0] else 0.0  # ranks that were alone have messages now
    assert 2 * (one - buffers) <= both * SLACK
    assert both <= 2 * (one + n * graph_byte(question)[0]) * SLACK
    assert weight_byte(two)[0] == pytest.approx(memory.weight_byte[0])
    copies = scale_columns(question, 2.0, "config.n_accelerator", "config.dp")
    if question["config.engine"][0] == ENGINES.index("sglang"):  # its attention ranks hold whole embeddings
        assert weight_byte(copies)[0] >= 2 * memory.weight_byte[0] * (1 - 1e-9)
    else:
        assert weight_byte(copies)[0] == pytest.approx(2 * memory.weight_byte[0])


@random_queries
@given(question=questions())
def test_one_accelerator_sends_no_messages(question: Question) -> None:
    split = ("tp", "pp", "dp", "cp", "n_accelerator", "expert_rank", "ep")
    names = tuple(f"config.{name}" for name in split)
    alone = question | {name: np.ones(1) for name in names}
    e = estimate(alone, C)
    assert e.step.link_s[0] == e.prefill.link_s[0] == 0.0
    slow = estimate(scale_columns(alone, 1e-6, "hardware.link_byte_per_s", "hardware.network_byte_per_s"), C)
    assert slow.e2e_s[0] == e.e2e_s[0]


@random_queries
@given(c=coefficients(), question=questions(), load=st.floats(1e-6, 3))
def test_an_open_loop_obeys_littles_law_or_is_saturated(c: Coefficients, question: Question, load: float) -> None:
    steady = {"workload.n_wave": np.array([np.inf]), "workload.n_request": np.array([np.inf])}
    long = question | steady | {"workload.n_output_token": np.maximum(question["workload.n_output_token"], 100.0)}
    limit = estimate(long | {"workload.concurrency": np.array([1e7])}, c).request_throughput_per_s[0]
    rate = load * limit
    opened = {"workload.concurrency": np.array([NAN]), "workload.request_rate_per_s": np.array([rate])}
    e = estimate(long | opened, c)
    assert e.is_saturated[0] == (load > 1) or load == pytest.approx(1, abs=1e-2)
    assert e.concurrency[0] == pytest.approx(e.request_throughput_per_s[0] * e.e2e_s[0])
    assert e.e2e_s[0] == pytest.approx(e.ttft_s[0] + (long["workload.n_output_token"][0] - 1) * e.tpot_s[0])
    if not e.is_saturated[0]:
        assert e.request_throughput_per_s[0] == pytest.approx(rate, rel=1e-9)


@random_queries
@given(c=coefficients(), question=questions(), load=st.floats(1e-6, 0.97), factor=st.floats(1, 1e3))
def test_rarer_requests_are_never_slower(c: Coefficients, question: Question, load: float, factor: float) -> None:
    long = question | {"workload.n_output_token": np.maximum(question["workload.n_output_token"], 100.0)}
    limit = estimate(long | {"workload.concurrency": np.array([1e7])}, c).request_throughput_per_s
    opened = long | {"workload.concurrency": np.array([NAN])}
    often, seldom = (
        estimate(opened | {"workload.request_rate_per_s": limit * share}, c) for share in (load, load / factor)
    )
    assert seldom.e2e_s[0] <= often.e2e_s[0] * (1 + 1e-5)
    lone = {
        "workload.concurrency": np.ones(1),
        "workload.n_wave": np.full(1, np.inf),
        "config.dp": question["config.dp"],
    }
    assert estimate(long | lone, c).e2e_s[0] <= seldom.e2e_s[0] * (1 + 1e-3)


@random_queries
@given(question=questions(), n_rank=st.integers(2, 16))
def test_data_parallel_ranks_equal_replicas(question: Question, n_rank: int) -> None:
    """As long as users and memory suffice for one request a rank, ranks times the users changes no latency."""
    alone = estimate(question, C)
    together = estimate(
        scale_columns(question, n_rank, "config.dp", "config.n_accelerator", "workload.concurrency"), C
    )
    for metric in LATENCIES:
        assert getattr(together, metric)[0] == pytest.approx(getattr(alone, metric)[0])
    assert together.output_throughput_token_per_s[0] == pytest.approx(n_rank * alone.output_throughput_token_per_s[0])


@random_queries
@given(question=questions(), factor=st.floats(0.1, 10))
def test_times_scale_with_the_unit_of_time(question: Question, factor: float) -> None:
    """Rates divided and fixed costs multiplied by one factor scale every time by it."""
    times = {name: C.value(name) for name, prior in PRIORS.items() if prior.unit == "s"}
    slow = C.with_values(**{name: value * factor for name, value in times.items()})
    stretched = scale_columns(question, 1 / factor, *(f"hardware.{name}" for name in RATES))
    stretched = scale_columns(stretched, factor, "hardware.network_latency_s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofcast.features.engine.estimate.kernels_by_row", lambda _: IDEAL)
        before, after = (estimate_metrics(q, estimate(q, c)) for q, c in ((question, C), (stretched, slow)))
    for metric in METRICS:
        expected = before[metric][0] * (1 / factor if metric.startswith("output") else factor)
        assert after[metric][0] == pytest.approx(expected), metric


LAYERS = (
    "n_layer",
    "n_full_layer",
    "n_sliding_layer",
    "n_sparse_layer",
    "n_moe_layer",
    "n_mlp_layer",
    "n_encoder_layer",
)


@random_queries
@given(question=questions(), factor=st.floats(0.1, 10))
def test_times_do_not_depend_on_the_units_of_bytes_and_operations(question: Question, factor: float) -> None:
    """A machine with a multiple of the rates takes the same time for the same multiple of layers."""
    headless = replace(IDEAL, head=GemmEfficiency(0.0, INSTANT, INSTANT, 0.0, 0.0, 0.0))
    free = {"hardware.network_latency_s": np.zeros(1), "config.lora_rank": np.zeros(1), "config.pp": np.ones(1)}
    roomy = question | free | {"hardware.memory_byte": np.array([INSTANT])}
    grown = scale_columns(
        roomy, factor, *(f"hardware.{name}" for name in RATES), *(f"model.{name}" for name in LAYERS)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofcast.features.engine.estimate.kernels_by_row", lambda _: headless)
        before, after = (estimate(q, logs(elementwise_ratio=10.0)) for q in (roomy, grown))
    for metric in LATENCIES:
        assert getattr(after, metric)[0] == pytest.approx(getattr(before, metric)[0]), metric


@settings(max_examples=n_example(50), deadline=None)
@given(shorter=st.integers(1, 8000), longer=st.integers(1, 8000))
def test_fewer_bits_never_take_longer(shorter: int, longer: int) -> None:
    question = a_question(n_input_token=shorter, n_output_token=longer)
    part = an_accelerator(peak_flop_per_s={"bf16": 3e14, "fp8": 6e14})
    estimates = [
        estimate(descriptor_arrays(table), C)
        for table in (
            describe_questions(question | {"weight_precision": p}, model=a_model(), accelerator=part)
            for p in ("fp8", "bf16")
        )
    ]
    assert_no_slower(estimates[0], estimates[1], ("itl_s", "tpot_s", "e2e_s"))


@random_queries
@given(question=questions(), shares=st.lists(st.floats(0, 1), min_size=2, max_size=2), name=st.sampled_from(HOST))
def test_more_weights_in_the_host_are_never_faster(question: Question, shares: list[float], name: str) -> None:
    before, after = (estimate(question | {name: np.array([share])}, C) for share in sorted(shares))
    assert_no_slower(before, after, ("itl_s", "tpot_s", "e2e_s"))
    lone = question | {"workload.concurrency": np.ones(1), "config.dp": np.ones(1)}
    before, after = (estimate(lone | {name: np.array([share])}, C) for share in sorted(shares))
    assert_no_slower(before, after)


@pytest.mark.parametrize(
    ("engine", "seconds"),
    [("llama.cpp", 14e9 / 67.2e9), ("vllm", 14e9 / 24e9)],
)
def test_weights_in_the_host_are_read_there_or_over_the_bus(engine: str, seconds: float) -> None:
    question = an_example(
        config__engine=ENGINES.index(engine), config__host_dense_ratio=1.0, hardware__host_byte_per_s=67.2e9,
        workload__concurrency=1,
    )  # fmt: skip
    assert estimate(question, C).tpot_s[0] == pytest.approx(seconds, rel=0.06)
