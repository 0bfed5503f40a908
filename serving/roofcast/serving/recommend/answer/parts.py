"""Parts of a recommendation: the one declaration of each field of its answer, in Python, JSON and OpenAPI."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, PlainSerializer
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import core_schema

from roofcast.data.specs import Offer
from roofcast.serving.recommend.answer.basis import Basis
from roofcast.serving.recommend.demand.constraints import Objective
from roofcast.serving.recommend.search.configurations import Reason, Replica
from roofcast.serving.request_fields import StackResponse
from roofcast.training.explain.measured_points import Support

LeverKind = Literal["precision", "users", "limit", "pricing", "region", "provider"]
"""Kinds of changes that may lower the cost."""

LEAST_CORRELATION: Final = 0.1
"""Correlation of errors below which a measurement is not informative."""

N_DIGIT: Final = 6
"""Significant digits of the floats of an answer."""


def _round(value: float) -> float:
    return float(f"{value:.{N_DIGIT}g}")


def _round_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _round(value) if isinstance(value, float) else value for name, value in row.items()}


Rounded = Annotated[float, PlainSerializer(_round, return_type=float)]
"""A float that is written in `N_DIGIT` significant digits."""

RoundedRow = Annotated[dict[str, Any], PlainSerializer(_round_row, return_type=dict[str, Any])]
T = TypeVar("T")
Internal = Annotated[T, GetPydanticSchema(lambda *_: core_schema.any_schema()), SkipJsonSchema(), Field(exclude=True)]
"""A field that is not part of the JSON answer."""


class AnswerPart(BaseModel):
    """Base of the parts of an answer."""

    model_config = ConfigDict(frozen=True, from_attributes=True, use_attribute_docstrings=True)


class PredictedMetric(AnswerPart):
    """Predicted metric of one replica at its share of the load, in SI units."""

    metric: str
    statistic: str
    value: Rounded
    low: Rounded
    high: Rounded
    limit: Rounded | None
    """The tightest limit. For a floor on the deployment's throughput, the share of one replica; null at a request
    rate, where serving the rate meets the floor."""
    uncalibrated: Rounded | None
    """The value without the references and the stack."""


class ReplicaSpeculation(AnswerPart):
    """Speculative decoding: its kind, tokens per step, and the probability that one is accepted."""

    kind: str
    n_token: int
    chain_acceptance_ratio: Rounded


class ConfiguredReplica(AnswerPart):
    """Configuration of a replica; `dp` is of attention, with the experts over `ep`."""

    replica: Internal[Replica]
    accelerator: str
    engine: str
    weight_precision: str
    weight_bit: float | None
    """Bits of a weight; null for the precision's usual."""
    checkpoint: str | None
    """Repository that is published in that precision; null for the model's own, or for a copy to make."""
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: ReplicaSpeculation | None
    """Null without."""


class PricedInstance(AnswerPart):
    """Priced instance; third parties host those of the market `marketplace`."""

    offer: Internal[Offer]
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: Rounded
    price_as_of: dt.date


class OtherOffer(PricedInstance):
    """Another offer of the same configuration, and the deployment on it."""

    n_instance: int
    cost_usd_per_h: Rounded


class SizedDeployment(ConfiguredReplica, PricedInstance):
    """Replicas of one configuration on instances of one kind."""

    n_replica: int
    n_instance: int
    cost_usd_per_h: Rounded


class FrontPoint(SizedDeployment):
    """Deployment on the Pareto front of cost and median end-to-end latency, at its share of the peak load."""

    e2e_s: Rounded
    p_limits_met: Rounded
    load_per_replica: Rounded


class Lever(SizedDeployment):
    """A change of the question, and the cheapest deployment that was found with it."""

    kind: LeverKind
    change: str
    """In words, such as `FP8 weights`."""
    saving_ratio: Rounded | None
    """Saving over the cost of the first entry; null if there is none."""
    needs_quantised_copy: bool
    warnings: tuple[str, ...]
    """About its instances, as of an entry."""


class FleetPart(SizedDeployment):
    """Instances of one kind in a mixed fleet; each replica carries load in proportion to its capacity."""

    in_flight_per_replica: Rounded
    """Most requests in flight on a replica within the limits; a mean with think time or at a request rate."""
    load_per_replica: Rounded
    """Requests in flight on a replica at its share of the peak load."""
    p_limits_met: Rounded
    """Probability that all limits are met at that load."""
    predictions: tuple[PredictedMetric, ...]
    """In a steady state, as `/v1/predictions` predicts a row without `n_request`; with it, a benchmark run, which
    starts with all requests at once."""
    power_w: Rounded
    """Mean power of the accelerators, without their servers."""
    memory_used_byte: Rounded
    """Of one replica."""
    memory_usable_byte: Rounded
    """Of one replica."""
    bottleneck: str
    """Bound of most of the time of a request, as in `/v1/explanations`."""
    outside: bool
    """Whether the deployment extrapolates."""
    outside_columns: tuple[str, ...]
    support: Support
    """Whether the deployment was `measured` at its load, by its means, is `near` one, or neither, as of a row of
    predictions."""
    assumed: tuple[str, ...] = ()
    """What is not given and assumed, as column=value."""
    warnings: tuple[str, ...]
    """Such as a number of accelerators that few providers have."""


class Entry(FleetPart):
    """Deployment that meets the demand; costs and power are of the deployment, memory is of one replica."""

    rank: int
    users_per_replica: Rounded | None
    """Most users, waiting and thinking, that one replica serves within the limits; null at a request rate."""
    request_rate_per_replica: Rounded
    """Requests completed per second at that load; at a request rate, the most it serves."""
    n_replica: int
    """Peak load / (1 - headroom) / `users_per_replica`, or `request_rate_per_replica` at a request rate, rounded
    up."""
    cost_usd_per_month: Rounded
    batch_h: Rounded | None
    """Hours until a batch is finished; null without a batch."""
    batch_usd: Rounded | None
    """Cost of these hours."""
    cost_usd_per_million_input_token: Rounded
    """From the prompt's share of a request's cost, by the estimated accelerator time of prefill and of decoding.
    Input and output tokens at their prices add up to the cost of a request."""
    cost_usd_per_million_output_token: Rounded
    """From the response's share."""
    cost_usd_per_million_token: Rounded
    """Cost over all tokens, input and output, at the load given, not at the peak; users send as often off the peak
    as at it."""
    p_runs: Rounded | None
    """Probability that a replica fits in memory; null if the predictor has no such model."""
    needs_quantised_copy: bool
    """Whether the engine needs a copy of the checkpoint published in the weight precision."""
    also_at: tuple[OtherOffer, ...]
    """The same configuration at other providers, by rising cost."""
    nearest: Annotated[
        tuple[RoundedRow, ...],
        Field(
            description="The most informative measurements; empty if no error correlates with that of the entry by "
            f"{LEAST_CORRELATION:g} or more."
        ),
    ]
    deployment: str | None = None
    """The command line or manifest requested."""


class Rejection(ConfiguredReplica):
    """Rejected configuration.

    `excess` is the need over the limit, or the cost over that of the cheapest entry; null if far beyond, or if the
    cheapest entry is free. `same_cost` costs as much as the cheapest; `detail` says how the tie was broken.
    """

    reason: Reason
    detail: str
    excess: float | None


class WithoutStack(SizedDeployment):
    """Cheapest deployment without the stack and the references; `predictions` are those with them, at its load."""

    p_limits_met: Rounded
    """With the stack and the references."""
    p_limits_met_without: Rounded
    predictions: tuple[PredictedMetric, ...]


@dataclass(frozen=True, slots=True)
class CalibrationEffect:
    """Cheapest deployment without references and stack, predicted without and with them; None if there is none."""

    without: Entry | None
    calibrated: Entry | None


class CostOfConfidence(AnswerPart):
    """Least cost of meeting the limits with a confidence; null if nothing does."""

    confidence: float
    cost_usd_per_h: Rounded | None


class PeakLoad(AnswerPart):
    """Load at the peak: users who think are not requests in flight."""

    users: float | None
    think_time_s: float
    request_rate_per_s: float | None
    requests_in_flight: Rounded | None
    """On the first entry; null without one, unless users without think time determine it."""
    text: str
    """Such as `300 users, 20 s think time = 41 requests in flight`."""


class AnswerHead(AnswerPart):
    """What a recommendation is about, and what it depends on."""

    id: str
    """Equal for equal requests on the same basis."""
    basis: Basis
    model: str
    load: PeakLoad
    objective: Objective
    """What orders the entries: for the load given, tokens are cheapest where the cost is least."""
    confidence: float
    level: float
    predictor_version: str
    stack: StackResponse | None = None
    stack_effect: str | None = None
    """The answer with the stack, or the references, and without, and why they differ; null without either."""
    without_stack: WithoutStack | None = None
    """Null without a stack and references, and if nothing meets the limits without them."""


class Recommendation(AnswerPart):
    """Entries in the order of the objective, one of each alternative; rejections with the nearest miss first.

    Alternatives differ in accelerator, precision, speculation or pricing. Floats have six significant digits.
    """

    n_configuration: int
    """Configurations searched."""
    n_candidate: int
    """Configurations times load levels."""
    n_offer: int
    entries: tuple[Entry, ...]
    fleet: tuple[FleetPart, ...]
    """A mixed fleet cheaper than the first entry, or that serves what no single kind does; empty if there is none.
    Each part meets the limits with the confidence."""
    levers: tuple[Lever, ...] = ()
    """What would change the cost, by rising cost."""
    runner_up_usd_per_h: Rounded | None
    """Least cost on another accelerator than the first entry's."""
    cost_of_confidence: tuple[CostOfConfidence, ...]
    """The confidence requested and others, without those that the measurements cannot guarantee for these limits."""
    pareto: tuple[FrontPoint, ...]
    n_rejected: int
    rejections: tuple[Rejection, ...]
    families: tuple[Rejection, ...]
    """The nearest miss of each kind of owned nodes, then of each accelerator, without an entry."""
    n_predicted: Internal[int]
    """Rows predicted."""
    warnings: tuple[str, ...] = ()
    """Such as old prices, or limits out of reach."""
    calibration_effect: Internal[CalibrationEffect | None] = None
    """None without references and stack, or if the confidence cannot be guaranteed without them."""


class RecommendationResponse(Recommendation, AnswerHead):
    """Entries by rising cost, one of each alternative; rejections with the nearest miss first.

    Alternatives differ in accelerator, precision, speculation or pricing. Floats have six significant digits.
    """


def deployment_fields(
    replica: Replica, offer: Offer, n_replica: int, n_instance: int, cost_usd_per_h: float
) -> dict[str, Any]:
    """Return the fields of a `SizedDeployment`."""
    size = {"n_replica": n_replica, "n_instance": n_instance, "cost_usd_per_h": cost_usd_per_h}
    return {**offer_fields(offer), **replica_fields(replica), **size}


def offer_fields(offer: Offer) -> dict[str, Any]:
    """Return the fields of a `PricedInstance`."""
    names = PricedInstance.model_fields.keys() - {"offer", "price_as_of"}
    return {"offer": offer, "price_as_of": offer.as_of, **{name: getattr(offer, name) for name in names}}


def replica_fields(replica: Replica) -> dict[str, Any]:
    """Return the fields of a `ConfiguredReplica`."""
    names = ConfiguredReplica.model_fields.keys() - {"replica", "checkpoint"}
    own = {name: getattr(replica, name) for name in names}
    return {"replica": replica, "checkpoint": replica.checkpoint or None, **own}
