import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.serving.recommend.answer.fleet import ALIKE, FleetType, cheapest_fleet
from tests.effort import n_example

TYPES = st.builds(
    FleetType,
    cost=st.integers(0, 40).map(float),
    served=st.integers(1, 12).map(float),
    most=st.one_of(st.just(math.inf), st.integers(0, 3).map(float)),
)


@settings(max_examples=n_example(100), deadline=None)
@given(st.lists(TYPES, min_size=1, max_size=3), st.integers(1, 24), st.integers(1, 3))
def test_no_other_fleet_is_cheaper(types: list[FleetType], needed: int, max_kinds: int) -> None:
    ranges = [range(int(min(t.most, math.ceil(needed / t.served))) + 1) for t in types]
    costs = [
        sum(n * t.cost for n, t in zip(counts, types, strict=True))
        for counts in itertools.product(*ranges)
        if sum(n * t.served for n, t in zip(counts, types, strict=True)) >= needed
        and sum(n > 0 for n in counts) <= max_kinds
    ]
    counts = cheapest_fleet(types, needed, max_kinds)
    assert (counts is None) == (not costs)
    if counts:
        cost, served = (
            sum(n * getattr(t, of) for n, t in zip(counts, types, strict=True)) for of in ("cost", "served")
        )
        assert served >= needed
        assert cost <= min(costs) * (1 + 3 * ALIKE)
        assert sum(n > 0 for n in counts) <= max_kinds
        assert all(0 <= n <= one.most for n, one in zip(counts, types, strict=True))


LARGE, SMALL, EIGHT = FleetType(10.0, 10.0), FleetType(1.4, 1.0), FleetType(8.0, 80.0)
FREE, RENTED = FleetType(0.0, 5.0, most=2), FleetType(8.0, 7.0)


@pytest.mark.parametrize(
    ("types", "needed", "counts"),
    [
        pytest.param([LARGE, SMALL], 22, (2, 2), id="a mixed fleet is cheaper"),
        pytest.param([FREE, RENTED], 9, (2, 0), id="free nodes are used first"),
        pytest.param([FREE, RENTED], 20, (2, 2), id="rented nodes serve the rest"),
        pytest.param([FleetType(1.0, 10.0), EIGHT], 160, (0, 2), id="fewer instances of equal cost"),
        pytest.param([EIGHT, FleetType(1.0, 10.0)], 160, (2, 0), id="fewer instances in any order"),
        pytest.param([FleetType(2.0, 3.0)] * 4, 9, (3, 0, 0, 0), id="the first of equal types"),
        pytest.param([], 7, None, id="no type"),
        pytest.param([FleetType(1.0, 5.0, most=0)], 7, None, id="no instance"),
    ],
)
def test_the_fleet_of_a_demand(types: list[FleetType], needed: float, counts: tuple[int, ...] | None) -> None:
    assert cheapest_fleet(types, needed, 4) == counts


def test_hundreds_of_types_have_a_near_optimal_fleet_in_any_order() -> None:
    rng = np.random.default_rng(0)
    costs, capacities = rng.uniform(1, 100, 500), rng.integers(1, 500, 500)
    types = [FleetType(float(cost), float(served)) for cost, served in zip(costs, capacities, strict=True)]
    found = []
    for order in (np.arange(500), rng.permutation(500)):
        counts = cheapest_fleet([types[i] for i in order], 10_000, 500)
        assert counts
        found.append(float(costs[order] @ counts))
    assert found[0] == pytest.approx(found[1], rel=2 * ALIKE)
    assert 1 <= found[0] / (10_000 * (costs / capacities).min()) < 1.2


@pytest.mark.parametrize("needed", [7.0, 31.0, 100.0])
def test_enumeration_and_solver_find_the_same_fleet(needed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    types = [FleetType(3.0, 10.0), FleetType(1.5, 4.0, most=3), FleetType(7.9, 27.0)]
    enumerated = cheapest_fleet(types, needed, 3)
    monkeypatch.setattr("roofcast.serving.recommend.answer.fleet.MAX_ENUMERATED", 0)
    assert enumerated == cheapest_fleet(types, needed, 3)
