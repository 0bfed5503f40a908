import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import Offer
from roofcast.serving.app_state.catalog.user_files import staleness_warnings
from roofcast.serving.recommend.demand.constraints import (
    InventoryItem,
    PriceOverride,
    override_prices,
    owned_nodes,
)
from tests.serving.offer_builders import H100, an_offer

TODAY = dt.date(2026, 11, 20)


def of_acme(**changes: Any) -> Offer:
    fields = {
        "provider": "acme", "region": "north", "instance_type": "one", "price_usd_per_h": "40",
        "listed_price_per_h": "37", "listed_currency": "EUR",
    }  # fmt: skip
    return an_offer(**fields | changes)


OFFERS = (
    of_acme(),
    of_acme(region="south"),
    of_acme(pricing="spot", price_usd_per_h="20"),
    of_acme(provider="other", instance_type="two"),
    of_acme(accelerator="nvidia-l40s-48gb", instance_type="three"),
)


def an_item(accelerator: str = H100, count: int = 8, n_per_node: int = 8, **more: Any) -> InventoryItem:
    fields: dict[str, Any] = {"usd_per_h": 0.0} | more
    return InventoryItem(accelerator=accelerator, count=count, n_per_node=n_per_node, **fields)


def overridden(*overrides: PriceOverride) -> tuple[Offer, ...]:
    return override_prices(load_catalog().with_offers(OFFERS), overrides, TODAY).offers


def prices(*overrides: PriceOverride) -> list[int]:
    return [int(offer.price_usd_per_h) for offer in overridden(*overrides)]


def test_an_item_becomes_an_offer_of_its_nodes() -> None:
    (node,) = owned_nodes([an_item("H100-SXM-80GB", 16, usd_per_h=1.25)], load_catalog(), TODAY)
    assert (node.accelerator, node.n_accelerator, node.n_node) == (H100, 8, 2)
    assert (node.provider, node.price_usd_per_h, node.as_of) == ("owned", Decimal(10), TODAY)
    assert H100 in node.instance_type


def test_sunk_costs_are_zero_and_do_not_age() -> None:
    nodes = owned_nodes([an_item()], load_catalog(), dt.date(2020, 1, 1))
    assert nodes[0].price_usd_per_h == 0
    assert staleness_warnings(nodes, TODAY) == []


def test_nodes_of_two_sizes_are_two_offers() -> None:
    nodes = owned_nodes([an_item(), an_item(n_per_node=4), an_item(name="b")], load_catalog(), TODAY)
    assert [node.n_node for node in nodes] == [1, 2, 1]
    assert len({node.id for node in nodes}) == 3


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (
            [an_item(), an_item(count=10)],
            r"constraints\.inventory\.1\.count: must be a multiple of n_per_node, which is 8",
        ),
        (
            [an_item(), an_item(count=16)],
            r"constraints\.inventory\.1\.name: '8x .*' is given twice; give each a name of its own",
        ),
        (
            [an_item(n_per_node=11, count=11, usd_per_h=10_000)],
            r"constraints\.inventory\.0\.usd_per_h: must make less",
        ),
    ],
)
def test_an_impossible_inventory_is_refused(items: list[InventoryItem], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        owned_nodes(items, load_catalog(), TODAY)


@pytest.mark.parametrize(
    ("name", "problem"),
    [("h100-sxn-80gb", "no 'h100-sxn-80gb' is known; did you mean"), ("Mac Studio", "'Mac Studio' may be apple-m5")],
)
def test_an_unknown_accelerator_is_named_with_its_field(name: str, problem: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"constraints\.inventory\.0\.accelerator: {problem}"):
        owned_nodes([an_item(name)], load_catalog(), TODAY)


BY_PROVIDER, BY_REGION = {"provider": "acme"}, {"region": "south", "price_usd_per_h": 5}


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([{"provider": "ACME"}], [7, 7, 7, 40, 7]),
        ([{"accelerator": "h100-sxm-80gb", "pricing": "on_demand"}], [7, 7, 20, 7, 40]),
        ([{"region": "south"}], [40, 7, 20, 40, 40]),
        ([{"instance_type": "two"}], [40, 40, 20, 7, 40]),
        ([BY_PROVIDER, BY_REGION], [7, 5, 7, 40, 7]),
        ([BY_REGION, BY_PROVIDER], [7, 7, 7, 40, 7]),
    ],
)
def test_the_last_override_that_matches_an_offer_applies(
    overrides: list[dict[str, Any]], expected: list[int]
) -> None:
    assert prices(*(PriceOverride(**{"price_usd_per_h": 7, **one}) for one in overrides)) == expected


def test_an_overridden_price_is_of_today_and_in_dollars() -> None:
    changed, *rest = overridden(PriceOverride(price_usd_per_h=7, region="north", pricing="on_demand"))
    assert (changed.as_of, changed.listed_price_per_h, changed.listed_currency) == (TODAY, None, "USD")
    assert changed.source == "price of the request"
    assert rest[0] == OFFERS[1]


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        (
            PriceOverride(price_usd_per_h=7, provider="acmee"),
            r"price_overrides\.0\.provider: no 'acmee' is known; .*'acme'",
        ),
        (PriceOverride(price_usd_per_h=7, accelerator="h1"), r"price_overrides\.0\.accelerator: no 'h1' is known"),
        (
            PriceOverride(price_usd_per_h=7, provider="other", region="south"),
            "no offer has provider other, region south together",
        ),
    ],
)
def test_an_override_that_matches_nothing_is_refused(override: PriceOverride, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        prices(override)
