import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.errors import InputError
from roofcast.serving.recommend.search.fleet_mix import ALIKE, FleetType, cheapest_fleet
from tests.effort import n_example

TYPES = st.builds(
    FleetType,
    cost=st.integers(0, 40).map(float),
    served=st.integers(0, 12).map(float),
    most=st.one_of(st.just(math.inf), st.integers(0, 3).map(float)),
    pool=st.sampled_from(["", "", "a", "b"]),
    n_accelerator=st.integers(0, 4).map(float),
)
POOLS = st.fixed_dictionaries({"a": st.integers(0, 8).map(float), "b": st.integers(0, 8).map(float)})


def fleets(types: list[FleetType], needed: float, pools: dict[str, float]) -> list[tuple[float, float, int]]:
    """Return served load (up to the needed load), cost and size of every possible fleet."""
    ranges = [range(int(min(t.most, math.ceil(needed / t.served) if t.served else 0)) + 1) for t in types]
    fleets_found = []
    for counts in itertools.product(*ranges):
        in_use = {name: sum(n * t.n_accelerator for n, t in zip(counts, types, strict=True) if t.pool == name)
                 for name in pools}  # fmt: skip
        if all(in_use[name] <= pools[name] for name in pools):
            served = sum(n * t.served for n, t in zip(counts, types, strict=True))
            cost = sum(n * t.cost for n, t in zip(counts, types, strict=True))
            fleets_found.append((min(served, needed), cost, sum(counts)))
    return fleets_found


@settings(max_examples=n_example(100), deadline=None)
@given(st.lists(TYPES, min_size=1, max_size=3), st.integers(0, 24), POOLS)
def test_no_other_fleet_is_cheaper(types: list[FleetType], needed: int, pools: dict[str, float]) -> None:
    fleet = cheapest_fleet(types, needed, pools)
    every_fleet = fleets(types, needed, pools)
    most = max(served for served, _, _ in every_fleet)
    assert min(fleet.served, needed) == most
    assert fleet.missing == needed - most
    enough = [(cost, size) for served, cost, size in every_fleet if served == most]
    assert fleet.cost <= min(enough)[0] * (1 + 3 * ALIKE)
    assert fleet.cost == sum(n * t.cost for n, t in zip(fleet.counts, types, strict=True))
    for n, one in zip(fleet.counts, types, strict=True):
        assert 0 <= n <= one.most
    for name, holds in pools.items():
        assert sum(n * t.n_accelerator for n, t in zip(fleet.counts, types, strict=True) if t.pool == name) <= holds


LARGE, SMALL, EIGHT = FleetType(10.0, 10.0), FleetType(1.4, 1.0), FleetType(8.0, 80.0)
FREE, RENTED = FleetType(0.0, 5.0, most=2), FleetType(8.0, 7.0)
POOLED = [FleetType(1.0, served, pool="mine", n_accelerator=8) for served in (10.0, 8.0)]


@pytest.mark.parametrize(
    ("types", "needed", "counts", "missing"),
    [
        pytest.param([LARGE, SMALL], 22, (2, 2), 0.0, id="a mixed fleet is cheaper"),
        pytest.param([FREE, RENTED], 9, (2, 0), 0.0, id="free nodes are used first"),
        pytest.param([FREE, RENTED], 20, (2, 2), 0.0, id="rented nodes serve the rest"),
        pytest.param(POOLED, 40, (3, 0), 10.0, id="types of a pool share its accelerators"),
        pytest.param([FleetType(1.0, 10.0), EIGHT], 160, (0, 2), 0.0, id="fewer instances of equal cost"),
        pytest.param([EIGHT, FleetType(1.0, 10.0)], 160, (2, 0), 0.0, id="fewer instances in any order"),
        pytest.param([FleetType(2.0, 3.0)] * 4, 9, (3, 0, 0, 0), 0.0, id="the first of equal types"),
        pytest.param([FleetType(1.0, 5.0)], 0, (0,), 0.0, id="no demand"),
    ],
)
def test_the_fleet_of_a_demand(
    types: list[FleetType], needed: float, counts: tuple[int, ...], missing: float
) -> None:
    fleet = cheapest_fleet(types, needed, {"mine": 24})
    assert (fleet.counts, fleet.missing) == (counts, missing)


def test_the_fleet_does_not_depend_on_the_order_of_types() -> None:
    rng = np.random.default_rng(5)
    types = [
        FleetType(
            float(rng.integers(5, 90)) / 8,
            float(rng.integers(4, 90)),
            most=float(rng.choice([2, 9, np.inf])),
        )
        for _ in range(12)
    ]
    expected = cheapest_fleet(types, 500)
    for _ in range(5):
        order = rng.permutation(12).tolist()
        fleet = cheapest_fleet([types[i] for i in order], 500)
        assert fleet.cost == pytest.approx(expected.cost, abs=1e-9)
        assert [fleet.counts[order.index(i)] for i in range(12)] == list(expected.counts)


@pytest.mark.parametrize("types", [[], [FleetType(1.0, 0.0)], [FleetType(1.0, 5.0, most=0)]])
def test_without_a_serving_type_all_load_is_missing(types: list[FleetType]) -> None:
    fleet = cheapest_fleet(types, 7)
    assert (fleet.cost, fleet.served, fleet.missing) == (0.0, 0.0, 7.0)


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InputError, match=r"types\.1\.cost: must be a number"):
        cheapest_fleet([FleetType(1.0, 1.0), FleetType(math.nan, 1.0)], 1)
    with pytest.raises(InputError, match=r"types\.0\.most: "):
        cheapest_fleet([FleetType(1.0, 1.0, most=-1)], 1)
    with pytest.raises(InputError, match="needed: "):
        cheapest_fleet([], math.inf)


def test_hundreds_of_types_have_a_near_optimal_fleet() -> None:
    rng = np.random.default_rng(0)
    costs, capacities = rng.uniform(1, 100, 500), rng.integers(1, 500, 500)
    types = [FleetType(float(cost), float(served)) for cost, served in zip(costs, capacities, strict=True)]
    fleet = cheapest_fleet(types, 10_000)
    best = min(t.cost / t.served for t in types)
    assert fleet.missing == 0
    assert 1 <= fleet.cost / (10_000 * best) < 1.2


@pytest.mark.parametrize("needed", [7.0, 31.0, 100.0])
def test_enumeration_and_solver_find_the_same_fleet(needed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    types = [FleetType(3.0, 10.0), FleetType(1.5, 4.0, most=3), FleetType(7.9, 27.0)]
    enumerated = cheapest_fleet(types, needed)
    monkeypatch.setattr("roofcast.serving.recommend.search.fleet_mix.MAX_ENUMERATED", 0)
    assert enumerated == cheapest_fleet(types, needed)


@pytest.mark.parametrize("max_kinds", [1, 2, 3, None])
@pytest.mark.parametrize("pools", [{}, {"a": 6.0}])
def test_a_fleet_has_at_most_the_kinds_asked_for(max_kinds: int | None, pools: dict[str, float]) -> None:
    types = [
        FleetType(9.0, 16.0, 1, "a", 2.0),
        FleetType(5.1, 8.0, 1),
        FleetType(3.0, 4.0, 1),
        FleetType(2.0, 2.0, 1),
    ]
    fleet = cheapest_fleet(types, 29, pools, max_kinds)
    assert sum(n > 0 for n in fleet.counts) <= (max_kinds or len(types))
    assert fleet.missing == {1: 13.0, 2: 5.0, 3: 1.0, None: 0.0}[max_kinds]
    assert cheapest_fleet(types, 20, pools, 2).counts == (1, 0, 1, 0)
