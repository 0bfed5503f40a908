import numpy as np
import pytest

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.memory import estimate_memory
from roofcast.features.queries import FloatArray
from roofcast.features.validity.capacity_limits import CapacityLimits, capacity_limits
from tests.builders import an_example

FAR = {"model__max_context_token": np.inf}


def limits(d: dict[str, FloatArray]) -> CapacityLimits:
    return capacity_limits(d, estimate_memory(d, C.by_row(d["config.engine"])))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"workload__concurrency": 100},
        {"model__kv_width_sliding": 32 * 4096, "model__kv_width": 32 * 4096, "model__sliding_window": 128},
        {"model__kv_width_sliding": 32 * 4096, "model__kv_width": 32 * 4096, "model__sliding_window": 1e7},
        {"config__tp": 4, "config__n_accelerator": 4, "model__n_kv_head": 1},
    ],
)
def test_requests_of_the_greatest_context_just_fit(changes: dict[str, float]) -> None:
    d = an_example(**FAR, **changes)
    longest = float(limits(d).context_token[0])
    n_request = d["workload.concurrency"][0]

    def capacity(context: float) -> float:
        filled = {"workload.n_input_token": np.array([context]), "workload.n_output_token": np.array([0.0])}
        return float(estimate_memory(d | filled, C.by_row(d["config.engine"])).capacity[0])

    assert capacity(longest) >= n_request * (1 - 1e-12)
    assert capacity(longest + 1) < n_request


def test_the_model_ends_before_the_memory() -> None:
    assert limits(an_example()).context_token.tolist() == [4096.0]
    assert limits(an_example(**FAR)).context_token[0] > 4096


def test_the_greatest_concurrency_is_the_capacity_in_whole_requests() -> None:
    d = an_example()
    memory = estimate_memory(d, C.by_row(d["config.engine"]))
    found = limits(d).concurrency[0]
    assert found <= memory.capacity[0] < found + 1


def test_what_does_not_fit_holds_nothing() -> None:
    found = limits(an_example(model__n_param=70e9))
    assert found.spare_byte[0] < 0
    assert (found.concurrency[0], found.context_token[0]) == (0.0, 0.0)


@pytest.mark.parametrize("windows", [{}, {"model__kv_width_sliding": 262_144, "model__sliding_window": 128}])
def test_a_state_that_does_not_grow_bounds_no_context(windows: dict[str, float]) -> None:
    assert limits(an_example(**FAR, model__kv_width=0, **windows)).context_token.tolist() == [np.inf]


def test_without_a_concurrency_one_request_has_it_all() -> None:
    one, unsaid = (limits(an_example(**FAR, workload__concurrency=n)) for n in (1, np.nan))
    assert one.context_token == unsaid.context_token
