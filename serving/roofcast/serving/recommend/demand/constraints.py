"""Constraints on the choice: offers, owned accelerators, price overrides, precisions and speculation."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.prices.offer_file import OWN_FIGURES
from roofcast.data.prices.price_book import MAX_AGE_DAY
from roofcast.data.specs import Count, Money, Offer
from roofcast.serving.app_state.catalog.user_files import OWNED
from roofcast.serving.request_fields import Flag, Message, Text, examples, unknown_name_error

REGION: Final = "own"
MAX_USD_PER_H: Final = 100_000
_OFFER_KEYS: Final = ("provider", "region", "instance_type", "pricing")


class OwnedNodes(Offer):
    """An offer of `n_node` owned nodes; its price may be 0, for sunk costs."""

    price_usd_per_h: Annotated[Money, Field(ge=0, lt=MAX_USD_PER_H)]
    n_node: Count


class InventoryItem(Message):
    """Owned accelerators, in nodes of one size."""

    accelerator: Text
    count: Annotated[int, Field(ge=1, le=1_000_000)]
    """Accelerators in total, a multiple of n_per_node."""
    n_per_node: Annotated[int, Field(ge=1, le=1024)]
    usd_per_h: Annotated[float, Field(ge=0, le=10_000)]
    """Of one accelerator; 0 if the cost is sunk."""
    name: Annotated[str, Field(max_length=200)] = ""
    """Name of the nodes in the response."""

    model_config = examples({"accelerator": "h100-sxm-80gb", "count": 16, "n_per_node": 8, "usd_per_h": 1.2})

    def offer(self, field: str, catalog: Catalog, today: dt.date) -> OwnedNodes:
        """Return the item as an offer; `field` is its place in the request, for messages.

        Raises `InputError` if the accelerators do not fill their nodes, or the price of a node is above
        `MAX_USD_PER_H`; `UnknownNameError` if there is no such accelerator.
        """
        if self.count % self.n_per_node:
            cure = "list nodes of another size as another item"
            problem = f"must be a multiple of n_per_node, which is {self.n_per_node}; got {self.count}; {cure}"
            raise InputError(f"{field}.count", problem)
        price = Decimal(str(self.usd_per_h)) * self.n_per_node
        if price >= MAX_USD_PER_H:
            problem = f"must make less than {MAX_USD_PER_H} USD for a node; got {self.usd_per_h}"
            raise InputError(f"{field}.usd_per_h", problem)
        accelerator = _accelerator_id(f"{field}.accelerator", self.accelerator, catalog)
        fields = {
            "provider": OWNED,
            "instance_type": self.name or f"{self.n_per_node}x {accelerator}",
            "region": REGION,
            "accelerator": accelerator,
            "n_accelerator": self.n_per_node,
            "pricing": "on_demand",
            "price_usd_per_h": price,
            "as_of": today,
            "source": "inventory of the request",
            "licence": "own figures",
            "n_node": self.count // self.n_per_node,
        }
        return OwnedNodes.parse(fields, field)


class PriceOverride(Message):
    """Another price for every instance that matches all the names given."""

    price_usd_per_h: Annotated[float, Field(gt=0, lt=100_000)]
    """Of a whole instance."""
    provider: Text | None = None
    region: Text | None = None
    instance_type: Text | None = None
    accelerator: Text | None = None
    pricing: Text | None = None
    """on_demand, spot, reserved_1y, reserved_3y, capacity_block."""

    model_config = examples({"provider": "aws", "accelerator": "h100-sxm-80gb", "price_usd_per_h": 31.5})

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_dump(exclude={"price_usd_per_h"}, exclude_none=True):
            problem = "name the provider, region, instance_type, accelerator or pricing that the price is for"
            raise InputError("", problem)
        return self

    def matches(self, field: str, offers: Sequence[Offer], catalog: Catalog) -> list[int]:
        """Return the indices of the offers that the override applies to.

        Raises `InputError` if it applies to none; `UnknownNameError` if no offer has a name given, or there is no
        such accelerator.
        """
        names: dict[str, str] = {}
        for key in _OFFER_KEYS:
            if name := getattr(self, key):
                by_key = {value.casefold(): value for value in (getattr(offer, key) for offer in offers)}
                if name.casefold() not in by_key:
                    raise unknown_name_error(f"{field}.{key}", name, by_key.values())
                names[key] = by_key[name.casefold()]
        if self.accelerator:
            names["accelerator"] = _accelerator_id(f"{field}.accelerator", self.accelerator, catalog)
        indices = [k for k, offer in enumerate(offers) if all(getattr(offer, key) == names[key] for key in names)]
        if not indices:
            text = ", ".join(f"{key} {value}" for key, value in names.items())
            raise InputError(field, f"no offer has {text} together; leave one of them out")
        return indices


def owned_nodes(items: Iterable[InventoryItem], catalog: Catalog, today: dt.date) -> tuple[OwnedNodes, ...]:
    """Return an inventory as offers; one accelerator may be in several kinds of nodes.

    Raises `InputError` if accelerators do not fill their nodes, a node is too expensive, or two items have the same
    name. Raises `UnknownNameError` if there is no such accelerator; names the item.
    """
    nodes: dict[str, OwnedNodes] = {}
    for i, item in enumerate(items):
        field = f"constraints.inventory.{i}"
        offer = item.offer(field, catalog, today)
        if offer.id in nodes:
            raise InputError(f"{field}.name", f"{offer.instance_type!r} is given twice; give each a name of its own")
        nodes[offer.id] = offer
    return tuple(nodes.values())


def override_prices(catalog: Catalog, overrides: Sequence[PriceOverride], today: dt.date) -> Catalog:
    """Return the catalogue with overridden prices of its offers; the last override of an offer counts.

    Raises `InputError` if an override applies to no offer; `UnknownNameError` if it names a provider, region,
    instance or pricing that no offer has, or an unknown accelerator.
    """
    if not overrides:
        return catalog
    result = list(catalog.offers)
    last: dict[int, tuple[str, PriceOverride]] = {}
    for i, override in enumerate(overrides):
        field = f"price_overrides.{i}"
        last |= dict.fromkeys(override.matches(field, result, catalog), (field, override))
    for k, (field, override) in last.items():
        fields = result[k].model_dump(exclude={"country", "listed_price_per_h", "listed_currency"})
        price = Decimal(str(override.price_usd_per_h))
        fields |= {"price_usd_per_h": price, "as_of": today, "source": "price of the request"}
        result[k] = type(result[k]).parse(fields, field)
    return catalog.with_offers(result)


def _accelerator_id(field: str, name: str, catalog: Catalog) -> str:
    try:
        return catalog.accelerator(name).id
    except UnknownNameError as error:
        error.field = field
        raise


Texts = Annotated[list[Text], Field(max_length=200)]


class OfferConstraintsRequest(Message):
    """Constraints on offers; an omitted field does not constrain, except that `pricing` is on demand."""

    providers: Annotated[Texts, Flag("--provider")] = Field(default_factory=list)
    """Providers to admit."""
    regions: Annotated[Texts, Flag("--region")] = Field(default_factory=list)
    """Regions of offers, countries such as DE, areas such as EU, US and Asia; if none is named, only the cheapest
    region of each instance counts."""
    vendors: Annotated[Texts, Flag("--vendor")] = Field(default_factory=list)
    """Makers of the accelerators, such as NVIDIA."""
    accelerators: Annotated[Texts, Flag("--accelerator")] = Field(default_factory=list)
    """Accelerators to admit."""
    pricing: Annotated[Texts, Flag("--pricing")] = Field(default_factory=lambda: ["on_demand"])
    """Kinds of price: on_demand, spot, reserved_1y, reserved_3y, capacity_block."""
    max_price_age_day: Annotated[
        int | None,
        Field(
            ge=0,
            le=10_000,
            description=f"Age above which prices are left out; by default one of more than {MAX_AGE_DAY} days counts "
            "where its accelerator has no younger one.",
        ),
        Flag("--max-price-age", metavar="DAYS"),
    ] = None
    max_usd_per_h: Annotated[float | None, Field(gt=0, le=1e9), Flag()] = None
    """Most US dollars per hour."""
    inventory: Annotated[
        list[InventoryItem], Field(max_length=50), Flag(metavar="ACCELERATOR=COUNT,PER_NODE,USD_PER_H")
    ] = Field(default_factory=list)
    """Nodes that you own, with the hourly price of one accelerator."""
    marketplaces: Annotated[bool, Flag("--marketplaces")] = False
    """Whether to admit marketplaces and community clouds, where third parties host the instances; a provider that is
    named is admitted in any case."""


Objective = Literal["cost", "tokens", "throughput", "accelerators"]
"""What a recommendation minimises or, of throughput, maximises."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding of a replica.

    - `kind`: Of `roofcast.data.measurements.schema.SPECULATIONS`.
    - `n_token`: Speculated tokens per step.
    - `chain_acceptance_ratio`: Probability that a speculated token is accepted; None for the engine's coefficient.
    """

    kind: str
    n_token: int
    chain_acceptance_ratio: float | None = None


SERVER_SETTINGS: Final = (
    "gpu_memory_utilization", "max_num_seqs", "chunk_size_token", "n_gpu_layer", "n_cpu_moe", "cpu_offload_gib",
)  # fmt: skip
"""Columns of questions that a recommendation may fix for all replicas."""

_OFFER_FIELDS: Final = ("accelerator", "pricing", "provider", "region")
"""Fields of an offer that constraints name values of; none admits all."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on the choice; an empty set admits everything.

    - `accelerators`: Ids.
    - `max_usd_per_h`: Budget of the whole deployment.
    - `kv_precision`: Blank for the engine's default.
    - `server_settings`: Values of `SERVER_SETTINGS` that every replica has; others are the engine's defaults.
    - `weight_precisions`: Empty for the checkpoint's own.
    - `weight_bits`: Bits of a weight to search by precision, where others than the usual are meant; None is the
      usual.
    - `weight_formats`: Precisions that are meant in one format, such as AWQ, with its name.
    - `max_nodes`: Most nodes that one replica may span.
    - `speculations`: Kinds of speculative decoding to search; None is without.
    - `draft_model`: Checkpoint of the draft model or head, for artefacts.
    - `inventory`: Owned nodes; providers, regions and pricing do not apply to them.
    - `oldest_price`: Date before which a price is old; None if none is.
    - `has_old_prices`: Whether an old price counts where its accelerator has no younger one of the same kind.
    - `checkpoints`: Repositories of the model's weights by precision, beside its own.
    - `published`: Precisions of those of its publisher, which are searched unless precisions are named.
    - `objective`: What decides between deployments within the constraints.
    - `marketplaces`: Whether to admit instances of third-party hosts; those of a provider that is named are admitted
      anyway.
    """

    providers: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    accelerators: frozenset[str] = frozenset()
    pricing: frozenset[str] = field(default_factory=lambda: frozenset({"on_demand"}))
    max_usd_per_h: float | None = None
    kv_precision: str = ""
    server_settings: Mapping[str, float] = field(default_factory=dict)
    engines: frozenset[str] = frozenset()
    weight_precisions: frozenset[str] = frozenset()
    weight_bits: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    weight_formats: frozenset[tuple[str, str]] = frozenset()
    max_nodes: int = 1
    speculations: tuple[Speculation | None, ...] = (None,)
    draft_model: str = ""
    inventory: tuple[OwnedNodes, ...] = ()
    marketplaces: bool = False
    oldest_price: dt.date | None = None
    has_old_prices: bool = True
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    published: frozenset[str] = frozenset()
    objective: Objective = "cost"

    @property
    def engine(self) -> str:
        """The only engine admitted; blank if there are none or several."""
        return next(iter(self.engines)) if len(self.engines) == 1 else ""

    @property
    def weight_precision(self) -> str:
        """The only weight precision admitted; blank if there are none or several."""
        return next(iter(self.weight_precisions)) if len(self.weight_precisions) == 1 else ""

    @property
    def budget_usd_per_h(self) -> float:
        """Budget of the whole deployment; infinite if there is none."""
        return math.inf if self.max_usd_per_h is None else self.max_usd_per_h

    def admissible_offers(self, offers: Iterable[Offer]) -> list[Offer]:
        """Return owned nodes, then the offers within the constraints.

        Unless regions are named, the cheapest region of an instance represents all. Figures of your own do not age.
        """
        owned = [nodes for nodes in self.inventory if not self.accelerators or nodes.accelerator in self.accelerators]
        rented = [*offers]
        wanted = zip(_OFFER_FIELDS, (self.accelerators, self.pricing, self.providers, self.regions), strict=True)
        for name, values in wanted:
            rented = [offer for offer in rented if getattr(offer, name) in values] if values else rented
        if not (self.marketplaces or self.providers):
            rented = [offer for offer in rented if offer.market == "provider"]
        rented = self._of_age(rented)
        return [*owned, *(rented if self.regions else cheapest_regions(rented))]

    def require_offers(self, offers: Iterable[Offer]) -> list[Offer]:
        """Return the admissible offers; raise `InputError` if there is none."""
        if admissible := self.admissible_offers(offers):
            return admissible
        cure = "relax providers, regions, accelerators, pricing or the age of prices"
        raise InputError("constraints", f"admit no offer; {cure}")

    def _of_age(self, offers: list[Offer]) -> list[Offer]:
        if self.oldest_price is None:
            return offers
        is_young = [o.as_of >= self.oldest_price or o.licence == OWN_FIGURES for o in offers]
        priced = {(o.accelerator, o.pricing) for o, young in zip(offers, is_young, strict=True) if young}
        return [
            offer
            for offer, young in zip(offers, is_young, strict=True)
            if young or (self.has_old_prices and (offer.accelerator, offer.pricing) not in priced)
        ]


def cheapest_regions(offers: Iterable[Offer]) -> list[Offer]:
    """Return the cheapest offer of each provider, instance type and pricing, in the order of the offers.

    Of regions of one price the first counts.
    """
    cheapest: dict[tuple[str, str, str], Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.instance_type, offer.pricing)
        if key not in cheapest or offer.price_usd_per_h < cheapest[key].price_usd_per_h:
            cheapest[key] = offer
    return list(cheapest.values())
