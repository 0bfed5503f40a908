import numpy as np
import pytest

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import estimate
from roofcast.features.engine.kept_prefixes import kept_ratio
from tests.builders import an_example


def kept(think_time_s: float, **changes: float) -> float:
    d = an_example(workload__n_request=np.inf, workload__n_wave=np.inf, **changes)
    return float(kept_ratio(d, estimate(d, C), think_time_s)[0])


def test_without_thought_or_reuse_nothing_is_dropped() -> None:
    assert kept(0.0, workload__prefix_cache_ratio=0.9) == 1.0
    assert kept(3600.0) == 1.0


def test_contexts_of_more_users_than_fit_are_dropped() -> None:
    long = {"workload__n_input_token": 4000.0, "workload__prefix_cache_ratio": 0.9}
    shares = [kept(time, **long) for time in (1.0, 100.0, 1000.0, 10_000.0)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert shares[2] == pytest.approx(10 * shares[3])
