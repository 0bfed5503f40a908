"""Requests and answers about training jobs: the one declaration of each field."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator

from roofcast.data.errors import InputError
from roofcast.data.precision_names import PrecisionName
from roofcast.serving.defaults import DEFAULT_CONFIDENCE, DEFAULT_LEVEL
from roofcast.serving.recommend.answer.parts import AnswerPart, OtherOffer, PricedInstance, Rounded
from roofcast.serving.recommend.api.request import Confidence
from roofcast.serving.recommend.demand.constraints import (
    OfferConstraintsRequest,
    PriceOverride,
)
from roofcast.serving.request_fields import (
    MAX_TOKEN,
    MODEL_FLAG,
    Flag,
    InlineModelList,
    Level,
    Message,
    ModelChoice,
    Row,
    RowValue,
    examples,
)

Method = Literal["pretrain", "full", "lora", "qlora", "adapter"]
Framework = Literal["torchtitan", "megatron-lm", "transformers"]
Adapter = Literal["lora-fa", "bottleneck", "prompt-tuning"]
AdapterTarget = Literal["q", "k", "v", "o", "gate", "up", "down"]

MAX_ROW: Final = 200

EXAMPLE_JOB: Final[dict[str, Any]] = {
    "model": "meta-llama/Llama-3.1-8B",
    "accelerator": "nvidia-h100-sxm-80gb",
    "n_accelerator": 8,
    "method": "full",
    "n_token_per_sequence": 4096,
    "n_global_batch_sequence": 128,
}


JobReferences = Annotated[
    list[Row],
    Field(
        max_length=50,
        description="Own runs that condition the predictions: rows of jobs with `throughput_token_per_s`, of all "
        "accelerators together, or `step_time_s`, `memory_byte_per_accelerator` and its `memory_kind`. One invalid "
        "row refuses all, and so does a rate above the peak or ten times from the estimate.",
    ),
]


class JobPredictionRequest(Message):
    """Rows of training jobs, as `roofcast training predict` reads them, and the models that they bring along."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)
    references: JobReferences = Field(default_factory=list)
    level: Level = DEFAULT_LEVEL

    model_config = examples({"rows": [EXAMPLE_JOB]})


class JobConstraintsRequest(OfferConstraintsRequest):
    """Constraints on the hardware; a field left out does not constrain, except that prices are on demand."""

    max_nodes: Annotated[int, Field(ge=1, le=128), Flag("--max-nodes --nodes")] = 8
    """Most nodes of a run."""


class JobRecommendationRequest(Message):
    """A model, a method, the tokens of a data set, and limits of time and money."""

    model: Annotated[ModelChoice, MODEL_FLAG]
    method: Annotated[Method, Flag()] = "full"
    """pretrain, full, lora, qlora or adapter."""
    n_token: Annotated[float, Field(ge=1, le=1e15), Flag("--n-token --tokens", is_amount=True)]
    """Tokens of the data set."""
    n_epoch: Annotated[float, Field(gt=0, le=10_000), Flag("--n-epoch --epochs")] = 1.0
    """Passes over the data set."""
    n_token_per_sequence: Annotated[int, Field(ge=1, le=MAX_TOKEN), Flag("--n-token-per-sequence --seq-len")] = 2048
    """Tokens of a packed sequence."""
    n_global_batch_sequence: Annotated[
        int | None, Field(ge=1, le=1_000_000), Flag("--n-global-batch-sequence --batch")
    ] = None
    """Sequences of an optimizer step; by default 128, and of pretraining 4 million tokens."""
    deadline_h: Annotated[float | None, Field(gt=0, le=1e6), Flag("--deadline-h --deadline")] = None
    """Most hours of the run."""
    budget_usd: Annotated[float | None, Field(gt=0, le=1e12), Flag("--budget-usd --budget")] = None
    """Most US dollars of the run."""
    adapter: Annotated[Adapter | None, Flag()] = None
    """Variant: `lora-fa` of lora and qlora; `bottleneck` or `prompt-tuning` of adapter."""
    adapter_rank: Annotated[int | None, Field(ge=1, le=4096), Flag("--adapter-rank --rank")] = None
    """Rank of LoRA, 16 by default; width of bottlenecks, 64; virtual tokens of a prompt, 100."""
    adapter_targets: Annotated[list[AdapterTarget], Field(max_length=7), Flag()] = Field(default_factory=list)
    """Projections that adapters change: q, k, v, o, gate, up or down; by default queries and values. With latent
    attention `k` or `v` are both projections that give them."""
    compute_precision: Annotated[PrecisionName | None, Flag()] = None
    """Precision of the products; by default the framework's, BF16 or FP16."""
    frameworks: Annotated[list[Framework], Field(max_length=3), Flag("--framework")] = Field(default_factory=list)
    """torchtitan (FSDP2), megatron-lm, or transformers (PEFT with accelerate). By default transformers for adapter
    methods, and torchtitan and megatron-lm for methods that train all weights."""
    confidence: Annotated[Confidence, Flag()] = DEFAULT_CONFIDENCE
    constraints: JobConstraintsRequest = JobConstraintsRequest()
    price_overrides: Annotated[list[PriceOverride], Field(max_length=200)] = Field(default_factory=list)
    references: JobReferences = Field(default_factory=list)
    level: Annotated[Level, Flag()] = DEFAULT_LEVEL
    n_entry: Annotated[int, Field(ge=1, le=200), Flag("--n-entry --top")] = 10
    """Most entries."""
    n_rejection: Annotated[int, Field(ge=0, le=500)] = 20

    model_config = examples(
        {"model": "meta-llama/Llama-3.1-8B", "method": "qlora", "n_token": 20_000_000, "n_epoch": 3},
        {
            "model": "meta-llama/Llama-3.1-70B",
            "method": "full",
            "n_token": 1_000_000_000,
            "n_token_per_sequence": 4096,
            "deadline_h": 72,
            "budget_usd": 20_000,
            "constraints": {"vendors": ["NVIDIA"], "max_nodes": 16},
        },
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.method in {"pretrain", "full"}:
            for name in ("adapter", "adapter_rank", "adapter_targets"):
                if getattr(self, name):
                    raise InputError("", f"{name} needs a method with adapters, such as lora", (name, "method"))
        elif self.adapter and (self.adapter == "lora-fa") == (self.method == "adapter"):
            methods = "lora or qlora" if self.adapter == "lora-fa" else "adapter"
            problem = f"adapter {self.adapter} is a variant of {methods}, not of {self.method}"
            raise InputError("", problem)
        return self


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
    n_accelerator: int
    """Accelerators that the run takes, of all instances."""
    n_instance: int
    usd_per_h: Rounded
    plan: JobPlanResponse
    hours: Rounded
    cost_usd: Rounded
    p_fits: Rounded
    p_deadline_met: Rounded | None
    """Null without a deadline."""
    p_budget_met: Rounded | None
    """Null without a budget."""
    p_limits_met: Rounded
    """Probability that the run fits and meets deadline and budget."""


class JobEntryResponse(JobRunResponse):
    """The cheapest run of an accelerator, kind of price and market; intervals have the level of the response."""

    rank: int
    hours_interval: JobInterval
    cost_usd_interval: JobInterval
    energy_kwh: JobInterval
    """Of the accelerator boards, without hosts, network and cooling."""
    power_w: Rounded
    """Mean power of all boards."""
    power_share: Rounded
    """Of the boards' design power."""
    step_time_s: JobInterval
    throughput_token_per_s: JobInterval
    mfu_ratio: JobInterval
    peak_memory_byte: JobInterval
    """Of one accelerator, as the device reports it."""
    memory_byte: dict[str, Rounded]
    """Estimated peak of one accelerator by part."""
    memory_capacity_byte: float
    outside: bool
    """Whether the run is far from everything that was measured."""
    launch: dict[str, str]
    """Launch commands by launcher; they name what to set."""
    launch_problems: dict[str, str]
    """Reason by launcher that cannot run the plan."""
    ties_first: bool = False
    """Whether this cost lies within the cost interval of the first entry, and the first's cost within this interval.
    True for the first."""
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
    n_plan: int
    """Plans that were compared."""
    n_hardware: int
    """Kinds and sizes of hardware."""
    n_offer: int
    entries: tuple[JobEntryResponse, ...]
    pareto: tuple[JobRunResponse, ...]
    misses: tuple[JobMissResponse, ...]
    n_miss: int
    defaults: tuple[str, ...]
    """Values of fields that the request leaves out and that move the answer."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
