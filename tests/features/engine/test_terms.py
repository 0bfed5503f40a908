"""Terms that a question names: each moves the estimate in its direction, from the question to the seconds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.engine.kernel_times import gemm_s
from roofcast.features.engine.kernels.kernel_coefficients import efficiency_of
from roofcast.features.engine.loop.root_finding import Function, find_roots
from roofcast.features.engine.operators import estimate_step
from roofcast.features.engine.pass_cost import token_cost
from roofcast.features.queries import RowIndex, descriptor_arrays, take_rows
from tests.builders import a_question, an_accelerator, an_example, describe_questions
from tests.features.engine.ideal import INSTANT, a_setting

ONE = np.ones(1)
MEMORY_BOUND = {f"hardware__{name}": INSTANT for name in ("flop_per_s", "dense_flop_per_s", "attention_flop_per_s")}


def ask(model: ModelSpec | None = None, part: AcceleratorSpec | None = None, **changes: Any) -> Estimate:
    return estimate(descriptor_arrays(describe_questions(a_question(**changes), model=model, accelerator=part)), C)


def test_a_told_acceptance_counts_and_the_usual_one_otherwise() -> None:
    drafts: dict[str, Any] = {"speculation": "eagle", "n_speculative_token": 3}
    usual, told, better = (ask(**drafts, chain_acceptance_ratio=a) for a in (np.nan, C.value("acceptance"), 0.9))
    assert told.tpot_s[0] == usual.tpot_s[0]
    assert better.tpot_s[0] < told.tpot_s[0]
    d = an_example(config__n_draft_token=3, config__acceptance_ratio=0.5)
    cost = (1 + 3 * C.value("draft_ratio")) / (1 + 0.5 + 0.25 + 0.125)
    assert token_cost(d, C.by_row(d["config.engine"]))[0] == pytest.approx(cost)


def test_weights_that_are_unpacked_first_are_read_faster_and_multiplied_slower() -> None:
    h100 = load_catalog().accelerators["nvidia-h100-sxm-80gb"]

    def product_s(m: float, precision: str, byte: float) -> float:
        efficiency = efficiency_of([h100.id], [h100.architecture], [precision], ["bf16"], ["vllm"]).gemm
        peaks = {"flop_per_s": h100.peak_flop_per_s["bf16"], "bandwidth_byte_per_s": h100.bandwidth_byte_per_s}
        seconds = gemm_s(
            m * ONE, 8192.0, 8192.0, weight_byte=byte, activation_byte=2.0, efficiency=efficiency, **peaks
        )
        return float(seconds[0])

    assert product_s(1, "int4", 0.53125) < 0.7 * product_s(1, "bf16", 2.0)
    assert product_s(4096, "int4", 0.53125) > product_s(4096, "bf16", 2.0)


def test_a_decoder_crosses_to_the_whole_input_and_to_what_it_wrote() -> None:
    d = an_example(
        model__n_encoder_layer=24, workload__n_input_token=3000, workload__n_output_token=400, **MEMORY_BOUND
    )
    step = estimate_step(a_setting(d), ONE)
    assert step.attention_s[0] == pytest.approx(32 * (3000 + 200) * 8192 * 2 / 2e12)


def test_pcie_joins_the_accelerators_of_a_host_unless_a_network_is_told() -> None:
    slot = {"link": "pcie4", "link_domain_size": 1, "link_bandwidth_byte_per_s": 64e9}
    part = an_accelerator(**slot)
    rows = describe_questions(a_question(), a_question(network="wide_area_100m"), accelerator=part)
    assert rows["hardware.host_size"].tolist() == [8.0, 1.0]
    near, far = (ask(part=part, n_accelerator=4, pp=4, tp=1, network=name) for name in ("", "wide_area_100m"))
    assert far.itl_s[0] - near.itl_s[0] > 3 * 0.05


def test_uneven_stages_wait_for_the_longest() -> None:
    split = {"config__pp": 4, "config__n_accelerator": 4, "workload__concurrency": 64.0}
    even, uneven = (estimate(an_example(**split, model__n_layer=n), C) for n in (32, 30))
    assert even.itl_s[0] == pytest.approx(even.step.total_s[0])
    assert uneven.itl_s[0] == pytest.approx(uneven.step.total_s[0] * 4 * 8 / 30)
    lone = estimate(an_example(**split | {"workload__concurrency": 1.0}, model__n_layer=30), C)
    assert lone.itl_s[0] == pytest.approx(lone.step.total_s[0])


def test_a_long_prompt_fills_the_stages_with_its_chunks() -> None:
    def prefill_s(pp: float) -> float:
        lone = {"workload__concurrency": 1.0, "workload__n_input_token": 65536.0}
        return float(estimate(an_example(config__pp=pp, config__n_accelerator=pp, **lone), C).prefill_s[0])

    assert 11 / 32 * prefill_s(1) < prefill_s(4) < 14 / 32 * prefill_s(1)  # the last chunk attends to most


@given(
    power=st.lists(st.floats(0.05, 1), min_size=1, max_size=20),
    rate=st.lists(st.floats(1e-4, 1e4), min_size=20, max_size=20),
    grown=st.floats(1e-3, 1e3),
)
def test_roots_are_found_where_stays_grow_with_load(power: list[float], rate: list[float], grown: float) -> None:
    powers, logs = np.array(power), np.log(rate)[: len(power)]

    def of_rows(rows: RowIndex) -> Function:
        return lambda x: x - np.log(1 + grown * np.exp(powers[rows] * x)) - logs[rows]

    whole = of_rows(np.arange(len(powers)))
    low, high = np.full(len(powers), -30.0), np.full(len(powers), 12.0)
    found = find_roots(of_rows, low, high, whole(low), whole(high))
    np.testing.assert_allclose(np.where(whole(high) > 0, whole(found), 0.0), 0.0, atol=1e-11)
    np.testing.assert_array_equal(found[whole(high) <= 0], 12.0)


def test_numbers_and_lone_rows_stand_for_all() -> None:
    found = take_rows({"a": 1.5, "b": ONE, "c": np.arange(3.0)}, np.array([2]))
    assert (found["a"], found["b"][0], found["c"].tolist()) == (1.5, 1.0, [2.0])
