"""Types of requests; generated from the OpenAPI document by `make client`."""

from __future__ import annotations

# ruff: noqa: D101, I001

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class ChallengerRequest(TypedDict):
    version: str


class InventoryItem(TypedDict):
    accelerator: str
    count: int
    n_per_node: int
    usd_per_h: float
    name: NotRequired[str]


class JobConstraintsRequest(TypedDict):
    providers: NotRequired[list[str]]
    regions: NotRequired[list[str]]
    vendors: NotRequired[list[str]]
    accelerators: NotRequired[list[str]]
    pricing: NotRequired[list[str]]
    max_usd_per_h: NotRequired[float | None]
    max_nodes: NotRequired[int]
    inventory: NotRequired[list[InventoryItem]]
    marketplaces: NotRequired[bool]


class MeasurementSelection(TypedDict):
    import_id: NotRequired[str | None]
    campaign: NotRequired[str | None]
    key: NotRequired[str | None]
    target: NotRequired[Literal["inference", "training"] | None]


class ModelConfig(TypedDict):
    name: str
    config: dict[str, Any]


class PredictionRequest(TypedDict):
    rows: list[dict[str, float | int | str | bool | None]]
    models: NotRequired[list[ModelConfig]]
    references: NotRequired[list[dict[str, float | int | str | bool | None]]]
    stack: NotRequired[str | None]
    level: NotRequired[float]


class PriceOverride(TypedDict):
    price_usd_per_h: float
    provider: NotRequired[str | None]
    region: NotRequired[str | None]
    instance_type: NotRequired[str | None]
    accelerator: NotRequired[str | None]
    pricing: NotRequired[str | None]


class PromotionRequest(TypedDict):
    version: str
    target: NotRequired[Literal["inference", "training"]]


class StackRequest(TypedDict):
    name: str
    rows: list[dict[str, float | int | str | bool | None]]
    models: NotRequired[list[ModelConfig]]


class TargetRequest(TypedDict):
    target: NotRequired[Literal["inference", "training"]]


class WorkloadRequest(TypedDict):
    preset: NotRequired[str | None]
    n_input_token: NotRequired[float | dict[str, float] | None]
    n_output_token: NotRequired[float | dict[str, float] | None]
    length_variation: NotRequired[float | None]
    prefix_cache_ratio: NotRequired[float | None]
    users: NotRequired[float | None]
    think_time_s: NotRequired[float | None]
    request_rate_per_s: NotRequired[float | None]
    peak_factor: NotRequired[float]
    headroom: NotRequired[float]


class ConstraintsRequest(TypedDict):
    providers: NotRequired[list[str]]
    regions: NotRequired[list[str]]
    vendors: NotRequired[list[str]]
    accelerators: NotRequired[list[str]]
    pricing: NotRequired[list[str]]
    max_usd_per_h: NotRequired[float | None]
    engine: NotRequired[str]
    engines: NotRequired[list[str]]
    weight_precision: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"] | None]
    weight_precisions: NotRequired[list[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]]]
    kv_precision: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"] | None]
    max_nodes: NotRequired[int]
    speculation: NotRequired[list[Literal["none", "mtp", "eagle", "draft", "ngram"]]]
    n_speculative_token: NotRequired[int | None]
    acceptance_ratio: NotRequired[float | None]
    draft_model: NotRequired[str | None]
    inventory: NotRequired[list[InventoryItem]]
    marketplaces: NotRequired[bool]


class ExplanationRequest(TypedDict):
    rows: list[dict[str, float | int | str | bool | None]]
    models: NotRequired[list[ModelConfig]]
    references: NotRequired[list[dict[str, float | int | str | bool | None]]]
    stack: NotRequired[str | None]
    level: NotRequired[float]


class JobMeasurementsRequest(TypedDict):
    rows: list[dict[str, float | int | str | bool | None]]
    models: NotRequired[list[ModelConfig]]


class JobPredictionRequest(TypedDict):
    rows: list[dict[str, float | int | str | bool | None]]
    models: NotRequired[list[ModelConfig]]
    references: NotRequired[list[dict[str, float | int | str | bool | None]]]
    level: NotRequired[float]


class JobRecommendationRequest(TypedDict):
    model: str | ModelConfig
    method: NotRequired[Literal["pretrain", "full", "lora", "qlora", "adapter"]]
    n_token: float
    n_epoch: NotRequired[float]
    n_token_per_sequence: NotRequired[int]
    n_global_batch_sequence: NotRequired[int | None]
    deadline_h: NotRequired[float | None]
    budget_usd: NotRequired[float | None]
    adapter: NotRequired[Literal["lora-fa", "bottleneck", "prompt-tuning"] | None]
    adapter_rank: NotRequired[int | None]
    adapter_targets: NotRequired[list[Literal["q", "k", "v", "o", "gate", "up", "down"]]]
    compute_precision: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"] | None]
    frameworks: NotRequired[list[Literal["torchtitan", "megatron-lm", "transformers"]]]
    confidence: NotRequired[float]
    constraints: NotRequired[JobConstraintsRequest]
    price_overrides: NotRequired[list[PriceOverride]]
    references: NotRequired[list[dict[str, float | int | str | bool | None]]]
    level: NotRequired[float]
    n_entry: NotRequired[int]
    n_rejection: NotRequired[int]


class MeasurementsRequest(TypedDict):
    rows: list[dict[str, float | int | str | bool | None]]
    models: NotRequired[list[ModelConfig]]


class RecommendationRequest(TypedDict):
    model: str | ModelConfig
    workload: WorkloadRequest
    limits: list[str]
    confidence: NotRequired[float]
    constraints: NotRequired[ConstraintsRequest]
    price_overrides: NotRequired[list[PriceOverride]]
    references: NotRequired[list[dict[str, float | int | str | bool | None]]]
    stack: NotRequired[str | None]
    level: NotRequired[float]
    n_entry: NotRequired[int]
    n_rejection: NotRequired[int]
    levers: NotRequired[bool]
    deployment: NotRequired[Literal["", "vllm", "sglang", "trtllm", "kubernetes", "kserve"]]
