"""Constraints on offers that requests of deployments and of training share."""

from typing import Annotated

from pydantic import Field

from roofcast.data.prices.price_book import MAX_AGE_DAY
from roofcast.serving.recommend.demand.inventory import InventoryItem
from roofcast.serving.request_fields import Flag, Message, Text

Texts = Annotated[list[Text], Field(max_length=200)]
Inventory = Annotated[
    list[InventoryItem],
    Field(max_length=50, description="Nodes that you own, with the hourly price of one accelerator."),
    Flag(metavar="ACCELERATOR=COUNT,PER_NODE,USD_PER_H"),
]
Marketplaces = Annotated[
    bool,
    Field(
        description="Whether to admit marketplaces and community clouds, where third parties host the instances; "
        "a provider that is named is admitted in any case."
    ),
    Flag("--marketplaces"),
]


class OfferConstraintsRequest(Message):
    """Constraints on offers; an omitted field does not constrain, except that `pricing` is on demand."""

    providers: Annotated[Texts, Field(description="Providers to admit."), Flag("--provider")] = Field(
        default_factory=list
    )
    regions: Annotated[
        Texts,
        Field(
            description="Regions of offers, countries such as DE, areas such as EU, US and Asia; if none is named, "
            "only the cheapest region of each instance counts."
        ),
        Flag("--region"),
    ] = Field(default_factory=list)
    vendors: Annotated[Texts, Field(description="Makers of the accelerators, such as NVIDIA."), Flag("--vendor")] = (
        Field(default_factory=list)
    )
    accelerators: Annotated[Texts, Field(description="Accelerators to admit."), Flag("--accelerator")] = Field(
        default_factory=list
    )
    pricing: Annotated[
        Texts,
        Field(description="Kinds of price: on_demand, spot, reserved_1y, reserved_3y, capacity_block."),
        Flag("--pricing"),
    ] = Field(default_factory=lambda: ["on_demand"])
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
    max_usd_per_h: Annotated[float | None, Field(gt=0, le=1e9, description="Most US dollars per hour."), Flag()] = (
        None
    )
