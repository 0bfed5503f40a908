"""The parts of a request for a recommendation that say what is wanted, what is there already and at what price."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.inventory import PriceChange, Stock
from roofcast.serving.recommend.demand.presets import PRESETS, Lengths, find_preset, lengths_from_percentiles
from roofcast.serving.recommend.demand.slo import Limit
from roofcast.serving.request_fields import Message, Text, Tokens

_Percentiles = Annotated[dict[Annotated[str, Field(max_length=10)], Tokens], Field(min_length=2, max_length=20)]


def _check_percentiles(percentiles: dict[str, float]) -> dict[str, float]:
    lengths_from_percentiles(percentiles)
    return percentiles


Length = Annotated[
    Annotated[Tokens, Tag("a mean")]
    | Annotated[_Percentiles, AfterValidator(_check_percentiles), Tag("percentiles")],
    Discriminator(lambda value: "percentiles" if isinstance(value, dict) else "a mean"),
    Field(description='Tokens of a request: the mean, or percentiles such as {"p50": 300, "p95": 1200}.'),
]


class WorkloadRequest(Message):
    """Requests as they come: a preset or lengths, and either `users` or arrivals per second."""

    preset: Annotated[Text | None, Field(description=", ".join(PRESETS))] = None
    n_input_token: Length | None = None
    n_output_token: Length | None = None
    length_variation: Annotated[
        float | None, Field(ge=0, le=1000, description="Standard deviation of the output lengths over their mean.")
    ] = None
    prefix_cache_ratio: Annotated[
        float | None, Field(ge=0, le=0.99, description="Share of the input that is found in the prefix cache.")
    ] = None
    users: Annotated[float, Field(ge=1, le=1_000_000)] | None = None
    think_time_s: Annotated[
        float, Field(ge=0, le=86_400, description="Mean time of a user between an answer and the next request.")
    ] = 0.0
    request_rate_per_s: Annotated[float, Field(ge=1e-9, le=1_000_000)] | None = None
    peak_factor: Annotated[float, Field(ge=1, le=1000, description="Load at the peak over the load given.")] = 1.0
    headroom: Annotated[float, Field(ge=0, le=0.99, description="Share of the capacity kept free at the peak.")] = 0.0

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"preset": "chat", "users": 300, "think_time_s": 20, "peak_factor": 1.5, "headroom": 0.2},
                {"n_input_token": {"p50": 300, "p95": 1200}, "n_output_token": 150, "request_rate_per_s": 4},
            ]
        }
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.users is None) == (self.request_rate_per_s is None):
            raise ValueError("give either users or request_rate_per_s")
        if self.users is None and self.think_time_s:
            raise ValueError("think_time_s goes with users; arrivals at a rate do not wait for answers")
        if self.preset is None and (self.n_input_token is None or self.n_output_token is None):
            raise ValueError("give n_input_token and n_output_token, or a preset such as chat")
        return self

    def demand(self, limits: tuple[Limit, ...]) -> Demand:
        """Return the demand; what is given counts before the preset.

        Raises
        ------
        UnknownNameError
            If there is no such preset.
        """
        shape: dict[str, Any] = {}
        if self.preset is not None:
            preset = find_preset(self.preset, "workload.preset")
            names = ("n_input_token", "n_output_token", "length_variation", "prefix_cache_ratio")
            shape = {name: getattr(preset, name) for name in names}
        if self.n_input_token is not None:
            lengths = _lengths(self.n_input_token)
            shape |= {"n_input_token": lengths.mean, "input_variation": lengths.variation}
        if self.n_output_token is not None:
            lengths = _lengths(self.n_output_token)
            shape |= {"n_output_token": lengths.mean, "length_variation": lengths.variation}
        own = {"length_variation": self.length_variation, "prefix_cache_ratio": self.prefix_cache_ratio}
        return Demand(
            **shape | {name: value for name, value in own.items() if value is not None},
            users=self.users,
            request_rate_per_s=self.request_rate_per_s,
            limits=limits,
            think_time_s=self.think_time_s,
            headroom=self.headroom,
            peak_factor=self.peak_factor,
        )


def _lengths(length: float | dict[str, float]) -> Lengths:
    """Return the lengths; of a mean alone the variation is not known."""
    return lengths_from_percentiles(length) if isinstance(length, dict) else Lengths(length, math.nan)


class InventoryItem(Message):
    """Accelerators that are there already, in nodes of one size."""

    accelerator: Text
    count: Annotated[int, Field(ge=1, le=1_000_000, description="Accelerators in all, a multiple of n_per_node.")]
    n_per_node: Annotated[int, Field(ge=1, le=1024)]
    usd_per_h: Annotated[float, Field(ge=0, le=10_000, description="Of one accelerator; 0 if the cost is sunk.")]
    name: Annotated[str, Field(max_length=200, description="Of the nodes, as the answer calls them.")] = ""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"accelerator": "h100-sxm-80gb", "count": 16, "n_per_node": 8, "usd_per_h": 1.2}]
        }
    )

    def stock(self) -> Stock:
        """Return the item for `owned_nodes`."""
        return Stock(self.accelerator, self.count, self.n_per_node, Decimal(str(self.usd_per_h)), self.name)


class PriceOverride(Message):
    """Another price of an instance, for all instances that the names given apply to."""

    price_usd_per_h: Annotated[float, Field(gt=0, lt=100_000, description="Of a whole instance.")]
    provider: Text | None = None
    region: Text | None = None
    instance_type: Text | None = None
    accelerator: Text | None = None
    pricing: Annotated[Text | None, Field(description="on_demand, spot, reserved_1y, reserved_3y")] = None

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"provider": "aws", "accelerator": "h100-sxm-80gb", "price_usd_per_h": 31.5}]}
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_dump(exclude={"price_usd_per_h"}, exclude_none=True):
            raise ValueError("name the provider, region, instance_type, accelerator or pricing that the price is for")
        return self

    def change(self) -> PriceChange:
        """Return the override for `repriced`."""
        names = ("provider", "region", "instance_type", "accelerator", "pricing")
        return PriceChange(Decimal(str(self.price_usd_per_h)), **{name: getattr(self, name) or "" for name in names})
