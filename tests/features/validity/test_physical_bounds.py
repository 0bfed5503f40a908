import numpy as np
import pytest

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.examples import example_descriptors
from roofcast.features.validity.physical_bounds import physical_bounds


@pytest.mark.parametrize(
    ("column", "factor", "metric", "ratio"),
    [
        ("hardware.flop_per_s", 2.0, "ttft_s", 0.5),
        ("hardware.bandwidth_byte_per_s", 2.0, "tpot_s", 0.5),
        ("workload.n_output_token", 2.0, "ttft_s", 1.0),
    ],
)
def test_bounds_follow_the_peaks(column: str, factor: float, metric: str, ratio: float) -> None:
    d = example_descriptors()
    e = estimate(d, DEFAULT_COEFFICIENTS)
    before, after = physical_bounds(d, e), physical_bounds(d | {column: factor * d[column]}, e)
    np.testing.assert_allclose(after[metric] / before[metric], ratio)


def test_no_estimate_lies_beyond_a_bound() -> None:
    d = example_descriptors()
    e = estimate(d, DEFAULT_COEFFICIENTS)
    bounds = physical_bounds(d, e)
    for metric in ("ttft_s", "tpot_s", "itl_s", "e2e_s"):
        assert bounds[metric] < getattr(e, metric)
    assert bounds["output_throughput_token_per_s"] > e.output_throughput_token_per_s
