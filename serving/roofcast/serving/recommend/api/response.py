"""Response of a recommendation over HTTP."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, Field

from roofcast.serving.recommend.answer.nearest import LEAST_CORRELATION
from roofcast.serving.recommend.answer.parts import (
    CalibrationEffect,
    Elsewhere,
    Entry,
    FrontPoint,
    Lever,
    PredictedMetric,
)
from roofcast.serving.recommend.api.cautions import offer_warnings
from roofcast.serving.recommend.search.replica import Rejection, Replica
from roofcast.serving.request_fields import StackResponse

Reason = Literal[
    "same_cost", "dearer", "over_budget", "too_few_nodes", "misses_limit", "no_offer", "does_not_fit", "no_engine"
]
"""Those of `roofcast.serving.recommend.answer.parts.REASONS`."""

LeverKind = Literal["precision", "users", "limit", "pricing", "region", "provider"]
"""Those of `roofcast.serving.recommend.answer.parts.LEVERS`."""

N_DIGIT: Final = 6
"""Significant digits of the floats of a deployment."""

ResponseT = TypeVar("ResponseT", bound=BaseModel)


class MetricResponse(BaseModel):
    """Predicted metric of one replica at its share of the load, in SI units."""

    metric: str
    statistic: str
    value: float
    low: float
    high: float
    limit: Annotated[
        float | None,
        Field(
            description="The tightest limit. For a floor on the deployment's throughput, the share of one replica; "
            "null at a request rate, where serving the rate meets the floor."
        ),
    ]
    uncalibrated: Annotated[float | None, Field(description="The value without the references and the stack.")]


class SpeculationResponse(BaseModel):
    """Speculative decoding: its kind, tokens per step, and the probability that one is accepted."""

    kind: str
    n_token: int
    acceptance_ratio: float


class ReplicaResponse(BaseModel):
    """Configuration of a replica; `dp` is of attention, with the experts over `ep`."""

    accelerator: str
    engine: str
    weight_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: Annotated[SpeculationResponse | None, Field(description="Null without.")]


class OfferResponse(BaseModel):
    """Priced instance; third parties host those of the market `marketplace`."""

    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: dt.date


class ElsewhereResponse(OfferResponse):
    """Another offer of the same configuration, and the deployment on it."""

    n_instance: int
    cost_usd_per_h: float


class EntryResponse(ReplicaResponse, OfferResponse):
    """Deployment that meets the demand; costs and power are of the deployment, memory is of one replica."""

    rank: int
    users_per_replica: Annotated[
        float | None,
        Field(
            description="Most users, waiting and thinking, that one replica serves within the limits; null at a "
            "request rate."
        ),
    ]
    in_flight_per_replica: Annotated[
        float, Field(description="Requests in flight at that load; a mean with think time or at a request rate.")
    ]
    request_rate_per_replica: Annotated[
        float,
        Field(description="Requests completed per second at that load; at a request rate, the most it serves."),
    ]
    load_per_replica: Annotated[
        float, Field(description="Requests in flight on a replica at its share of the peak load.")
    ]
    n_replica: Annotated[
        int,
        Field(
            description="Peak load / (1 - headroom) / `users_per_replica`, or `request_rate_per_replica` at a "
            "request rate, rounded up."
        ),
    ]
    n_instance: int
    cost_usd_per_h: float
    cost_usd_per_month: float
    cost_usd_per_million_input_token: Annotated[
        float,
        Field(
            description="From the prompt's share of a request's cost, by the estimated accelerator time of prefill "
            "and of decoding. Input and output tokens at their prices add up to the cost of a request."
        ),
    ]
    cost_usd_per_million_output_token: Annotated[float, Field(description="From the response's share.")]
    cost_usd_per_million_token: Annotated[
        float,
        Field(
            description="Cost over all tokens, input and output, at the load given, not at the peak; users send as "
            "often off the peak as at it."
        ),
    ]
    p_limits_met: Annotated[float, Field(description="Probability that all limits are met at that load.")]
    p_runs: Annotated[
        float | None,
        Field(description="Probability that a replica fits in memory; null if the predictor has no such model."),
    ]
    predictions: Annotated[
        list[MetricResponse],
        Field(
            description="In a steady state. `/v1/predictions` predicts the same for a row with `n_request` 1e9, and "
            "without it a benchmark run, which starts with all requests at once."
        ),
    ]
    power_w: Annotated[float, Field(description="Mean power of the accelerators.")]
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: Annotated[str, Field(description="Bound of most of the time of a request, as in `/v1/explanations`.")]
    needs_quantised_copy: Annotated[
        bool,
        Field(description="Whether the engine needs a copy of the checkpoint published in the weight precision."),
    ]
    also_at: Annotated[
        list[ElsewhereResponse], Field(description="The same configuration at other providers, by rising cost.")
    ]
    nearest: Annotated[
        list[dict[str, Any]],
        Field(
            description="The most informative measurements; empty if no error correlates with that of the entry by "
            f"{LEAST_CORRELATION:g} or more."
        ),
    ]
    outside: bool
    outside_columns: list[str]
    warnings: Annotated[list[str], Field(description="Such as a number of accelerators that few providers have.")]
    deployment: Annotated[str | None, Field(description="The command line or manifest requested.")] = None


class RejectionResponse(ReplicaResponse):
    """Rejected configuration.

    `excess` is the need over the limit, or the cost over that of the cheapest entry; null if far beyond, or if the
    cheapest entry is free. `same_cost` costs as much as the cheapest; `detail` says how the tie was broken.
    """

    reason: Reason
    detail: str
    excess: float | None

    @classmethod
    def of(cls, rejection: Rejection) -> RejectionResponse:
        """Return a rejection; JSON has no infinity."""
        excess = rejection.excess if math.isfinite(rejection.excess) else None
        fields = {"reason": rejection.reason, "detail": rejection.detail, "excess": excess}
        return cls.model_validate(_replica_fields(rejection.replica) | fields)


class FrontResponse(ReplicaResponse, OfferResponse):
    """Deployment on the Pareto front of cost and median end-to-end latency, at its share of the peak load."""

    cost_usd_per_h: float
    e2e_s: float
    p_limits_met: float
    load_per_replica: float
    n_replica: int
    n_instance: int


class FleetResponse(ReplicaResponse, OfferResponse):
    """Instances of one kind in a mixed fleet; each replica carries load in proportion to its capacity."""

    in_flight_per_replica: Annotated[
        float,
        Field(
            description="Most requests in flight on a replica within the limits; a mean with think time or at a "
            "request rate."
        ),
    ]
    load_per_replica: Annotated[
        float, Field(description="Requests in flight on a replica at its share of the peak load.")
    ]
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    p_limits_met: Annotated[float, Field(description="Probability that all limits are met at that load.")]
    predictions: list[MetricResponse]
    power_w: float
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    outside: bool
    outside_columns: list[str]
    warnings: Annotated[list[str], Field(description="As of an entry.")]


class CertaintyResponse(BaseModel):
    """Least cost of meeting the limits with a confidence; null if nothing does."""

    confidence: float
    cost_usd_per_h: float | None


class LoadResponse(BaseModel):
    """Load at the peak: users who think are not requests in flight."""

    users: float | None
    think_time_s: float
    request_rate_per_s: float | None
    requests_in_flight: Annotated[
        float | None,
        Field(description="On the first entry; null without one, unless users without think time determine it."),
    ]
    text: Annotated[str, Field(description="Such as `300 users, 20 s think time = 41 requests in flight`.")]


class LeverResponse(ReplicaResponse, OfferResponse):
    """A change of the question, and the cheapest deployment that was found with it."""

    kind: LeverKind
    change: Annotated[str, Field(description="In words, such as `FP8 weights`.")]
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    saving_ratio: Annotated[
        float | None, Field(description="Saving over the cost of the first entry; null if there is none.")
    ]
    needs_quantised_copy: bool
    warnings: Annotated[list[str], Field(description="About its instances, as of an entry.")]

    @classmethod
    def of(cls, lever: Lever) -> LeverResponse:
        """Return a lever."""
        return deployment_response(cls, lever, warnings=offer_warnings(lever.offer, lever.n_instance))


class WithoutStackResponse(ReplicaResponse, OfferResponse):
    """Cheapest deployment without the stack and the references; `predictions` are those with them, at its load."""

    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    p_limits_met: Annotated[float, Field(description="With the stack and the references.")]
    p_limits_met_without: float
    predictions: list[MetricResponse]

    @classmethod
    def of(cls, effect: CalibrationEffect | None) -> Self | None:
        """Return the deployment of an effect; None if there is none."""
        if effect is None or effect.without is None or effect.calibrated is None:
            return None
        return deployment_response(cls, effect.calibrated, p_limits_met_without=effect.without.p_limits_met)


class BasisResponse(BaseModel):
    """Versions and hashes that the response depends on, besides the request."""

    package_version: str
    predictor_version: str
    predictor_sha256: str
    prices_as_of: dt.date | None
    offers_sha256: str
    catalog_sha256: str


class RecommendationResponse(BaseModel):
    """Entries by rising cost, one of each alternative; rejections with the nearest miss first.

    Alternatives differ in accelerator, precision, speculation or pricing. Floats have six significant digits.
    """

    id: Annotated[str, Field(description="Equal for equal requests on the same basis.")]
    basis: BasisResponse
    model: str
    load: LoadResponse
    confidence: float
    level: float
    predictor_version: str
    stack: StackResponse | None = None
    stack_effect: Annotated[
        str | None,
        Field(
            description="The answer with the stack, or the references, and without, and why they differ; null "
            "without either."
        ),
    ] = None
    without_stack: Annotated[
        WithoutStackResponse | None,
        Field(description="Null without a stack and references, and if nothing meets the limits without them."),
    ] = None
    n_configuration: Annotated[int, Field(description="Configurations searched.")]
    n_candidate: Annotated[int, Field(description="Configurations times load levels.")]
    n_offer: int
    entries: list[EntryResponse]
    fleet: Annotated[
        list[FleetResponse], Field(description="A mixed fleet cheaper than the first entry; empty if there is none.")
    ]
    levers: Annotated[list[LeverResponse], Field(description="What would change the cost, by rising cost.")]
    runner_up_usd_per_h: Annotated[
        float | None, Field(description="Least cost on another accelerator than the first entry's.")
    ]
    cost_of_confidence: Annotated[
        list[CertaintyResponse],
        Field(
            description="The confidence requested and others, without those that the measurements cannot guarantee "
            "for these limits."
        ),
    ]
    pareto: list[FrontResponse]
    n_rejected: int
    rejections: list[RejectionResponse]
    families: Annotated[
        list[RejectionResponse],
        Field(
            description="The nearest miss of each kind of owned nodes, then of each accelerator, without an entry."
        ),
    ]
    warnings: Annotated[list[str], Field(description="Such as old prices, or limits out of reach.")] = []


def deployment_response(
    kind: type[ResponseT], deployment: Entry | FrontPoint | Lever | Elsewhere, **more: Any
) -> ResponseT:
    """Return the fields of an entry, a part of a fleet, a point of the front, or the like, that its response has."""
    offer = deployment.offer
    values = {field.name: getattr(deployment, field.name) for field in dataclasses.fields(deployment)}
    if "predictions" in values:
        names = [field.name for field in dataclasses.fields(PredictedMetric)]
        values["predictions"] = [{name: getattr(one, name) for name in names} for one in values["predictions"]]
    if "also_at" in values:
        values["also_at"] = [deployment_response(ElsewhereResponse, one) for one in values["also_at"]]
    fields = {
        "provider": offer.provider,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "pricing": offer.pricing,
        "price_usd_per_h": float(offer.price_usd_per_h),
        "price_as_of": offer.as_of,
        "market": offer.market,
        **(_replica_fields(deployment.replica) if not isinstance(deployment, Elsewhere) else {}),
        **values,
        **more,
    }
    return kind.model_validate({name: rounded(fields[name]) for name in kind.model_fields.keys() & fields})


def rounded(value: Any) -> Any:
    """Return a value with its floats in `N_DIGIT` significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{N_DIGIT}g}")
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return value


def _replica_fields(replica: Replica) -> dict[str, Any]:
    return {
        "accelerator": replica.accelerator,
        "engine": replica.engine,
        "weight_precision": replica.weight_precision,
        "tp": replica.tp,
        "pp": replica.pp,
        "dp": replica.dp,
        "ep": replica.ep,
        "speculation": dataclasses.asdict(replica.speculation) if replica.speculation else None,
    }
