"""Countries of the providers' regions, and areas such as EU in which offers are admitted."""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from roofcast.data.errors import UnknownNameError

_TABLE: Final = tomllib.loads(Path(__file__).with_name("regions.toml").read_text(encoding="utf-8"))

UNKNOWN_REGION: Final = "unknown"
"""Region of an offer whose price list names none."""

COUNTRIES: Final[Mapping[str, str]] = {
    region: country for country, regions in _TABLE["countries"].items() for region in [country, *regions.split()]
}
"""ISO code of the country of each region; a country is a region where the price list names no smaller one."""

AREAS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(countries.split()) for name, countries in _TABLE["areas"].items()
}
"""Countries of each area that offers can be admitted in."""


_BY_KEY: Final[Mapping[str, frozenset[str]]] = {
    **{country.casefold(): frozenset([country]) for country in _TABLE["countries"]},
    **{area.casefold(): countries for area, countries in AREAS.items()},
}
"""Countries by the name of an area or country in lower case."""


def resolve_region(field: str, name: str, known: Collection[str]) -> frozenset[str]:
    """Return the known regions that a name admits: the one of this name, and those of an area or country.

    Names are compared without case.

    `field`: field of the name, for an error. `known`: regions of the offers. Raises `UnknownNameError` if there is
    none; suggests near misses, or lists the areas.

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
