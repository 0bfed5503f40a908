"""The command that lists dated prices, adds your own, and refreshes those of others."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.serving.cli.arguments.options import require_one, require_with
from roofcast.serving.cli.console import show, spinner, warn
from roofcast.serving.cli.context import AsJson, open_catalog, today
from roofcast.serving.cli.files import parse_rates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roofcast.data.catalog import Catalog
    from roofcast.data.prices.price_list import PriceList
    from roofcast.data.specs import Offer
    from roofcast.serving.app_state.catalog.offer_refresh import OfferRefresh
    from roofcast.serving.app_state.catalog.user_files import AddedOffers

SKYPILOT: Final = "skypilot"
PRICE_INDEX: Final = "gpu-price-index"
"""Sources of --refresh: lists that others publish on GitHub."""


def offers(
    *,
    provider: Annotated[
        str | None, typer.Option(help="Select a provider; with --add-skypilot and --refresh: of the list.")
    ] = None,
    region: Annotated[str | None, typer.Option(help="Select a region, a country such as DE, or EU.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="Select an accelerator.")] = None,
    pricing: Annotated[
        str | None, typer.Option(help="Select on_demand, spot, reserved_1y, reserved_3y or capacity_block.")
    ] = None,
    refresh: Annotated[
        str | None,
        typer.Option(
            metavar=f"FILE|{SKYPILOT}|{PRICE_INDEX}",
            help="Bring prices up to date from a file as of --add or --add-skypilot, from SkyPilot's published "
            "lists, or from the observations of gpu-price-index; of each offer the newest price counts.",
        ),
    ] = None,
    add: Annotated[Path | None, typer.Option(metavar="FILE", help="Add the offers of a CSV or TOML file.")] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="CURRENCY=USD", help="With --add: exchange rate, such as EUR=1.08; repeatable."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --add: replace the offers of an earlier file of the same name.")
    ] = False,
    add_skypilot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add the offers of a vms.csv of SkyPilot's catalogue.")
    ] = None,
    as_of: Annotated[
        dt.datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="With --add-skypilot or --refresh vms.csv: date of the prices."),
    ] = None,
    licence: Annotated[str | None, typer.Option(help="With --add-skypilot: licence of the file.")] = None,
    add_owned: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add the hourly cost of a server of your own.")
    ] = None,
    owned_template: Annotated[
        bool, typer.Option("--owned-template", help="Print a template for --add-owned.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the dated prices of the catalogue and your own with their age, add some, or refresh them."""
    changes = {
        "add": add, "add-skypilot": add_skypilot, "add-owned": add_owned, "owned-template": owned_template,
        "refresh": refresh,
    }  # fmt: skip
    require_one(changes)
    require_with("add", add, {"rate": rate, "replace": replace})
    require_with("add-skypilot", add_skypilot, {"licence": licence})
    require_with("add-skypilot", add_skypilot or refresh, {"as-of": as_of})
    if owned_template:
        from roofcast.serving.app_state.catalog import user_files

        print(user_files.owned_template(), end="")
    elif add or add_owned or add_skypilot:
        from roofcast.serving.app_state.catalog import user_files
        from roofcast.serving.app_state.settings import load_settings

        home, catalog = load_settings().home, open_catalog()
        if add:
            added = user_files.add_offers(add, home, catalog, parse_rates(rate or []), replace=replace)
        elif add_owned:
            added = user_files.add_owned(add_owned, home, catalog, today())
        elif add_skypilot:
            name, day = _stated("add-skypilot", provider, as_of)
            added = user_files.add_skypilot(
                add_skypilot, home, catalog, provider=name, as_of=day, licence=licence or ""
            )
        _show_added(added, as_json=as_json)
    elif refresh:
        is_published = refresh in {SKYPILOT, PRICE_INDEX}
        refreshes = _refresh_published(refresh, provider) if is_published else [_refresh(refresh, provider, as_of)]
        show([asdict(part) for part in refreshes], as_json=as_json)
    else:
        selection = {"provider": provider, "region": region, "accelerator": accelerator, "pricing": pricing}
        _list_offers(open_catalog(), selection, as_json=as_json)


def _stated(option: str, provider: str | None, as_of: dt.datetime | None) -> tuple[str, dt.date]:
    if not provider or as_of is None:
        raise InputError(option, "needs --provider and --as-of, which the file does not hold")
    return provider, as_of.date()


def _show_added(added: AddedOffers, *, as_json: bool) -> None:
    for remark in added.remarks:
        warn(remark)
    if as_json:
        show([{"ids": [offer.id for offer in added.offers], "path": added.path}], as_json=True)
    elif len(added.offers) == 1:
        (offer,) = added.offers
        print(f"{offer.id} at {offer.price_usd_per_h.normalize():f} USD/h is stored in {added.path}")
    else:
        print(f"{len(added.offers)} offers are stored in {added.path}")


def _refresh(source: str, provider: str | None, as_of: dt.datetime | None) -> OfferRefresh:
    from roofcast.data.prices.offer_file import load_offer_file
    from roofcast.data.prices.price_index import INDEX_COLUMNS, load_price_index
    from roofcast.data.prices.price_list import has_columns
    from roofcast.data.prices.skypilot import SKYPILOT_COLUMNS, load_skypilot_catalog
    from roofcast.serving.app_state.catalog.offer_refresh import refresh_offers
    from roofcast.serving.app_state.catalog.user_files import UNSTATED
    from roofcast.serving.app_state.settings import load_settings

    file, catalog = Path(source), open_catalog()
    if has_columns(file, SKYPILOT_COLUMNS):
        name, day = _stated("refresh", provider, as_of)
        listing = load_skypilot_catalog(file, name, day, catalog, UNSTATED)
        return _store_list(listing, f"{SKYPILOT}-{name}", file.name)
    if has_columns(file, INDEX_COLUMNS):
        return _store_list(load_price_index(file, catalog, provider or ""), _index_name(provider), file.name)
    return refresh_offers(load_offer_file(file, catalog), file.stem, load_settings().home, catalog)


def _refresh_published(source: str, provider: str | None) -> list[OfferRefresh]:
    from roofcast.data.prices.price_index import fetch_price_index
    from roofcast.data.prices.skypilot import CLOUDS, fetch_skypilot_list
    from roofcast.serving.app_state.catalog.offer_refresh import fetcher, open_client

    refreshes: list[OfferRefresh] = []
    with open_client() as client:
        fetch = fetcher(client)
        if source == PRICE_INDEX:
            with spinner(f"fetching {PRICE_INDEX}"):
                listing = fetch_price_index(provider or "", fetch, open_catalog())
            return [_store_list(listing, _index_name(provider), PRICE_INDEX)]
        for cloud in (provider,) if provider else CLOUDS:
            with spinner(f"fetching the prices of {cloud}"):
                listing = fetch_skypilot_list(cloud, fetch, open_catalog())
            if not listing or not listing.offers:
                warn(f"{cloud}: SkyPilot publishes no list with offers of known accelerators")
                continue
            refreshes.append(_store_list(listing, f"{SKYPILOT}-{cloud}", cloud))
    return refreshes


def _index_name(provider: str | None) -> str:
    return f"{PRICE_INDEX}-{provider}" if provider else PRICE_INDEX


def _store_list(listing: PriceList | None, name: str, source: str) -> OfferRefresh:
    from roofcast.serving.app_state.catalog.offer_refresh import refresh_offers
    from roofcast.serving.app_state.catalog.user_files import remarks_on
    from roofcast.serving.app_state.settings import load_settings

    for remark in remarks_on(listing) if listing else []:
        warn(remark)
    if not listing or not listing.offers:
        raise SchemaError("", "holds no offer of a known accelerator", source)
    return refresh_offers(listing.offers, name, load_settings().home, open_catalog())


LISTED: Final = (
    "provider", "accelerator", "pricing", "market", "instance_type", "region", "country", "n_accelerator",
)  # fmt: skip


def _list_offers(catalog: Catalog, selection: Mapping[str, str | None], *, as_json: bool) -> None:
    from roofcast.serving.app_state.catalog.user_files import staleness_warnings

    listed, day = list(_select(catalog, selection)), today()
    for warning in staleness_warnings(listed, day):
        warn(warning)
    ages = [{"age_day": (day - offer.as_of).days} for offer in listed]
    if as_json:
        show([offer.model_dump(mode="json") | age for offer, age in zip(listed, ages, strict=True)], as_json=True)
        return
    rows = [
        {name: getattr(offer, name) for name in LISTED}
        | {"market": offer.market if offer.market == "marketplace" else ""}
        | {"usd_per_h": f"{offer.price_usd_per_h:.2f}", "as_of": offer.as_of, **age}
        for offer, age in zip(listed, ages, strict=True)
    ]
    group_by = ("provider", "accelerator", "pricing")
    rows.sort(key=itemgetter(*group_by, "instance_type", "region"))
    show(rows, as_json=False, group_by=group_by)


def _select(catalog: Catalog, selection: Mapping[str, str | None]) -> Iterable[Offer]:
    from roofcast.data.prices.regions import resolve_region

    wanted = {name: {value} for name, value in selection.items() if value}
    for name, values in wanted.items():
        known = {str(getattr(offer, name)) for offer in catalog.offers}
        (value,) = values
        if name == "accelerator":
            wanted[name] = {catalog.accelerator(value).id}
        elif name == "region":
            wanted[name] = {*resolve_region(name, value, known)}
        elif value not in known:
            raise UnknownNameError(name, value, known)
    return (offer for offer in catalog.offers if all(getattr(offer, n) in v for n, v in wanted.items()))
