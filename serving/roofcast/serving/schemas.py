"""What goes over HTTP: requests and responses, apart from the specs they become."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from roofcast.data.specs import Precision

Text = Annotated[str, Field(min_length=1, max_length=200)]
Texts = Annotated[list[Text], Field(max_length=200)]
Config = dict[str, Any]
Level = Annotated[float, Field(gt=0, lt=1, description="Probability of the intervals, for an unseen LLM.")]
Tokens = Annotated[float, Field(ge=1, le=10_000_000)]


def _check_cell(value: object) -> object:
    if isinstance(value, list | dict):
        raise ValueError("must be a number, a text, true, false or null")
    if isinstance(value, str) and len(value) > 1000:
        raise ValueError("must be at most 1000 characters long")
    return value


Value = float | int | str | bool | None
Cell = Annotated[Value, BeforeValidator(_check_cell)]
Row = dict[Text, Cell]
References = Annotated[
    list[Row],
    Field(
        max_length=200,
        description="Measurements that the predictions are to know: rows of questions with what was measured, in "
        "`ttft_s`, `tpot_s`, `output_throughput_token_per_s`, `itl_s` or `e2e_s`. All are taken, or none.",
    ),
]

QWEN_LIKE_CONFIG: Config = {
    "model_type": "qwen3",
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}


QUESTION: Config = {
    "model": "meta-llama/Llama-3.1-8B",
    "accelerator": "nvidia-a100-pcie-80gb",
    "n_input_token": 120,
    "n_output_token": 20,
    "concurrency": 16,
    "statistic": "p95",
}


class Message(BaseModel):
    """Base of requests: no unknown fields, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ModelConfig(Message):
    """A model that no catalogue knows, by its Hugging Face ``config.json``."""

    name: Text
    config: Config


ModelChoice = Annotated[
    Annotated[Text, Tag("by name")] | Annotated[ModelConfig, Tag("by config")],
    Discriminator(lambda value: "by name" if isinstance(value, str) else "by config"),
]


class WorkloadRequest(Message):
    """Mean lengths of a request, and either `users` in flight or arrivals per second."""

    n_input_token: Tokens
    n_output_token: Tokens
    users: Annotated[float, Field(ge=1, le=1_000_000)] | None = None
    request_rate_per_s: Annotated[float, Field(ge=1e-9, le=1_000_000)] | None = None

    @model_validator(mode="after")
    def _check(self) -> WorkloadRequest:
        if (self.users is None) == (self.request_rate_per_s is None):
            raise ValueError("give either users or request_rate_per_s")
        return self


class ConstraintsRequest(Message):
    """Bounds on the choice; what is left out is not bounded, save that prices are on demand."""

    providers: Texts = []
    regions: Texts = []
    vendors: Annotated[Texts, Field(description="makers of the accelerators, such as NVIDIA")] = []
    accelerators: Texts = []
    pricing: Annotated[Texts, Field(description="on_demand, spot, reserved_1y, reserved_3y")] = ["on_demand"]
    max_usd_per_h: Annotated[float, Field(gt=0, le=1e9)] | None = None
    engine: Annotated[str, Field(max_length=40)] = ""
    weight_precision: Precision | None = None
    kv_precision: Precision | None = None


Deployment = Literal["", "vllm", "sglang", "trtllm", "kubernetes", "kserve"]


class RecommendationRequest(Message):
    """A model, a load, limits on latency, and bounds on the choice; a reference without `model` is of this one."""

    model: ModelChoice
    workload: WorkloadRequest
    limits: Annotated[list[Text], Field(min_length=1, max_length=20)]
    constraints: ConstraintsRequest = ConstraintsRequest()
    references: References = []
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
                    "constraints": {"providers": ["aws", "gcp"], "max_usd_per_h": 50},
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
    limit: float | None
    uncalibrated: Annotated[float | None, Field(description="The value without the references given.")]


class EntryResponse(BaseModel):
    """One way to meet the demand; costs are of the whole deployment."""

    rank: int
    provider: str
    region: str
    instance_type: str
    pricing: str
    price_usd_per_h: float
    price_as_of: dt.date
    accelerator: str
    tensor_parallel: int
    users_per_replica: float
    load_per_replica: float
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    cost_usd_per_month: float
    cost_usd_per_million_output_token: float
    cost_usd_per_million_token: float
    predictions: list[MetricResponse]
    surely_meets_limits: bool
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    outside: bool
    outside_columns: list[str]
    deployment: Annotated[str | None, Field(description="The command line or manifest that was asked for.")] = None


class RejectionResponse(BaseModel):
    """A candidate that does not do; `excess` is what it needs over what it may."""

    accelerator: str
    tensor_parallel: int
    reason: Literal["does_not_fit", "misses_limit", "over_budget"]
    detail: str
    excess: float


class RecommendationResponse(BaseModel):
    """Entries by rising cost; rejections with the nearest miss first."""

    model: str
    engine: str
    weight_precision: str
    level: float
    predictor_version: str
    n_candidate: int
    n_offer: int
    entries: list[EntryResponse]
    n_rejected: int
    rejections: list[RejectionResponse]
    warnings: Annotated[list[str], Field(description="What to know before relying on it, such as old prices.")] = []


class PredictionRequest(Message):
    """Rows of questions, as `roofcast predict` reads them, and the models that only they know."""

    rows: Annotated[list[Row], Field(min_length=1)]
    models: Annotated[list[ModelConfig], Field(max_length=100)] = []
    references: References = []
    level: Level = 0.8

    model_config = ConfigDict(json_schema_extra={"examples": [{"rows": [QUESTION]}]})


class ExplanationRequest(Message):
    """Rows of questions as of a prediction, a few at a time: an explanation is a hundred times as long."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=100)]
    models: Annotated[list[ModelConfig], Field(max_length=100)] = []
    references: References = []
    level: Level = 0.8

    model_config = ConfigDict(json_schema_extra={"examples": [{"rows": [QUESTION]}]})


class PredictionResponse(BaseModel):
    """The rows with their answers."""

    predictor_version: str
    level: float
    rows: list[dict[str, Value]]


class MeasurementsRequest(Message):
    """Measured rows, and the models that no catalogue knows."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=50_000)]
    models: Annotated[list[ModelConfig], Field(max_length=100)] = []

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "rows": [
                        {
                            "campaign": "nightly",
                            "model": "meta-llama/Llama-3.1-8B",
                            "accelerator": "nvidia-a100-pcie-80gb",
                            "n_accelerator": 1,
                            "engine": "vllm",
                            "n_input_token": 120,
                            "n_output_token": 20,
                            "concurrency": 16,
                            "statistic": "p50",
                            "ttft_s": 0.061,
                            "itl_s": 0.0132,
                        }
                    ]
                }
            ]
        }
    )


class MeasurementsAdded(BaseModel):
    """How many rows were new, and how many were known before."""

    n_new: int
    n_known: int


class OwnCampaign(BaseModel):
    """Measurements that were kept here under one name."""

    name: str
    n_row: int
    licence: str = ""
    source: str = "imported here"


class RetrainingResponse(BaseModel):
    """A retraining and what came of it."""

    id: str
    state: Literal["queued", "running", "done", "failed"]
    requested_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    report: dict[str, Any] | None
    error: str


class Check(BaseModel):
    """Whether a part of the service works, and what stands in its way."""

    ok: bool
    detail: str = ""


class ReadinessResponse(BaseModel):
    """Predictions are answered; `degraded` if something else is not."""

    status: Literal["ready", "degraded"]
    predictor_version: str
    checks: dict[str, Check]


class PromotionRequest(Message):
    """A version in the registry."""

    version: Text

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": "1"}]})


class ProblemResponse(BaseModel):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    field: str = ""
    did_you_mean: list[str] = []
    request_id: str = ""
    checks: dict[str, Check] | None = None
