"""Countries of regions, and the regions of areas."""

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.prices.regions import AREAS, COUNTRIES, is_area, is_located, offered_areas, resolve_region

REGIONS = {offer.region for offer in load_catalog().offers}


def test_every_region_of_the_shipped_offers_has_a_country() -> None:
    assert REGIONS - COUNTRIES.keys() == {"EU", "unknown"}


def test_every_country_is_in_an_area() -> None:
    assert set(COUNTRIES.values()) == set().union(*AREAS.values())


@pytest.mark.parametrize(
    ("name", "within", "without"),
    [
        ("EU", "eu-central-1", "eu-west-2"),
        ("Europe", "eu-west-2", "us-east-1"),
        ("us", "us-south1", "eu-central-1"),
        ("Asia", "koreacentral", "australiaeast"),
        ("DE", "europe-west10", "eu-central-2"),
        ("EU-Central-1", "eu-central-1", "eu-central-2"),
    ],
)
def test_areas_countries_and_regions_are_names_in_any_case(name: str, within: str, without: str) -> None:
    regions = resolve_region("region", name, REGIONS)
    assert within in regions
    assert without not in regions
    assert "unknown" not in regions


def test_a_country_or_area_can_be_the_region_of_an_offer() -> None:
    offered = ["DE", "EU", "eu-central-1", "fin", "unknown"]
    assert resolve_region("region", "de", offered) == {"DE", "eu-central-1"}
    assert resolve_region("region", "Europe", offered) == {*offered} - {"unknown"}
    assert is_area("de")
    assert [is_located(region) for region in offered] == [True, True, True, True, False]


def test_an_unknown_region_is_answered_with_near_misses_or_the_areas() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'eu-central-1'"):
        resolve_region("region", "eu-central", REGIONS)
    with pytest.raises(UnknownNameError, match="or an area: EU, Europe, UK, US, "):
        resolve_region("region", "xyz", REGIONS)
    assert offered_areas(["eu-west-2", "unknown"]) == ["Europe", "UK"]
