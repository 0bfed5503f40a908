import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.features.analysis.whatif import (
    FACTORS,
    NODES,
    dram_steps,
    node_steps,
    parse_steps,
    scale_accelerator,
    sweep,
)
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import estimate
from roofcast.features.queries import descriptor_arrays
from tests.builders import a_question, an_accelerator, describe_questions

H100 = load_catalog().accelerators["nvidia-h100-sxm-80gb"]


def test_each_factor_scales_its_own_figures() -> None:
    part = scale_accelerator(H100, bandwidth=2, flops=3, memory=4, link=5, power=6)
    assert part.bandwidth_byte_per_s == 2 * H100.bandwidth_byte_per_s
    assert part.peak_flop_per_s == {name: 3 * peak for name, peak in H100.peak_flop_per_s.items()}
    assert part.memory_byte == 4 * H100.memory_byte
    assert part.link_bandwidth_byte_per_s == 5 * H100.link_bandwidth_byte_per_s
    assert part.tdp_w == 6 * (H100.tdp_w or 0)


def test_the_source_names_the_parent_and_the_factors() -> None:
    part = scale_accelerator(H100, bandwidth=1.5, link=0.5)
    assert part.id == "nvidia-h100-sxm-80gb~bandwidth=1.5,link=0.5"
    assert part.source == "hypothetical: nvidia-h100-sxm-80gb with bandwidth=1.5 link=0.5"
    assert scale_accelerator(H100, name="next", memory=2).id == "nvidia-h100-sxm-80gb~next"
    assert (
        scale_accelerator(scale_accelerator(H100, name="next"), memory=2).id == "nvidia-h100-sxm-80gb~next,memory=2"
    )
    assert scale_accelerator(an_accelerator(), power=2).tdp_w is None


def test_kernels_stay_those_of_the_parent() -> None:
    own, other = (
        describe_questions(accelerator=part) for part in (H100, scale_accelerator(H100, bandwidth=2, flops=2))
    )
    for column in ("hardware.accelerator", "hardware.family"):
        assert own[column].equals(other[column])


@pytest.mark.parametrize("factor", FACTORS)
def test_more_of_anything_is_never_slower(factor: str) -> None:
    parts = sweep(H100, parse_steps(factor, ["0.5", "1", "2"]))
    question = a_question(n_accelerator=8, concurrency=256)
    times = [
        estimate(descriptor_arrays(describe_questions(question, accelerator=part)), C).e2e_s[0] for part in parts
    ]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_is_a_positive_number(value: float) -> None:
    with pytest.raises(InputError, match="bandwidth: must be a positive factor"):
        scale_accelerator(H100, bandwidth=value)


def test_each_process_computes_more_in_the_same_power_and_area() -> None:
    factors = [step["flops"] for step in node_steps(list(NODES))]
    assert factors == sorted(factors)
    assert factors[0] == 1.0
    n5, n2 = node_steps(["N5", "N2"])
    assert n2["flops"] == pytest.approx(min(1.6 * 1.15, 1 / (0.68 * 0.725)), abs=1e-3)
    assert n5 == {"flops": 1.0}


def test_a_sweep_names_what_is_known() -> None:
    with pytest.raises(UnknownNameError, match="node"):
        node_steps(["N4"])
    with pytest.raises(UnknownNameError, match="dram"):
        dram_steps(["HBM3", "HBM9"])
    with pytest.raises(InputError, match="must name one of"):
        parse_steps("clock", ["1"])
    with pytest.raises(InputError, match="must be a positive factor, got 1, x"):
        parse_steps("link", ["1", "x"])
    assert parse_steps("dram", ["HBM2", "HBM3"]) == [{"bandwidth": 1.0}, {"bandwidth": 3.2}]
    assert parse_steps("node", ["N3"]) == [{"flops": 1.0}]
