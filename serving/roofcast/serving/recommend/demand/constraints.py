"""Constraints on the choice of hardware, engine and speculation, and the offers within them."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from roofcast.data.errors import InputError
from roofcast.data.prices.offer_file import OWN_FIGURES
from roofcast.data.specs import Offer
from roofcast.serving.recommend.demand.inventory import OwnedNodes

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

    def __post_init__(self) -> None:
        if self.max_nodes < 1:
            raise InputError("max_nodes", f"must be at least 1, got {self.max_nodes}")

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
