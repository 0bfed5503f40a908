import datetime as dt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import Offer
from roofcast.serving.recommend.demand.constraints import Constraints, InventoryItem, owned_nodes
from roofcast.serving.recommend.demand.demand import Demand
from tests.serving.offer_builders import an_offer

TODAY = dt.date(2026, 11, 20)


def an_item(accelerator: str, count: int, n_per_node: int, usd_per_h: float = 0.0) -> InventoryItem:
    return InventoryItem(accelerator=accelerator, count=count, n_per_node=n_per_node, usd_per_h=usd_per_h)


def a_demand(**changes: Any) -> Demand:
    return Demand(**{"n_input_token": 500, "n_output_token": 100, "users": 80.0, "request_rate_per_s": None,
                     "limits": (), **changes})  # fmt: skip


@pytest.mark.parametrize(
    ("load", "served", "required"),
    [
        ({}, [1.0, 8.0], 80.0),
        ({"think_time_s": 10.0}, [6.0, 28.0], 80.0),
        ({"users": None, "request_rate_per_s": 3.0}, [0.5, 2.0], 3.0),
    ],
)
def test_users_in_flight_and_thinking_or_a_rate_are_served(
    load: dict[str, Any], served: list[float], required: float
) -> None:
    demand = a_demand(**load)
    assert demand.served_load(np.array([1.0, 8.0]), np.array([0.5, 2.0])).tolist() == served
    assert demand.required_load == required


@given(st.floats(1, 1e6), st.floats(1, 100), st.floats(0, 0.99))
def test_peak_and_headroom_raise_the_required_load(users: float, peak: float, headroom: float) -> None:
    demand = a_demand(users=users, peak_factor=peak, headroom=headroom)
    assert demand.peak_load == users * peak
    assert demand.required_load * (1 - headroom) == pytest.approx(demand.peak_load)
    assert demand.required_load >= users


@given(st.floats(0.1, 100), st.floats(0.01, 60), st.floats(0, 600))
def test_served_users_obey_the_interactive_response_time_law(rate: float, response_s: float, think_s: float) -> None:
    served = a_demand(think_time_s=think_s).served_load(rate * response_s, rate)
    assert served == pytest.approx(rate * (response_s + think_s))


def test_a_single_engine_or_precision_is_a_property() -> None:
    bounds = Constraints(engines=frozenset({"vllm"}), weight_precisions=frozenset({"fp8"}))
    assert (bounds.engine, bounds.weight_precision) == ("vllm", "fp8")
    assert Constraints(engines=frozenset({"vllm", "sglang"})).engine == ""


def test_owned_nodes_are_constrained_by_accelerator_alone() -> None:
    catalog = load_catalog()
    owned = owned_nodes([an_item("h100-sxm-80gb", 16, 8, 1.0), an_item("l40s", 4, 4)], catalog, TODAY)
    bounds = Constraints(
        providers=frozenset({"aws"}), accelerators=frozenset({owned[0].accelerator}), inventory=owned
    )
    supply = bounds.admissible_offers(catalog.offers)
    assert supply[0] == owned[0]
    assert owned[1] not in supply
    assert len(supply) > 1
    assert {(offer.provider, offer.pricing) for offer in supply[1:]} == {("aws", "on_demand")}


OLD, YOUNG = (an_offer(as_of=day, instance_type=day) for day in ("2026-05-24", "2026-10-10"))
OLD_SPOT = OLD.model_copy(update={"pricing": "spot"})
OWN = OLD.model_copy(update={"licence": "own figures"})


@pytest.mark.parametrize(("has_old_prices", "admitted"), [(True, [YOUNG, OLD_SPOT, OWN]), (False, [YOUNG, OWN])])
def test_an_old_price_counts_where_there_is_no_younger_one(has_old_prices: bool, admitted: list[Offer]) -> None:
    constraints = Constraints(pricing=frozenset(), oldest_price=dt.date(2026, 7, 30), has_old_prices=has_old_prices)
    assert constraints.admissible_offers([OLD, YOUNG, OLD_SPOT]) == admitted[:-1]
    assert constraints.admissible_offers([YOUNG, OLD_SPOT, OWN]) == admitted


def of_region(region: str, price: str, **changes: Any) -> Offer:
    return an_offer(region=region, price_usd_per_h=price, **changes)


NEAR, FAR, LAST = of_region("near", "2"), of_region("far", "1"), of_region("last", "1")
OTHER, SPOT = of_region("near", "3", instance_type="two"), of_region("near", "1.5", pricing="spot")
CHEAP = of_region("far", "1", provider="other")


@pytest.mark.parametrize(
    ("bounds", "offers", "admitted"),
    [
        ({"pricing": {"on_demand", "spot"}}, [NEAR, FAR, LAST, OTHER, SPOT], [FAR, OTHER, SPOT]),
        ({"regions": {"near", "last"}}, [NEAR, FAR, LAST], [NEAR, LAST]),
        ({"providers": {"aws"}}, [NEAR, CHEAP], [NEAR]),
    ],
    ids=["the cheapest stands for all", "named regions are all considered", "the cheapest within the constraints"],
)
def test_the_regions_of_an_instance(bounds: dict[str, set[str]], offers: list[Offer], admitted: list[Offer]) -> None:
    constraints = Constraints(**{name: frozenset(names) for name, names in bounds.items()})  # type: ignore[arg-type]
    assert constraints.admissible_offers(offers) == admitted
