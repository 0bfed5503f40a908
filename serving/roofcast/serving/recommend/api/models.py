"""What a recommendation is over HTTP."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from roofcast.data.specs import Precision
from roofcast.serving.recommend.answer.nearest import LEAST_CORRELATION
from roofcast.serving.recommend.api.demand_request import InventoryItem, PriceOverride, WorkloadRequest
from roofcast.serving.request_fields import QWEN_LIKE_CONFIG, Level, Message, ModelChoice, References, Text

Texts = Annotated[list[Text], Field(max_length=200)]
Deployment = Literal["", "vllm", "sglang", "trtllm", "kubernetes", "kserve"]
Reason = Literal[
    "same_cost", "dearer", "over_budget", "too_few_nodes", "misses_limit", "no_offer", "does_not_fit", "no_engine"
]
"""Those of `roofcast.serving.recommend.answer.recommendation.REASONS`."""

Confidence = Annotated[
    float,
    Field(ge=0.5, lt=1, description="Least probability that all limits are met, for an unseen LLM."),
]


class ConstraintsRequest(Message):
    """Bounds on the choice; what is left out is not bounded, save that prices are on demand."""

    providers: Texts = Field(default_factory=list)
    regions: Texts = Field(default_factory=list)
    vendors: Texts = Field(default_factory=list, description="makers of the accelerators, such as NVIDIA")
    accelerators: Texts = Field(default_factory=list)
    pricing: Texts = Field(
        default_factory=lambda: ["on_demand"], description="on_demand, spot, reserved_1y, reserved_3y"
    )
    max_usd_per_h: Annotated[float, Field(gt=0, le=1e9)] | None = None
    engine: Annotated[str, Field(max_length=40, description="One of `engines`, by itself.")] = ""
    engines: Texts = Field(
        default_factory=list,
        description="vllm, sglang and trtllm where they run, unless others are named; in any case of letters.",
    )
    weight_precision: Precision | None = None
    weight_precisions: list[Precision] = Field(
        default_factory=list, max_length=8, description="The checkpoint's own, unless others are named."
    )
    kv_precision: Precision | None = None
    max_nodes: Annotated[int, Field(ge=1, le=8, description="Most nodes that one replica may span.")] = 1
    inventory: list[InventoryItem] = Field(
        default_factory=list, max_length=50, description="Nodes that are there already."
    )


class RecommendationRequest(Message):
    """A model, a load, limits, and bounds on the choice; a reference without `model` is of this one."""

    model: ModelChoice
    workload: WorkloadRequest
    limits: Annotated[list[Text], Field(min_length=1, max_length=20)]
    confidence: Confidence = 0.8
    constraints: ConstraintsRequest = ConstraintsRequest()
    price_overrides: Annotated[list[PriceOverride], Field(max_length=200)] = Field(default_factory=list)
    references: References = Field(default_factory=list)
    level: Level = 0.8
    n_entry: Annotated[int, Field(ge=1, le=200)] = 10
    n_rejection: Annotated[int, Field(ge=0, le=500)] = 20
    deployment: Annotated[Deployment, Field(description="What to write for each entry, ready to use.")] = ""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": {"name": "my-14b", "config": QWEN_LIKE_CONFIG},
                    "workload": {"n_input_token": 120, "n_output_token": 20, "users": 200},
                    "limits": ["nttft:p50<=100ms", "itl:p50<=50ms"],
                },
                {
                    "model": "meta-llama/Llama-3.1-8B",
                    "workload": {"n_input_token": 500, "n_output_token": 100, "request_rate_per_s": 5},
                    "limits": ["ttft:p95<=2s", "tpot:mean<=80ms"],
                    "confidence": 0.9,
                    "constraints": {"providers": ["aws", "gcp"], "max_usd_per_h": 50, "engines": ["vllm"]},
                },
            ]
        }
    )


class MetricResponse(BaseModel):
    """A predicted metric of one replica under its share of the load, in SI units."""

    metric: str
    statistic: str
    value: float
    low: float
    high: float
    limit: Annotated[
        float | None,
        Field(
            description="The tightest asked for. Of a floor on the deployment's throughput, what a replica must make "
            "at its load; null at a request rate, which meets a floor by being served."
        ),
    ]
    uncalibrated: Annotated[float | None, Field(description="The value without the references given.")]


class ReplicaResponse(BaseModel):
    """One way to run the model; experts lie on `expert_parallel` accelerators, attention's batch on others."""

    accelerator: str
    engine: str
    weight_precision: str
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    expert_parallel: int


class OfferResponse(BaseModel):
    """What is rented."""

    provider: str
    region: str
    instance_type: str
    pricing: str
    price_usd_per_h: float
    price_as_of: dt.date


class EntryResponse(ReplicaResponse, OfferResponse):
    """One way to meet the demand; costs and power are of the whole deployment, memory is of one replica."""

    rank: int
    users_per_replica: Annotated[
        float | None,
        Field(
            description="Users whom one replica serves at most within the limits, those who wait and those who "
            "think; null at a request rate."
        ),
    ]
    in_flight_per_replica: Annotated[
        float, Field(description="Requests in flight on it then: a mean, if users think or requests come at a rate.")
    ]
    request_rate_per_replica: Annotated[
        float,
        Field(description="Requests a second that it finishes then; at a request rate, what it serves at most."),
    ]
    load_per_replica: Annotated[
        float, Field(description="Requests in flight on a replica under its share of the peak.")
    ]
    n_replica: Annotated[
        int,
        Field(
            description="Load at the peak / (1 - headroom) / `users_per_replica`, or at a request rate / "
            "`request_rate_per_replica`, rounded up."
        ),
    ]
    n_instance: int
    cost_usd_per_h: float
    cost_usd_per_month: float
    cost_usd_per_million_input_token: Annotated[
        float,
        Field(
            description="Of the prompts' share of a request's cost, by the time that the estimate has accelerators "
            "spend on prefill and on decoding. With the price of output tokens it adds up to the cost of a request."
        ),
    ]
    cost_usd_per_million_output_token: Annotated[float, Field(description="Likewise of the answers' share.")]
    cost_usd_per_million_token: Annotated[
        float,
        Field(
            description="The bill over all tokens, input and output, of the load given, not of its peak; users are "
            "taken to send as often off the peak as at it."
        ),
    ]
    p_limits_met: Annotated[float, Field(description="Probability that all limits are met under that load.")]
    p_runs: Annotated[
        float | None,
        Field(description="Probability that a replica's memory suffices; null if the predictor cannot tell."),
    ]
    predictions: Annotated[
        list[MetricResponse],
        Field(
            description="Of a service that has run for long. `/v1/predictions` says so too where a row's `n_request` "
            "is 1e9, and without it what a benchmark run shows, which starts with all requests at once."
        ),
    ]
    power_w: Annotated[float, Field(description="Mean draw of the accelerators that serve.")]
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    nearest: Annotated[
        list[dict[str, Any]],
        Field(
            description="The measurements that tell most about it; empty if the errors of none go with its own by a "
            f"correlation of {LEAST_CORRELATION:g} or more."
        ),
    ]
    outside: bool
    outside_columns: list[str]
    deployment: Annotated[str | None, Field(description="The command line or manifest that was asked for.")] = None


class RejectionResponse(ReplicaResponse):
    """A way to run the model that does not do.

    `excess` is what it needs over what it may, or the cost of what is dearer over that of the cheapest entry; null
    if far beyond, or if the cheapest is free. What costs the same as the cheapest, `same_cost`, is not dearer:
    `detail` says what is shown instead.
    """

    reason: Reason
    detail: str
    excess: float | None


class FrontResponse(ReplicaResponse, OfferResponse):
    """A deployment that no other beats in cost and median end-to-end latency together, under the load it carries."""

    cost_usd_per_h: float
    e2e_s: float
    p_limits_met: float
    load_per_replica: float
    n_replica: int
    n_instance: int


class FleetResponse(ReplicaResponse, OfferResponse):
    """Instances of one kind in a mixed deployment; each replica carries its share of what all of them serve."""

    in_flight_per_replica: Annotated[
        float,
        Field(
            description="Most requests in flight on a replica within the limits: a mean, if users think or requests "
            "come at a rate."
        ),
    ]
    load_per_replica: Annotated[
        float, Field(description="Requests in flight on a replica under its share of the peak.")
    ]
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    p_limits_met: Annotated[float, Field(description="Probability that all limits are met under that load.")]
    predictions: list[MetricResponse]
    power_w: float
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    outside: bool
    outside_columns: list[str]


class CertaintyResponse(BaseModel):
    """Least cost of meeting the limits with a probability; null where nothing does."""

    confidence: float
    cost_usd_per_h: float | None


class BasisResponse(BaseModel):
    """What an answer rests on, besides the request."""

    package_version: str
    predictor_version: str
    predictor_sha256: str
    prices_as_of: dt.date | None
    offers_sha256: str
    catalog_sha256: str


class RecommendationResponse(BaseModel):
    """Entries by rising cost, the best for each offer; rejections with the nearest miss first."""

    id: Annotated[str, Field(description="The same for the same request on the same basis.")]
    basis: BasisResponse
    model: str
    confidence: float
    level: float
    predictor_version: str
    n_configuration: Annotated[int, Field(description="Ways to run the model that were looked at.")]
    n_candidate: Annotated[int, Field(description="These at every load.")]
    n_offer: int
    entries: list[EntryResponse]
    fleet: Annotated[
        list[FleetResponse], Field(description="A mixture that costs less than the first entry; empty if none does.")
    ]
    runner_up_usd_per_h: Annotated[
        float | None, Field(description="Least cost on another accelerator than the first entry's.")
    ]
    cost_of_confidence: Annotated[
        list[CertaintyResponse],
        Field(
            description="Probabilities that are more than the measurements can promise for these limits are left out."
        ),
    ]
    pareto: list[FrontResponse]
    n_rejected: int
    rejections: list[RejectionResponse]
    families: Annotated[
        list[RejectionResponse],
        Field(
            description="The nearest miss on owned nodes that are in no entry, then of each accelerator without one."
        ),
    ]
    warnings: Annotated[
        list[str], Field(description="What to know before relying on it: old prices, limits that are out of reach.")
    ] = []
