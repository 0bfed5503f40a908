"""Responses of training predictions and recommendations over HTTP."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from roofcast.serving.recommend.answer.parts import AnswerPart, OtherOffer, PricedInstance, Rounded
from roofcast.serving.request_fields import RowValue

MissReason = Literal["too_slow", "over_budget", "may_not_fit", "dearer", "too_few_nodes", "does_not_fit", "excluded"]
"""Reasons of misses."""


class JobPredictionResponse(BaseModel):
    """The rows with their answers."""

    predictor_version: str
    level: float
    rows: list[dict[str, RowValue]]


class JobInterval(AnswerPart):
    """A predicted value with its interval."""

    value: Rounded
    low: Rounded
    high: Rounded


class JobPlanResponse(AnswerPart):
    """Framework and plan: `tp`, `pp`, `vp`, `cp`, `dp`, `ep`, sharding of states, micro-batches, recomputation.

    `loss` and `offload`: whether logits are held in chunks, and what the memory of the host holds.
    `dp` counts the replicas, sharded or not, and `n_gradient_accumulation` their micro-batches in a step.
    """

    framework: str
    compute_precision: str
    tp: int
    pp: int
    vp: int
    cp: int
    dp: int
    ep: int
    sharding: str
    recomputation: str
    loss: str
    offload: str
    sequence_parallel: bool
    n_micro_batch_sequence: float
    n_gradient_accumulation: float
    n_global_batch_sequence: float


class JobRunResponse(PricedInstance):
    """A run on rented or owned nodes; cost and time are of the whole run."""

    accelerator: str
    n_accelerator: Annotated[int, Field(description="Accelerators that the run takes, of all instances.")]
    n_instance: int
    usd_per_h: Rounded
    plan: JobPlanResponse
    hours: Rounded
    cost_usd: Rounded
    p_fits: Rounded
    p_deadline_met: Annotated[Rounded | None, Field(description="Null without a deadline.")]
    p_budget_met: Annotated[Rounded | None, Field(description="Null without a budget.")]
    p_limits_met: Annotated[
        Rounded, Field(description="Probability that the run fits and meets deadline and budget.")
    ]


class JobEntryResponse(JobRunResponse):
    """The cheapest run of an accelerator, kind of price and market; intervals have the level of the response."""

    rank: int
    hours_interval: JobInterval
    cost_usd_interval: JobInterval
    energy_kwh: Annotated[
        JobInterval, Field(description="Of the accelerator boards, without hosts, network and cooling.")
    ]
    power_w: Annotated[Rounded, Field(description="Mean power of all boards.")]
    power_share: Annotated[Rounded, Field(description="Of the boards' design power.")]
    step_time_s: JobInterval
    throughput_token_per_s: JobInterval
    mfu_ratio: JobInterval
    peak_memory_byte: Annotated[JobInterval, Field(description="Of one accelerator, as the device reports it.")]
    memory_byte: Annotated[dict[str, Rounded], Field(description="Estimated peak of one accelerator by part.")]
    memory_capacity_byte: float
    outside: Annotated[bool, Field(description="Whether the run is far from everything that was measured.")]
    launch: Annotated[dict[str, str], Field(description="Launch commands by launcher; they name what to set.")]
    launch_problems: Annotated[dict[str, str], Field(description="Reason by launcher that cannot run the plan.")]
    ties_first: Annotated[
        bool,
        Field(
            description="Whether this cost lies within the cost interval of the first entry, and the first's cost "
            "within this interval. True for the first."
        ),
    ] = False
    also_at: tuple[OtherOffer, ...]


class JobMissResponse(AnswerPart):
    """The nearest miss of an accelerator without an entry."""

    accelerator: str
    n_accelerator: int | None
    reason: MissReason
    detail: str
    cost_usd: Rounded | None
    hours: Rounded | None
    p_limits_met: Rounded | None


class JobRecommendationResponse(AnswerPart):
    """Hardware and plan, the least cost first; front of time and cost; near misses, the cheapest first."""

    model: str
    method: str
    total_token: float
    n_step: int
    n_token_per_sequence: int
    n_global_batch_sequence: int
    deadline_h: float | None
    budget_usd: float | None
    confidence: float
    level: float
    predictor_version: str
    n_plan: Annotated[int, Field(description="Plans that were compared.")]
    n_hardware: Annotated[int, Field(description="Kinds and sizes of hardware.")]
    n_offer: int
    entries: tuple[JobEntryResponse, ...]
    pareto: tuple[JobRunResponse, ...]
    misses: tuple[JobMissResponse, ...]
    n_miss: int
    defaults: Annotated[
        tuple[str, ...], Field(description="Values of fields that the request leaves out and that move the answer.")
    ]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
