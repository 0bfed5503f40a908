"""Requests of training predictions and recommendations: HTTP schemas, and the same from command-line options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from roofcast.data.errors import InputError
from roofcast.data.specs import Precision
from roofcast.serving.jobs.rows import MAX_TOKEN
from roofcast.serving.jobs.search.plan_choice import CONFIDENCE
from roofcast.serving.recommend.api.offer_constraints import Inventory, Marketplaces, OfferConstraintsRequest
from roofcast.serving.recommend.api.request import Confidence
from roofcast.serving.recommend.demand.inventory import PriceOverride
from roofcast.serving.request_fields import DEFAULT_LEVEL, InlineModelList, Level, Message, ModelChoice, Row
from roofcast.serving.validation_errors import validation_error

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

    model_config = ConfigDict(json_schema_extra={"examples": [{"rows": [EXAMPLE_JOB]}]})


class JobConstraintsRequest(OfferConstraintsRequest):
    """Constraints on the hardware; a field left out does not constrain, except that prices are on demand."""

    max_nodes: Annotated[int, Field(ge=1, le=128, description="Most nodes of a run.")] = 8
    inventory: Inventory = Field(default_factory=list)
    marketplaces: Marketplaces = False


class JobRecommendationRequest(Message):
    """A model, a method, the tokens of a data set, and limits of time and money."""

    model: ModelChoice
    method: Method = "full"
    n_token: Annotated[float, Field(ge=1, le=1e15, description="Tokens of the data set.")]
    n_epoch: Annotated[float, Field(gt=0, le=10_000, description="Passes over the data set.")] = 1.0
    n_token_per_sequence: Annotated[int, Field(ge=1, le=MAX_TOKEN, description="Tokens of a packed sequence.")] = 2048
    n_global_batch_sequence: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            description="Sequences of an optimizer step; by default 128, and of pretraining 4 million tokens.",
        ),
    ] = None
    deadline_h: Annotated[float | None, Field(gt=0, le=1e6, description="Most hours of the run.")] = None
    budget_usd: Annotated[float | None, Field(gt=0, le=1e12, description="Most US dollars of the run.")] = None
    adapter: Annotated[
        Adapter | None,
        Field(description="Variant: `lora-fa` of lora and qlora; `bottleneck` or `prompt-tuning` of adapter."),
    ] = None
    adapter_rank: Annotated[
        int | None,
        Field(
            ge=1,
            le=4096,
            description="Rank of LoRA, 16 by default; width of bottlenecks, 64; virtual tokens of a prompt, 100.",
        ),
    ] = None
    adapter_targets: Annotated[
        list[AdapterTarget],
        Field(
            max_length=7,
            description="Projections that adapters change; by default queries and values. With latent attention `k` "
            "or `v` are both projections that give them.",
        ),
    ] = Field(default_factory=list)
    compute_precision: Annotated[
        Precision | None, Field(description="Of the products; by default the framework's, BF16 or FP16.")
    ] = None
    frameworks: Annotated[
        list[Framework],
        Field(
            max_length=3,
            description="torchtitan (FSDP2), megatron-lm, or transformers (PEFT with accelerate). By default "
            "transformers for adapter methods, and torchtitan and megatron-lm for methods that train all weights.",
        ),
    ] = Field(default_factory=list)
    confidence: Confidence = CONFIDENCE
    constraints: JobConstraintsRequest = JobConstraintsRequest()
    price_overrides: Annotated[list[PriceOverride], Field(max_length=200)] = Field(default_factory=list)
    references: JobReferences = Field(default_factory=list)
    level: Level = 0.8
    n_entry: Annotated[int, Field(ge=1, le=200)] = 10
    n_rejection: Annotated[int, Field(ge=0, le=500)] = 20

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
            ]
        }
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

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Return the request of command-line options by the names of `OPTION_FIELDS`; None and [] mean not given.

        Raises
        ------
        InputError
            If a value is invalid.

        Examples
        --------
        >>> request = JobRecommendationRequest.from_options({"model": "llama-3.1-8b", "n_token": 1e6})
        >>> request.method, request.constraints.max_nodes
        ('full', 8)
        """
        try:
            return cls.model_validate(option_fields(options))
        except ValidationError as error:
            raise validation_error(error) from error


OPTION_FIELDS: Final[Mapping[str, str]] = {
    **{
        name: name
        for name in (
            "model", "method", "n_token", "n_epoch", "n_token_per_sequence", "n_global_batch_sequence", "deadline_h",
            "budget_usd", "adapter", "adapter_rank", "adapter_targets", "compute_precision", "confidence", "level",
            "n_entry", "n_rejection",
        )
    },
    "framework": "frameworks",
    "reference": "references",
    "provider": "constraints.providers",
    "region": "constraints.regions",
    "vendor": "constraints.vendors",
    "accelerator": "constraints.accelerators",
    "pricing": "constraints.pricing",
    "max_usd_per_h": "constraints.max_usd_per_h",
    "max_nodes": "constraints.max_nodes",
    "inventory": "constraints.inventory",
    "marketplaces": "constraints.marketplaces",
}  # fmt: skip
"""Path in the request of each command-line option."""


def option_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request of command-line options, in JSON values that nothing has checked."""
    fields: dict[str, Any] = {"constraints": {}}
    for name, value in options.items():
        if value is not None and value != []:
            part, _, field = OPTION_FIELDS[name].rpartition(".")
            (fields[part] if part else fields)[field] = value
    return fields
