"""Request and response models of HTTP resources."""

import datetime as dt
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, WithJsonSchema

from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.data.store.measurement_store import MAX_REASON
from roofcast.serving.app_state.published_figures import ProtocolFigures
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR
from roofcast.serving.predict.row_answers import MEANINGS, column_schema
from roofcast.serving.request_fields import (
    Config,
    InlineModelList,
    Level,
    MeasuredRow,
    Message,
    OperatorName,
    References,
    Row,
    RowValue,
    StackName,
    StackResponse,
    Text,
    examples,
)
from roofcast.training.drift.drift_report import DriftReport

EXAMPLE_ROW: Final[Config] = {
    "model": "meta-llama/Llama-3.1-8B",
    "accelerator": "nvidia-a100-pcie-80gb",
    "n_input_token": 120,
    "n_output_token": 20,
    "concurrency": 16,
    "statistic": "p95",
}
EXAMPLE_RUN: Final[Config] = {**EXAMPLE_ROW, "n_accelerator": 1, "engine": "vllm"}
"""A question, and what a measurement states besides."""


Selector = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^[^\x00]*$")]


class _RowsRequest(Message):
    rows: Annotated[list[Row], Field(min_length=1)]
    models: InlineModelList = Field(default_factory=list)
    references: References = Field(default_factory=list)
    stack: StackName = None
    operator: OperatorName = DEFAULT_OPERATOR
    level: Level = DEFAULT_LEVEL

    model_config = examples({"rows": [EXAMPLE_ROW]})


class PredictionRequest(_RowsRequest):
    """Rows of prediction input, as `roofcast predict` reads them, and the models that they bring along."""


class ExplanationRequest(_RowsRequest):
    """Rows as of a prediction, but few: an explanation is a hundred times as long."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=100)]
    sweep: Annotated[
        Text | None,
        Field(
            description="Hypothetical hardware for one row, which has an explanation for each step: factors such as "
            "bandwidth=1,1.5,2 (or flops, memory, link, power), or node=N5,N3 or dram=HBM3,HBM4."
        ),
    ] = None


_ANSWERED_ROW: Final = {
    "type": "object",
    "description": "The columns of the question, then those of the answer.",
    "properties": {name: column_schema(name) for name in MEANINGS},
    "additionalProperties": TypeAdapter(RowValue).json_schema(),
}


class PredictionResponse(BaseModel):
    """The rows with their answers."""

    predictor_version: str
    level: float
    stack: StackResponse | None = None
    rows: list[Annotated[dict[str, RowValue], WithJsonSchema(_ANSWERED_ROW)]]


class MeasurementsRequest(Message):
    """Measured rows, and the models that they bring along."""

    rows: Annotated[list[MeasuredRow], Field(min_length=1, max_length=50_000)]
    models: InlineModelList = Field(default_factory=list)

    model_config = examples(
        {"rows": [EXAMPLE_RUN | {"campaign": "nightly", "statistic": "p50", "ttft_s": 0.061, "itl_s": 0.0132}]}
    )


ImportId = Annotated[
    str, Field(description="Selects the new and the claimed rows, to withdraw or confirm them; blank for a dry run.")
]


class RowsAdded(BaseModel):
    """Numbers of the rows of an import, and what is doubtful in them."""

    n_new: Annotated[int, Field(description="Rows that are new, or that another key had stored and withdrawn.")]
    n_known: Annotated[int, Field(description="Rows that were stored before, or that the import repeats.")]
    n_quarantined: Annotated[
        int,
        Field(
            description="New rows far from what others measured: no training uses them before "
            "`POST /v1/measurements/confirmations`, or `roofcast measurements confirm`."
        ),
    ]
    quarantine_reasons: Annotated[
        list[str], Field(description=f"Why rows are in quarantine; up to {MAX_REASON} different reasons.")
    ]
    n_withdrawn: Annotated[
        int,
        Field(
            description="Known rows that were withdrawn and stay so, until `POST /v1/measurements/restorations` or "
            "`roofcast measurements restore`."
        ),
    ]
    n_claimed: Annotated[
        int,
        Field(
            description="Known rows of others that the caller owns too from now on: no withdrawal of others takes "
            "them away."
        ),
    ]
    n_of_key: Annotated[
        dict[str, int],
        Field(
            description="Known rows that API keys own, by key, if an operator imports. They stay the keys', with "
            "their limited weight; with `claim` they are the operator's, and `n_claimed` counts them."
        ),
    ]
    import_id: ImportId
    warnings: Annotated[list[str], Field(description="What is doubtful or teaches nothing, with the cure.")]


class MeasurementsAdded(RowsAdded):
    """Numbers of the rows of an import, and their comparison with the predictor and with earlier measurements."""

    drift_url: Annotated[
        str | None, Field(description="Path of the comparison; null if no row is new or claimed.")
    ] = None
    drift: Annotated[
        DriftReport | None,
        Field(
            description="The comparison of up to 200 rows, with `compare`; null if there is none or no predictor is "
            "in service."
        ),
    ] = None


class MeasurementSelection(Message):
    """Measurements of one import, of one campaign or of one API key."""

    import_id: Selector | None = None
    campaign: Selector | None = None
    key: Selector | None = None
    target: Annotated[
        Target | None,
        Field(
            description="What the measurements are about; both by default. Required where a campaign or a "
            "confirmation matches measurements of both."
        ),
    ] = None

    model_config = examples({"import_id": "9f0c3a5c1d7e4b0f8a2b6c4d5e6f7a8b"})


class MeasurementsChanged(BaseModel):
    """Numbers of selected rows."""

    n_row: Annotated[int, Field(description="Rows that changed; 0 if all of them were in this state before.")]
    n_refused: Annotated[
        int,
        Field(
            description="Rows that stay withdrawn because an operator withdrew them; if no other changed, the answer "
            "is 403."
        ),
    ] = 0


class ImportSummary(BaseModel):
    """Rows of one import: all, those in quarantine that nobody has confirmed, and those withdrawn."""

    import_id: str
    target: Target
    key: str
    added_at: dt.datetime
    n_row: int
    n_quarantined: Annotated[int, Field(description="Rows in quarantine, which nobody has confirmed.")]
    n_withdrawn: int


class FileAdded(MeasurementsAdded):
    """Result of the import of a benchmark file."""

    format: Annotated[str, Field(description="Name of the format, as of `roofcast formats`.")]
    n_row: Annotated[int, Field(description="Rows of the file: one for each statistic of a run.")]
    n_failed_run: Annotated[int, Field(description="Runs without an outcome.")]
    is_kept: Annotated[bool, Field(description="Whether the rows are stored: false for a dry run.")]


class OwnCampaign(BaseModel):
    """Campaign of measurements stored here."""

    name: str
    n_row: int
    licence: str = ""
    source: str = "imported here"


RetrainingState = Literal["queued", "running", "done", "failed", "cancelled"]


class RetrainingResponse(BaseModel):
    """State, progress and report of a retraining."""

    id: str
    target: Target
    state: RetrainingState
    requested_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    report: dict[str, Any] | None
    error: str
    stage: Annotated[str, Field(description="What it computes, or computed last; blank before it starts.")]
    n_step_done: Annotated[int, Field(description="Steps of the stage that are done.")]
    n_step: Annotated[int, Field(description="All steps of the stage; 0 if it has none.")]
    n_interruption: Annotated[int, Field(description="How often its worker ended, so that it was queued again.")]


class RetrainingScheduleResponse(BaseModel):
    """When the worker retrains, if measurements were accepted or withdrawn since the last retraining."""

    retrain_at: Annotated[str, Field(description="Cron expression, in UTC; blank without a schedule.")]
    next_at: dt.datetime | None


class Check(BaseModel):
    """Whether a part of the service works, and the reason if it does not."""

    ok: bool
    detail: str = ""


class ReadinessResponse(BaseModel):
    """The service predicts; it is `degraded` if another part does not work."""

    status: Literal["ready", "degraded"]
    predictor_version: str
    checks: dict[str, Check]


class PredictorResponse(BaseModel):
    """The active predictor.

    `held_out` has its errors by metric on held-out LLM lineages; intervals are supported up to `highest_level`.
    """

    target: Target
    version: str
    sha256: str
    roofcast_version: str
    data_digest: str
    n_row: int
    engines: list[str]
    held_out: dict[str, dict[str, float]]
    highest_level: float


class ScoreboardResponse(BaseModel):
    """Held-out errors of the active predictor, and the figures of the scoreboard by protocol."""

    predictor_version: str
    data_digest: str
    n_row: int
    held_out: dict[str, dict[str, float]]
    protocols: dict[str, ProtocolFigures]


class PromotionRequest(Message):
    """Version of the registry to promote."""

    version: Text
    target: Target = INFERENCE

    model_config = examples({"version": "1"})


class ChallengerRequest(Message):
    """Version of the registry to shadow; predictors of training jobs have no challenger."""

    version: Text

    model_config = examples({"version": "3"})


class TargetRequest(Message):
    """What a predictor is about: inference, or training jobs."""

    target: Target = INFERENCE

    model_config = examples({"target": "training"})


DEFAULT_TARGET: Final = TargetRequest()


class FieldError(BaseModel):
    """A problem of a request in parts: its field, what is wrong, and what the field takes.

    `field` is the path in the request, or the column of line `line` in `source`. `mentions` are other fields that the
    text names. `expected` has all values of a field that takes few, `did_you_mean` those similar to `given`.
    """

    field: str
    problem: str
    given: str | None = None
    expected: list[str] = []
    did_you_mean: list[str] = []
    mentions: list[str] = []
    source: str = ""
    line: int = 0


class ProblemResponse(BaseModel):
    """RFC 9457 problem details.

    `problems` has each problem of a request with several; `detail` is all of them in one text, `errors` has each in
    parts.
    """

    type: str
    title: str
    status: int
    detail: str
    problems: list[str] = []
    errors: list[FieldError] = []
    field: str = ""
    did_you_mean: list[str] = []
    request_id: str = ""
    checks: dict[str, Check] | None = None
