"""Accelerators of one's own, so many and no more, and prices that a request sets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import Count, Money, Offer
from roofcast.serving.app_state.user_files import OWNED
from roofcast.serving.predict.unknown_names import unknown_name_error

REGION: Final = "own"
MAX_USD_PER_H: Final = 100_000
_SOURCE: Final = "price of the request"


class OwnedNodes(Offer):
    """Nodes of one's own: an offer of which there are `n_node`; where the cost is sunk the price is 0."""

    price_usd_per_h: Annotated[Money, Field(ge=0, lt=MAX_USD_PER_H)]
    n_node: Count


@dataclass(frozen=True, slots=True)
class Stock:
    """Accelerators that are there already.

    Parameters
    ----------
    accelerator
        Name or id.
    count
        Accelerators in all.
    n_per_node
        Accelerators of a node.
    usd_per_h
        Cost of one accelerator; 0 if it is sunk.
    name
        Of the nodes, for the answer; made of the rest if empty.
    """

    accelerator: str
    count: int
    n_per_node: int
    usd_per_h: Decimal = Decimal(0)
    name: str = ""


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Another price for the instances that all the names given apply to.

    Parameters
    ----------
    price_usd_per_h
        Of a whole instance.
    provider, region, instance_type, accelerator, pricing
        Which instances; empty means any.
    """

    price_usd_per_h: Decimal
    provider: str = ""
    region: str = ""
    instance_type: str = ""
    accelerator: str = ""
    pricing: str = ""


def owned_nodes(stocks: Iterable[Stock], catalog: Catalog, today: dt.date) -> tuple[OwnedNodes, ...]:
    """Return one's own accelerators as offers of which there are so many.

    Parameters
    ----------
    stocks
        What there is; the same accelerator may be there in several kinds of nodes.
    catalog
        Where accelerators are looked up.
    today
        Date of their price.

    Raises
    ------
    InputError
        If accelerators do not fill their nodes, a price is absurd, or two kinds of nodes have one name.
    UnknownNameError
        If there is no such accelerator; names the item.
    """
    nodes: dict[str, OwnedNodes] = {}
    for i, stock in enumerate(stocks):
        field = f"constraints.inventory.{i}"
        if stock.n_per_node < 1 or stock.count < 1 or stock.count % stock.n_per_node:
            cure = "list the nodes of another size apart"
            problem = f"must be a multiple of n_per_node, which is {stock.n_per_node}; got {stock.count}; {cure}"
            raise InputError(f"{field}.count", problem)
        if not 0 <= stock.usd_per_h * stock.n_per_node < MAX_USD_PER_H:
            problem = (
                f"must make less than {MAX_USD_PER_H} USD for a node, and not be negative; got {stock.usd_per_h}"
            )
            raise InputError(f"{field}.usd_per_h", problem)
        accelerator = _accelerator(f"{field}.accelerator", stock.accelerator, catalog)
        node = _nodes(field, stock, accelerator, today)
        if node.id in nodes:
            raise InputError(f"{field}.name", f"{node.instance_type!r} is given twice; name them apart")
        nodes[node.id] = node
    return tuple(nodes.values())


def _nodes(field: str, stock: Stock, accelerator: str, today: dt.date) -> OwnedNodes:
    fields = {
        "provider": OWNED,
        "instance_type": stock.name or f"{stock.n_per_node}x {accelerator}",
        "region": REGION,
        "accelerator": accelerator,
        "n_accelerator": stock.n_per_node,
        "pricing": "on_demand",
        "price_usd_per_h": stock.usd_per_h * stock.n_per_node,
        "as_of": today,
        "source": "inventory of the request",
        "licence": "own figures",
        "n_node": stock.count // stock.n_per_node,
    }
    return OwnedNodes.parse(fields, field)


def repriced(
    offers: Iterable[Offer], changes: Iterable[PriceChange], catalog: Catalog, today: dt.date
) -> list[Offer]:
    """Return the offers with the prices that a request sets; of several for one offer the last counts.

    Parameters
    ----------
    offers
        In any order, which is kept.
    changes
        Prices, and what they are for.
    catalog
        Where accelerators are looked up.
    today
        Date of the prices set.

    Raises
    ------
    InputError
        If a change says nothing of what it is for, or is for no offer.
    UnknownNameError
        If it names a provider, region, instance or kind of price that no offer has, or an unknown accelerator.
    """
    priced = list(offers)
    last: dict[int, tuple[str, PriceChange]] = {}
    for i, change in enumerate(changes):
        field = f"price_overrides.{i}"
        bounds = _bounds(field, change, priced, catalog)
        chosen = [k for k, offer in enumerate(priced) if all(getattr(offer, part) == bounds[part] for part in bounds)]
        if not chosen:
            named = ", ".join(f"{part} {value}" for part, value in bounds.items())
            raise InputError(field, f"no offer has {named} together; leave one of them out")
        last |= dict.fromkeys(chosen, (field, change))
    for k, (field, change) in last.items():
        kept = priced[k].model_dump(exclude={"listed_price_per_h", "listed_currency"})
        new = {"price_usd_per_h": change.price_usd_per_h, "as_of": today, "source": _SOURCE}
        priced[k] = type(priced[k]).parse({**kept, **new}, field)
    return priced


def _bounds(field: str, change: PriceChange, offers: list[Offer], catalog: Catalog) -> dict[str, str]:
    """Return what an offer must have for a change to apply, by the offer's fields."""
    bounds = {}
    for part in ("provider", "region", "instance_type", "pricing"):
        if name := getattr(change, part):
            bounds[part] = _spelt(f"{field}.{part}", name, (getattr(offer, part) for offer in offers))
    if change.accelerator:
        bounds["accelerator"] = _accelerator(f"{field}.accelerator", change.accelerator, catalog)
    if not bounds:
        raise InputError(
            field, "must name the provider, region, instance_type, accelerator or pricing that it is for"
        )
    return bounds


def _spelt(field: str, name: str, known: Iterable[str]) -> str:
    by_key = {value.casefold(): value for value in known}
    if name.casefold() not in by_key:
        raise unknown_name_error(field, name, by_key.values())
    return by_key[name.casefold()]


def _accelerator(field: str, name: str, catalog: Catalog) -> str:
    try:
        return catalog.accelerator(name).id
    except UnknownNameError as error:
        raise UnknownNameError(field, name, error.args[2]) from error
