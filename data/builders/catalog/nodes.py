"""Offers as nodes: later lists added, regions named as countries name them, superseded and unsold ones left out."""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builders.published import RejectionError
from roofcast.data import units
from roofcast.data.catalog.sheet_units import fields_in_si
from roofcast.data.prices.node_rules import sold_nodes
from roofcast.data.prices.offer_file import usual_market
from roofcast.data.prices.price_book import without_superseded
from roofcast.data.prices.regions import UNKNOWN_REGION
from roofcast.data.specs import Offer

Row = dict[str, str]


NAMES: Final[Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "offer_names.toml").read_text(encoding="utf-8")
)
"""Names in lists of offers."""


def convert_offer(raw: Row) -> Row:
    """Return the row of ``offers.csv``.

    Raises `RejectionError` if it has no date, no licence or no accelerator, is an ask or a benchmark's price, or its
    term is a guess.
    """
    row = {column: raw[column].strip() for column in NAMES["columns"]}
    reasons = {
        "processor only": row["n_accelerator"] == "0",
        "no date": not row["as_of"],
        "no licence": not row["licence"] or "no LICENSE" in row["licence"] or row["licence"].startswith("none"),
        "price list of a benchmark": "llm-pilot" in row["provider"].casefold(),
        "ask on a market": row["provider"].startswith("vast ("),
        "term of the reservation inferred": "aws-neuron-sdk" in row["source"],
    }
    reason = next((name for name, holds in reasons.items() if holds), "")
    if reason:
        raise RejectionError(reason, raw["source"])
    row["provider"] = row["provider"].partition(" (")[0]
    row["region"] = row["region"] or "global"
    row["market"] = usual_market(row["provider"])
    return row


def name_key(name: str) -> str:
    """Return the name as the catalogue compares it: without case, with blanks and underscores as hyphens."""
    return re.sub(r"[\s_]+", "-", name.casefold())


def offer_key(row: Row) -> tuple[str, ...]:
    """Return the cells that an offer has a price for."""
    return tuple(row[c] for c in ("provider", "region", "instance_type", "pricing"))


_UNSTATED: Final = frozenset({"", "all", "any", "eu/us", "global"})

_PRICING: Final = {
    "on demand": ("on_demand",), "spot": ("spot",), "reserved": ("reserved_1y", "reserved_3y"),
    "capacity block": ("capacity_block",),
}  # fmt: skip


def node_rows(rows: Iterable[Row], added: Iterable[Row], skipped: Counter[str]) -> list[Row]:
    """Return the rows of the table and of later lists as nodes that are sold; count the skipped rows.

    A row of several regions becomes one for each; a price of one accelerator becomes the nodes of its rule.
    """
    merged = {offer_key(row): row for row in map(_located, rows)}
    for raw in _with_own_names([*added]):
        for region in _regions(raw["region"]):
            try:
                row = convert_offer(raw | {"provider": _provider(raw)})
            except RejectionError as error:
                skipped[f"offers.csv: {error.reason}"] += 1
                continue
            row |= {"region": region, "market": raw["market"], "source": _source(raw)}
            merged[offer_key(row)] = _newer(row, merged.get(offer_key(row)))
    listed = [
        Offer.parse(fields_in_si({name: cell for name, cell in row.items() if cell})) for row in merged.values()
    ]
    current = without_superseded(_without_doubles(listed))
    sold = {offer.id: offer for offer in sold_nodes(current)}
    skipped["offers.csv: superseded"] += len(listed) - len(current)
    skipped["offers.csv: not sold in this size or at this kind of price"] += sum(o.id not in sold for o in current)
    known = {offer.id: row for offer, row in zip(listed, merged.values(), strict=True)}
    return sorted((known.get(name) or _row(offer) for name, offer in sold.items()), key=offer_key)


def rule_rows(collected: Iterable[Row]) -> list[Row]:
    """Return the rows of ``node_rules.csv``, without those read off the catalogue and those of managed serving."""
    rows = []
    for raw in collected:
        if "from the product's catalogue" in raw["rule"] or raw["provider"].endswith("-dedicated"):
            continue
        pricing = [name for words, names in _PRICING.items() if words in raw["purchase"] for name in names]
        rows.append(
            {
                "provider": raw["provider"],
                "accelerator": raw["accelerator"],
                "n_accelerator": NAMES["node_sizes"].get(raw["accelerator"], raw["counts_sold"]),
                "pricing": "|".join(pricing),
                "as_of": raw["date"],
                "source": raw["source_url"],
                "rule": re.sub(r"[;,]? ?\(?code ids?[^)]*\)?", "", raw["rule"]),
            }
        )
    return rows


def _with_own_names(added: Sequence[Row]) -> list[Row]:
    parts: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for raw in added:
        parts[raw["provider"], raw["instance_type"]].add(raw["accelerator"])
    return [
        raw | {"instance_type": f"{raw['instance_type']} ({raw['accelerator']})"}
        if len(parts[raw["provider"], raw["instance_type"]]) > 1
        else raw
        for raw in added
    ]


def _newer(row: Row, known: Row | None) -> Row:
    return known if known and known["as_of"] > row["as_of"] else row


def _located(row: Row) -> Row:
    (region, *_) = _regions(row["region"])
    return row | {"region": region, "provider": _provider(row)}


def _provider(row: Row) -> str:
    name = row["provider"].strip().casefold()
    return str(NAMES["providers"].get(name, row["provider"]))


def _regions(text: str) -> list[str]:
    if text in _UNSTATED:
        return [UNKNOWN_REGION]
    if zones := re.search(r"\(([A-Z/]+)\)", text):
        return [zone.casefold() for zone in zones[1].split("/")]
    name = text.partition(" (")[0].partition("us/")[2] or text.partition(" (")[0]
    return [str(NAMES["regions"].get(part, part)) for part in name.split()]


def _source(raw: Row) -> str:
    text = "; ".join(filter(None, [raw["source"], raw["note"]]))
    return re.sub(r" ?\(code (?:index )?ids? [^)]*\)", "", text)[:600]


def _without_doubles(offers: Sequence[Offer]) -> list[Offer]:
    last = {(o.provider, o.accelerator, o.n_accelerator, o.pricing, o.as_of, o.price_usd_per_h): o.id for o in offers}
    return [offer for offer in offers if offer.region != UNKNOWN_REGION or offer.id in last.values()]


def _row(offer: Offer) -> Row:
    fields = offer.model_dump(include={*NAMES["columns"], "market"}, exclude_none=True)
    fields["price_usd_per_h"] = f"{offer.price_usd_per_h.normalize():f}"
    if offer.memory_byte:
        fields["host_memory_gib"] = f"{offer.memory_byte / units.BYTE_PER_GIB:g}"
    return {name: f"{cell:g}" if isinstance(cell, float) else str(cell) for name, cell in fields.items()}
