"""Countries of the providers' regions, and areas such as EU in which offers are admitted.

References
----------
AWS, "Regions and Availability Zones"; Microsoft, "List of Azure regions"; Google Cloud, "Regions and zones"; Nebius,
"Regions"; DigitalOcean, "Regional availability"; Scaleway, "Regions and zones"; OVHcloud, "Data centres".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from roofcast.data.errors import UnknownNameError

_REGIONS: Final = {
    "AE": "me-central-1 uaecentral uaenorth",
    "AT": "austriaeast",
    "AU": "ap-southeast-2 ap-southeast-4 australiacentral australiacentral2 australiaeast australiasoutheast "
    "australia-southeast1 australia-southeast2",
    "BE": "belgiumcentral europe-west1",
    "BH": "me-south-1",
    "BR": "sa-east-1 brazilsouth brazilsoutheast southamerica-east1",
    "CA": "ca-central-1 ca-west-1 canadacentral canadaeast northamerica-northeast1 northamerica-northeast2 "
    "calgary tor1",
    "CH": "eu-central-2 switzerlandnorth switzerlandwest europe-west6",
    "CL": "chilecentral southamerica-west1",
    "DE": "eu-central-1 germanynorth germanywestcentral europe-west3 europe-west10",
    "DK": "denmarkeast",
    "ES": "eu-south-2 spaincentral europe-southwest1",
    "FI": "europe-north1 eu-north1 fin fin-03",
    "FR": "eu-west-3 francecentral francesouth europe-west9 eu-west1 fr-par-2 gra par",
    "GB": "eu-west-2 uksouth ukwest europe-west2 uk-south1",
    "HK": "ap-east-1 eastasia asia-east2",
    "ID": "ap-southeast-3 indonesiacentral asia-southeast2",
    "IE": "eu-west-1 northeurope",
    "IL": "il-central-1 israelcentral me-west1",
    "IN": "ap-south-1 ap-south-2 centralindia jioindiacentral jioindiawest southindia westindia asia-south1 "
    "asia-south2",
    "IT": "eu-south-1 italynorth europe-west8 europe-west12 it-fr2",
    "JP": "ap-northeast-1 ap-northeast-3 japaneast japanwest asia-northeast1 asia-northeast2 tokyo",
    "KR": "ap-northeast-2 koreacentral koreasouth asia-northeast3",
    "MX": "mx-central-1 mexicocentral northamerica-south1",
    "MY": "ap-southeast-5 malaysiawest",
    "NL": "westeurope europe-west4",
    "NO": "norwayeast norwaywest",
    "NZ": "ap-southeast-6 newzealandnorth",
    "PL": "polandcentral europe-central2",
    "QA": "qatarcentral me-central1",
    "SA": "me-central2",
    "SE": "eu-north-1 swedencentral swedensouth europe-north2",
    "SG": "ap-southeast-1 southeastasia asia-southeast1",
    "TH": "ap-southeast-7",
    "TW": "ap-east-2 asia-east1",
    "US": "us-east-1 us-east-2 us-west-1 us-west-2 centralus eastus eastus2 eastus3 northcentralus southcentralus "
    "southcentralus2 westcentralus westus westus2 westus3 us-central1 us-central2 us-east1 us-east4 us-east5 "
    "us-east7 us-south1 us-west1 us-west2 us-west3 us-west4 us-west8 houston mem1 mkc1 "
    "newyork nyc2 ric1 us-central-3 us-mi",
    "ZA": "af-south-1 southafricanorth southafricawest africa-south1",
}

UNKNOWN_REGION: Final = "unknown"
"""Region of an offer whose price list names none."""

COUNTRIES: Final[Mapping[str, str]] = {
    region: country for country, regions in _REGIONS.items() for region in [country, *regions.split()]
}
"""ISO code of the country of each region; a country is a region where the price list names no smaller one."""

_EU: Final = "AT BE DE DK ES FI FR IE IT NL PL SE"
_MIDDLE_EAST: Final = "AE BH IL QA SA"

AREAS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(countries.split())
    for name, countries in {
        "EU": _EU,
        "Europe": f"{_EU} CH GB NO",
        "UK": "GB",
        "US": "US",
        "North America": "CA MX US",
        "South America": "BR CL",
        "Asia": f"HK ID IN JP KR MY SG TH TW {_MIDDLE_EAST}",
        "Middle East": _MIDDLE_EAST,
        "Oceania": "AU NZ",
        "Africa": "ZA",
    }.items()
}
"""Countries of each area that offers can be admitted in."""


_BY_KEY: Final[Mapping[str, frozenset[str]]] = {
    **{country.casefold(): frozenset([country]) for country in _REGIONS},
    **{area.casefold(): countries for area, countries in AREAS.items()},
}
"""Countries by the name of an area or country in lower case."""


def resolve_region(field: str, name: str, known: Collection[str]) -> frozenset[str]:
    """Return the known regions that a name admits: the one of this name, and those of an area or country.

    Names are compared without case.

    Parameters
    ----------
    field
        Field of the name, for an error.
    known
        Regions of the offers.

    Raises
    ------
    UnknownNameError
        If there is none; suggests near misses, or lists the areas.

    Examples
    --------
    >>> offered = ["EU", "FR", "eu-central-1", "eu-central-2", "us-east-1", "unknown"]
    >>> [sorted(resolve_region("region", name, offered)) for name in ("EU-Central-1", "eu", "ch")]
    [['eu-central-1'], ['EU', 'FR', 'eu-central-1'], ['eu-central-2']]
    """
    key = name.casefold()
    wanted = _BY_KEY.get(key, frozenset())
    if regions := {region for region in known if region.casefold() == key or _is_within(region, wanted)}:
        return frozenset(regions)
    error = UnknownNameError(field, name, known)
    if not error.near:
        areas = ", ".join(offered_areas(known))
        error.problem += f"; give a region of an offer, a country such as DE, or an area: {areas}"
    raise error


def _is_within(region: str, wanted: frozenset[str]) -> bool:
    country = COUNTRIES.get(region)
    countries = _BY_KEY.get(region.casefold(), frozenset()) if country is None else frozenset([country])
    return bool(countries) and countries <= wanted


def offered_areas(known: Collection[str]) -> list[str]:
    """Return the areas with a known region."""
    return [area for area, wanted in AREAS.items() if any(_is_within(region, wanted) for region in known)]


def is_area(name: str) -> bool:
    """Return whether a name is that of an area or country."""
    return name.casefold() in _BY_KEY


def is_located(region: str) -> bool:
    """Return whether the country of a region, or its area, is known."""
    return region in COUNTRIES or is_area(region)
