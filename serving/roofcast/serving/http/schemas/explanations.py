"""What goes over HTTP about explanations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from roofcast.data.specs import AcceleratorSpec
from roofcast.serving.request_fields import Value


class IntervalResponse(BaseModel):
    """A predicted value with its interval, in the metric's SI unit."""

    value: float
    low: float
    high: float


class NearMeasurement(BaseModel):
    """A measurement that tells of the question, how far the two go together, and what is not the same in both."""

    model: str
    accelerator: str
    n_accelerator: float
    engine: str
    engine_version: str
    weight_precision: str
    kv_precision: str
    n_input_token: float
    n_output_token: float
    load: str
    concurrency: float | None
    request_rate: float | None
    statistic: str
    campaign: str
    date: str
    measured: float
    correlation: float
    differs: list[str]


class MetricReasons(IntervalResponse):
    """A prediction and why."""

    uncalibrated: Annotated[IntervalResponse | None, Field(description="Without the references given.")]
    contributions: Annotated[
        dict[str, float],
        Field(description="Natural logarithms that sum to that of the value: the estimate, and factors on it."),
    ]
    nearest: list[NearMeasurement]


class PredictionReasons(BaseModel):
    """What the predictor says of a question, if it has an answer."""

    status: Literal["ok", "does_not_fit", "out_of_range"]
    reason: str
    level: float
    outside: Annotated[list[str], Field(description="Where the question lies beyond what was measured.")]
    ttft_s: MetricReasons | None = None
    tpot_s: MetricReasons | None = None
    output_throughput_token_per_s: MetricReasons | None = None


class ExplanationResponse(BaseModel):
    """Where the time goes, what bounds it, what fits, what is predicted and why."""

    question: dict[str, Value]
    accelerator: AcceleratorSpec
    estimate: Annotated[dict[str, float | None], Field(description="Null where the estimate has no end.")]
    is_saturated: bool
    remarks: list[str]
    bounds: Annotated[dict[str, dict[str, float]], Field(description="Shares of each latency by its bound.")]
    operators: list[dict[str, Value]]
    memory: dict[str, Value]
    prediction: PredictionReasons


class ExplanationsResponse(BaseModel):
    """One explanation a row."""

    predictor_version: str
    rows: list[ExplanationResponse]
