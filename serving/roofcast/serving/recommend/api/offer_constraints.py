"""Constraints on offers that requests of deployments and of training share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from roofcast.serving.recommend.demand.inventory import InventoryItem
from roofcast.serving.request_fields import Message, Text

Texts = Annotated[list[Text], Field(max_length=200)]
Inventory = Annotated[list[InventoryItem], Field(max_length=50, description="Owned nodes.")]
Marketplaces = Annotated[
    bool,
    Field(
        description="Whether to admit marketplaces and community clouds, where third parties host the instances; "
        "a provider that is named is admitted in any case."
    ),
]


class OfferConstraintsRequest(Message):
    """Constraints on offers; an omitted field does not constrain, except that `pricing` is on demand."""

    providers: Texts = Field(default_factory=list)
    regions: Texts = Field(
        default_factory=list,
        description="regions of offers, countries such as DE, areas such as EU, US and Asia; if none is named, "
        "only the cheapest region of each instance counts",
    )
    vendors: Texts = Field(default_factory=list, description="makers of the accelerators, such as NVIDIA")
    accelerators: Texts = Field(default_factory=list)
    pricing: Texts = Field(
        default_factory=lambda: ["on_demand"], description="on_demand, spot, reserved_1y, reserved_3y"
    )
    max_usd_per_h: Annotated[float, Field(gt=0, le=1e9)] | None = None
