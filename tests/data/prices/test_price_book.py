"""Price book: the newest offer applies, a user's offer has precedence, and old prices are reported."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.prices.owned_hardware import OwnedHardware
from roofcast.data.prices.price_book import PriceBook
from roofcast.data.specs import Offer

TODAY = dt.date(2026, 11, 20)


def an_offer(**changes: Any) -> Offer:
    fields = {
        "provider": "cloud", "instance_type": "one", "region": "here", "accelerator": "nvidia-l4-24gb",
        "n_accelerator": 1, "pricing": "on_demand", "price_usd_per_h": "2.50", "as_of": "2026-11-01",
        "source": "a list", "licence": "MIT",
    }  # fmt: skip
    return Offer.parse(fields | changes)


def a_book(*offers: Offer) -> PriceBook:
    return PriceBook(offers or (an_offer(),), TODAY)


def a_server(**changes: Any) -> OwnedHardware:
    fields = {
        "name": "mine", "accelerator": "nvidia-l4-24gb", "capex_usd": "8760", "lifetime_year": "1", "power_w": 1000,
        "power_price_usd_per_kwh": "0.20", "utilisation_ratio": "1",
    }  # fmt: skip
    return OwnedHardware.parse(fields | changes)


def price(book: PriceBook) -> Decimal:
    return book.offers["cloud/here/one/on_demand"].price_usd_per_h


def test_the_cheapest_offer_of_one_date_applies() -> None:
    assert price(a_book(an_offer(price_usd_per_h="1.9"), an_offer(price_usd_per_h="2.1"))) == Decimal("1.9")


def test_an_offer_after_the_day_is_left_out() -> None:
    later = an_offer(as_of="2026-11-21", price_usd_per_h="9")

    assert price(a_book(an_offer(), later)) == Decimal("2.50")


def test_a_users_offer_replaces_a_newer_one_or_is_added() -> None:
    mine = an_offer(as_of="2020-01-01", price_usd_per_h="1")
    book = PriceBook((an_offer(),), TODAY, overrides=(mine, an_offer(instance_type="two")))

    assert price(book) == Decimal(1)
    assert len(book.offers) == 2
    assert price(a_book()) == Decimal("2.50")


def test_old_prices_are_stale_except_those_of_the_user() -> None:
    old = an_offer(as_of="2026-07-22")
    book = a_book(old)

    assert not book.staleness_warning(TODAY, max_age_day=121)
    assert not PriceBook((old,), TODAY, overrides=(old,)).staleness_warning(TODAY)
    assert "1 of 1 prices are more than 120 days old" in book.staleness_warning(TODAY)
    assert not a_book().staleness_warning(TODAY)


def test_a_newer_list_replaces_the_same_node_of_unknown_region_under_another_name() -> None:
    old, other = (an_offer(region="unknown", as_of="2026-05-01", n_accelerator=n) for n in (1, 8))
    other = other.model_copy(update={"instance_type": "eight"})
    new = an_offer(region="nyc2", instance_type="new", as_of="2026-10-08", n_accelerator=1)
    elsewhere = an_offer(region="tor1", as_of="2026-05-01")

    assert {*a_book(old, other, new, elsewhere).offers} == {other.id, new.id, elsewhere.id}


@given(st.permutations([an_offer(as_of=f"2026-{m:02d}-01", price_usd_per_h=str(m)) for m in range(1, 12)]))
def test_the_order_of_the_history_does_not_matter(history: list[Offer]) -> None:
    assert price(a_book(*history)) == Decimal(11)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"utilisation_ratio": "0.5"}, "2.2000"),
        ({"utilisation_ratio": "0.5", "idle_power_w": 500}, "2.3000"),
        ({"pue_ratio": "1.5"}, "1.3000"),
        ({"lifetime_year": "2"}, "0.7000"),
        ({"residual_usd": "4380"}, "0.7000"),
        ({"residual_usd": "99999"}, "0.2000"),
        ({"other_usd_per_year": "876"}, "1.3000"),
        ({"capex_usd": "0"}, "0.2000"),
    ],
)
def test_each_part_of_the_cost_raises_the_price(changes: dict[str, Any], expected: str) -> None:
    assert a_server(**changes).price_usd_per_h() == Decimal(expected)


def test_owned_hardware_joins_the_book() -> None:
    offer = a_server(n_accelerator=4).offer(TODAY)
    book = PriceBook((an_offer(),), TODAY, overrides=(offer,))

    assert offer.id == "owned/own/mine/on_demand"
    assert [o.provider for o in book.offers.values()] == ["cloud", "owned"]
    assert load_catalog().with_offers(book.offers.values()).offers[-1] == offer


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("utilisation_ratio", "0"), ("utilisation_ratio", "1.1"), ("lifetime_year", "0"), ("capex_usd", "-1"),
        ("capex_usd", "NaN"), ("capex_usd", "Infinity"), ("pue_ratio", "0.9"), ("power_w", "nan"),
        ("power_price_usd_per_kwh", "1000"),
    ],
)  # fmt: skip
def test_an_invalid_figure_is_refused_with_its_field(field: str, value: str) -> None:
    with pytest.raises(InputError) as refused:
        a_server(**{field: value})

    assert refused.value.field == field


def test_a_server_without_cost_is_refused() -> None:
    with pytest.raises(InputError, match="price_usd_per_h"):
        a_server(capex_usd="0", power_w="0").offer(TODAY)


@given(st.decimals("0.01", "1", places=2), st.decimals("0.01", "1", places=2))
def test_more_utilisation_never_raises_the_hourly_price(one: Decimal, other: Decimal) -> None:
    less, more = sorted((one, other))

    assert a_server(utilisation_ratio=less).price_usd_per_h() >= a_server(utilisation_ratio=more).price_usd_per_h()
