"""Node rules: how many accelerators of a kind a provider sells in one machine, and in which pricing."""

import csv
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Final

from roofcast.data import catalog
from roofcast.data.specs import Offer

TABLE: Final = "node_rules.csv"
"""Table of the catalogue; `n_accelerator` and `pricing` have several values, parted by ``|``."""

ANY_ACCELERATOR: Final = "*"

_ONE: Final = re.compile(r"(?<![a-z0-9])1(x|g|gpu)(?![a-z])", re.IGNORECASE)
"""Size in the name of an instance of one accelerator, as in ``a3-highgpu-1g``."""

_PER_NODE: Final = Decimal("0.000001")


@functools.cache
def _rules() -> Mapping[tuple[str, str], Mapping[str, frozenset[int]]]:
    rules: defaultdict[tuple[str, str], defaultdict[str, frozenset[int]]]
    rules = defaultdict(lambda: defaultdict(frozenset[int]))
    table = (files(catalog) / TABLE).read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(table):
        sold = rules[row["provider"], row["accelerator"]]
        for pricing in row["pricing"].split("|"):
            sold[pricing] |= {int(n) for n in row["n_accelerator"].split("|") if n}
    return rules


def node_sizes(provider: str, accelerator: str, pricing: str) -> frozenset[int] | None:
    """Return the numbers of accelerators in one machine that a provider sells; None where no rule is known.

    What has rules, but none on demand, is not sold on demand; other kinds of price without a rule are unknown.

    Examples
    --------
    >>> sorted(node_sizes("nebius", "nvidia-h200-sxm-141gb", "on_demand"))
    [1, 8]
    >>> node_sizes("vultr", "nvidia-b200-sxm-180gb", "on_demand"), node_sizes("attic", "mine", "on_demand")
    (frozenset(), None)
    """
    sold = _rules().get((provider, accelerator)) or _rules().get((provider, ANY_ACCELERATOR))
    if sold is None or (pricing not in sold and pricing != "on_demand"):
        return None
    return sold.get(pricing, frozenset())


def is_sold(offer: Offer) -> bool:
    """Return whether the rules admit an offer; True where none is known."""
    sizes = node_sizes(offer.provider, offer.accelerator, offer.pricing)
    return sizes is None or offer.n_accelerator in sizes


def sold_nodes(offers: Iterable[Offer]) -> list[Offer]:
    """Return the offers that are sold; a price of one accelerator alone is that of every node its rule names.

    It is not where the instance's name states its size, where the list has prices of several sizes of the provider's
    accelerator, and on a marketplace, where the next accelerator may be dearer.
    """
    offers = list(offers)
    listed: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for offer in offers:
        listed[offer.provider, offer.accelerator, offer.pricing].add(offer.n_accelerator)
    nodes: dict[str, Offer] = {}
    for offer in offers:
        nodes |= {offer.id: offer} if is_sold(offer) else {}
        is_alone = listed[offer.provider, offer.accelerator, offer.pricing] == {1}
        if is_alone and offer.market == "provider" and not _ONE.search(offer.instance_type):
            sizes = node_sizes(offer.provider, offer.accelerator, offer.pricing) or frozenset()
            nodes |= {node.id: node for node in (_of_size(offer, n) for n in sorted(sizes - {1}))}
    return list(nodes.values())


def _of_size(offer: Offer, n: int) -> Offer:
    fields = {
        "n_accelerator": n,
        "instance_type": f"{n}x {offer.instance_type}",
        "price_usd_per_h": (offer.price_usd_per_h * n).quantize(_PER_NODE),
        "source": f"{offer.source}; {n} times the price of one",
        "vcpu": offer.vcpu and offer.vcpu * n,
        "memory_byte": offer.memory_byte and offer.memory_byte * n,
    }
    return offer.model_copy(update=fields)
