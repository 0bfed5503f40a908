"""Countries of the providers' regions, and areas such as EU in which offers are admitted.

References
----------
AWS, "Regions and Availability Zones"; Microsoft, "List of Azure regions"; Google Cloud, "Regions and zones".
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
    "CA": "ca-central-1 ca-west-1 canadacentral canadaeast northamerica-northeast1 northamerica-northeast2",
    "CH": "eu-central-2 switzerlandnorth switzerlandwest europe-west6",
    "CL": "chilecentral southamerica-west1",
    "DE": "eu-central-1 germanynorth germanywestcentral europe-west3 europe-west10",
    "DK": "denmarkeast",
    "ES": "eu-south-2 spaincentral europe-southwest1",
    "FI": "europe-north1",
    "FR": "eu-west-3 francecentral francesouth europe-west9",
    "GB": "eu-west-2 uksouth ukwest europe-west2",
    "HK": "ap-east-1 eastasia asia-east2",
    "ID": "ap-southeast-3 indonesiacentral asia-southeast2",
    "IE": "eu-west-1 northeurope",
    "IL": "il-central-1 israelcentral me-west1",
    "IN": "ap-south-1 ap-south-2 centralindia jioindiacentral jioindiawest southindia westindia asia-south1 "
    "asia-south2",
    "IT": "eu-south-1 italynorth europe-west8 europe-west12",
    "JP": "ap-northeast-1 ap-northeast-3 japaneast japanwest asia-northeast1 asia-northeast2",
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
    "us-east7 us-south1 us-west1 us-west2 us-west3 us-west4 us-west8",
    "ZA": "af-south-1 southafricanorth southafricawest africa-south1",
}

COUNTRIES: Final[Mapping[str, str]] = {
    region: country for country, regions in _REGIONS.items() for region in regions.split()
}
"""ISO code of the country of each region."""

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
    """Return the known regions that a name admits: the one of this name, or those of an area or country.

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
    >>> offered = ["eu-central-1", "eu-central-2", "us-east-1", "global"]
    >>> [sorted(resolve_region("region", name, offered)) for name in ("EU-Central-1", "eu", "ch")]
    [['eu-central-1'], ['eu-central-1'], ['eu-central-2']]
    """
    key = name.casefold()
    if same := {region for region in known if region.casefold() == key}:
        return frozenset(same)
    if within := {region for region in known if COUNTRIES.get(region) in _BY_KEY.get(key, ())}:
        return frozenset(within)
    error = UnknownNameError(field, name, known)
    if not error.near:
        areas = ", ".join(offered_areas(known))
        error.problem += f"; give a region of an offer, a country such as DE, or an area: {areas}"
    raise error


def offered_areas(known: Collection[str]) -> list[str]:
    """Return the areas with a known region."""
    countries = {COUNTRIES.get(region) for region in known}
    return [area for area, within in AREAS.items() if within & countries]


def is_area(name: str, known: Collection[str]) -> bool:
    """Return whether a name is that of an area or country, and of no known region."""
    return name.casefold() in _BY_KEY and name.casefold() not in {region.casefold() for region in known}
