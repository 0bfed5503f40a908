import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import (
    DEFAULT_COEFFICIENTS,
    NAMES,
    PRIORS,
    Coefficients,
    Prior,
)


@pytest.mark.parametrize(("name", "prior"), PRIORS.items(), ids=PRIORS)
def test_a_prior_is_positive_sourced_and_the_default(name: str, prior: Prior) -> None:
    assert prior.median > 0
    assert prior.log_sd > 0
    assert prior.engine_log_sd >= 0
    assert not prior.is_share or prior.median <= 1
    assert name.endswith("_s") == (prior.unit == "s")
    assert prior.meaning
    assert prior.source
    for engine in ENGINES:
        assert DEFAULT_COEFFICIENTS.value(name, engine) == pytest.approx(prior.median)


def with_offset(engine: str, name: str, by: float) -> Coefficients:
    offset = np.zeros((len(ENGINES), len(NAMES)))
    offset[ENGINES.index(engine), NAMES.index(name)] = by
    return Coefficients(DEFAULT_COEFFICIENTS.typical, offset)


def test_an_engine_lies_at_its_own_distance() -> None:
    c = with_offset("sglang", "wait_step", np.log(2))
    typical = DEFAULT_COEFFICIENTS.value("wait_step")
    values = c.value("wait_step", "sglang"), c.value("wait_step", "vllm"), c.value("wait_step")
    assert values == (2 * typical, typical, typical)
    rows = c.by_row(np.array([1.0, 0.0, 14.0]))
    np.testing.assert_allclose(rows["wait_step"], values)


@pytest.mark.parametrize("name", ["poll_ratio", "acceptance"])
def test_no_share_exceeds_one_in_any_row_or_value(name: str) -> None:
    c = with_offset("vllm", name, 5.0)
    assert c.value(name, "vllm") == c.by_row(np.array([0.0]))[name][0] == 1.0


def test_values_can_be_set_in_their_units() -> None:
    c = DEFAULT_COEFFICIENTS.with_values(wait_step=9.0, layer_overhead_s=5e-5)
    assert c.value("wait_step") == pytest.approx(9.0)
    assert c.value("layer_overhead_s") == pytest.approx(5e-5)
    assert c != DEFAULT_COEFFICIENTS
    assert c == DEFAULT_COEFFICIENTS.with_values(wait_step=9.0, layer_overhead_s=5e-5)
    assert c != "coefficients"
    with pytest.raises(KeyError, match="nonsense"):
        DEFAULT_COEFFICIENTS.with_values(nonsense=1.0)
