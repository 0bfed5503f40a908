"""Response models of explanations."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from roofcast.data.specs import AcceleratorSpec
from roofcast.serving.predict.column_meanings import describe_column
from roofcast.serving.request_fields import StackResponse, Value
from roofcast.training.explain.measured_points import Support


class IntervalResponse(BaseModel):
    """A predicted value with its interval, in the metric's SI unit."""

    value: float
    low: float
    high: float


class NearMeasurement(BaseModel):
    """A training measurement near the row: its error correlation with the row, and the columns that differ."""

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
    stack: str
    campaign: str
    date: str
    measured: float
    correlation: float
    differs: list[str]


class MetricReasons(IntervalResponse):
    """A prediction and its factors."""

    uncalibrated: Annotated[IntervalResponse | None, Field(description="Without the references.")]
    contributions: Annotated[
        dict[str, float],
        Field(description="Natural logarithms of the estimate and of its factors; they sum to that of the value."),
    ]
    nearest: list[NearMeasurement]


class MeasuredValues(BaseModel):
    """What an answer rests on, and the newest measurement of the same, as in rows of predictions."""

    support: Annotated[Support | Literal[""], Field(description=describe_column("support"))]
    observed_ttft_s: Annotated[float | None, Field(description=describe_column("observed_ttft_s"))]
    observed_tpot_s: Annotated[float | None, Field(description=describe_column("observed_tpot_s"))]
    observed_output_throughput_token_per_s: Annotated[
        float | None, Field(description=describe_column("observed_output_throughput_token_per_s"))
    ]
    observed_stack: Annotated[str, Field(description=describe_column("observed_stack"))]
    observed_engine_version: Annotated[str, Field(description=describe_column("observed_engine_version"))]
    observed_date: Annotated[str, Field(description=describe_column("observed_date"))]


class PredictionReasons(MeasuredValues):
    """Predictions of a row, or the reason why it has none."""

    status: Literal["ok", "saturated", "does_not_fit"]
    reason: str
    level: float
    outside: Annotated[list[str], Field(description="Columns in which the row is outside the training data.")]
    ttft_s: MetricReasons | None = None
    tpot_s: MetricReasons | None = None
    itl_s: MetricReasons | None = None
    e2e_s: MetricReasons | None = None
    output_throughput_token_per_s: MetricReasons | None = None


class ExplanationResponse(BaseModel):
    """Operators and their bounds, memory, and the prediction with its factors."""

    question: dict[str, Value]
    accelerator: AcceleratorSpec
    estimate: Annotated[dict[str, float | None], Field(description="Null where the estimate is infinite.")]
    is_saturated: bool
    remarks: list[str]
    assumed: Annotated[list[str], Field(description="What is blank and assumed, as column=value.")]
    bounds: Annotated[dict[str, dict[str, float]], Field(description="Share of each latency by its bound.")]
    bottleneck: Annotated[str, Field(description="Bound of most of the time of a request.")]
    operators: list[dict[str, Value]]
    memory: dict[str, Value]
    prediction: PredictionReasons


class ExplanationsResponse(BaseModel):
    """One explanation per row."""

    predictor_version: str
    stack: StackResponse | None = None
    rows: list[ExplanationResponse]
