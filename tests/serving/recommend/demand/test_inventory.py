from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import Offer
from roofcast.serving.app_state.user_files import staleness_warnings
from roofcast.serving.recommend.demand.inventory import PriceChange, Stock, owned_nodes, repriced

TODAY = dt.date(2026, 11, 20)
H100 = "nvidia-h100-sxm-80gb"


def an_offer(**changes: Any) -> Offer:
    fields = {
        "provider": "acme", "region": "north", "instance_type": "one", "accelerator": H100, "n_accelerator": 8,
        "pricing": "on_demand", "price_usd_per_h": "40", "listed_price_per_h": "37", "listed_currency": "EUR",
        "as_of": "2026-01-01", "source": "list", "licence": "own figures",
    }  # fmt: skip
    return Offer.parse({**fields, **changes})


OFFERS = (
    an_offer(),
    an_offer(region="south"),
    an_offer(pricing="spot", price_usd_per_h="20"),
    an_offer(provider="other", instance_type="two"),
    an_offer(accelerator="nvidia-l40s-48gb", instance_type="three"),
)


def prices(*changes: PriceChange) -> list[int]:
    return [int(offer.price_usd_per_h) for offer in repriced(OFFERS, changes, load_catalog(), TODAY)]


def test_a_stock_becomes_so_many_nodes() -> None:
    (node,) = owned_nodes([Stock("H100-SXM-80GB", 16, 8, Decimal("1.25"))], load_catalog(), TODAY)
    assert (node.accelerator, node.n_accelerator, node.n_node) == (H100, 8, 2)
    assert (node.provider, node.price_usd_per_h, node.as_of) == ("owned", Decimal(10), TODAY)
    assert H100 in node.instance_type


def test_what_is_paid_for_costs_nothing_and_does_not_age() -> None:
    nodes = owned_nodes([Stock(H100, 8, 8)], load_catalog(), dt.date(2020, 1, 1))
    assert nodes[0].price_usd_per_h == 0
    assert staleness_warnings(nodes, TODAY) == []


def test_nodes_of_two_sizes_stand_side_by_side() -> None:
    nodes = owned_nodes([Stock(H100, 8, 8), Stock(H100, 8, 4), Stock(H100, 8, 8, name="b")], load_catalog(), TODAY)
    assert [node.n_node for node in nodes] == [1, 2, 1]
    assert len({node.id for node in nodes}) == 3


@pytest.mark.parametrize(
    ("stocks", "problem"),
    [
        (
            [Stock(H100, 8, 8), Stock(H100, 10, 8)],
            r"constraints\.inventory\.1\.count: must be a multiple of n_per_node, which is 8",
        ),
        ([Stock(H100, 0, 1)], r"constraints\.inventory\.0\.count: must be"),
        (
            [Stock(H100, 8, 8), Stock(H100, 16, 8)],
            r"constraints\.inventory\.1\.name: '8x .*' is given twice; name them apart",
        ),
        ([Stock(H100, 8, 8, Decimal(20_000))], r"constraints\.inventory\.0\.usd_per_h: must make less"),
    ],
)
def test_a_stock_that_cannot_be_is_refused(stocks: list[Stock], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        owned_nodes(stocks, load_catalog(), TODAY)


def test_an_unknown_accelerator_is_named_with_its_place() -> None:
    with pytest.raises(
        UnknownNameError, match=r"constraints\.inventory\.0\.accelerator: no 'h100-sxm-80' is known; did you mean"
    ):
        owned_nodes([Stock("h100-sxm-80", 8, 8)], load_catalog(), TODAY)


def test_a_price_counts_for_all_that_its_names_apply_to() -> None:
    assert prices(PriceChange(Decimal(7), provider="ACME")) == [7, 7, 7, 40, 7]
    assert prices(PriceChange(Decimal(7), accelerator="h100-sxm-80gb", pricing="on_demand")) == [7, 7, 20, 7, 40]
    assert prices(PriceChange(Decimal(7), region="south")) == [40, 7, 20, 40, 40]
    assert prices(PriceChange(Decimal(7), instance_type="two")) == [40, 40, 20, 7, 40]


def test_the_last_price_counts() -> None:
    everywhere, in_south = PriceChange(Decimal(7), provider="acme"), PriceChange(Decimal(5), region="south")
    assert prices(everywhere, in_south) == [7, 5, 7, 40, 7]
    assert prices(in_south, everywhere) == [7, 7, 7, 40, 7]


def test_a_price_that_is_set_is_of_today_and_in_dollars() -> None:
    changed, *rest = repriced(
        OFFERS, [PriceChange(Decimal(7), region="north", pricing="on_demand")], load_catalog(), TODAY
    )
    assert (changed.as_of, changed.listed_price_per_h, changed.listed_currency) == (TODAY, None, "USD")
    assert changed.source == "price of the request"
    assert rest[0] == OFFERS[1]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (PriceChange(Decimal(7)), r"price_overrides\.0: must name the provider"),
        (PriceChange(Decimal(7), provider="acmee"), r"price_overrides\.0\.provider: no 'acmee' is known; .*'acme'"),
        (PriceChange(Decimal(7), accelerator="h1"), r"price_overrides\.0\.accelerator: no 'h1' is known"),
        (
            PriceChange(Decimal(7), provider="other", region="south"),
            "no offer has provider other, region south together",
        ),
        (PriceChange(Decimal(0), provider="acme"), r"price_overrides\.0\.price_usd_per_h: .* greater than 0"),
    ],
)
def test_a_price_for_nothing_is_refused(change: PriceChange, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        prices(change)
