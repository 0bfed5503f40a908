"""Predictions of one row or many, explanations, and the next measurements."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec
from roofcast.serving.abandonment import stop_if_abandoned
from roofcast.serving.app_state.catalog.live_catalog import with_own_models
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.composition import Service
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR, Operator
from roofcast.serving.explain.explanation import explain, sweep_question
from roofcast.serving.http.access import READ
from roofcast.serving.http.body import LEVEL_HEADER, PATH, STACK_HEADER, VERSION_HEADER, Kind, bulk_kind
from roofcast.serving.http.bulk.bulk_answers import (
    BULK_REQUEST,
    BULK_RESPONSES,
    answer_body,
    answer_chunk,
    has_parquet,
    stream,
    writer_of,
)
from roofcast.serving.http.bulk.chunks import Chunk
from roofcast.serving.http.guarded_routes import (
    BODY,
    ActiveModel,
    BulkRoute,
    GuardedRoute,
    Owner,
    Parts,
    ShadowQueue,
    response_kind,
)
from roofcast.serving.http.problem_details import RefusedError
from roofcast.serving.http.schemas.resources import (
    ExplanationRequest,
    PredictionRequest,
    PredictionResponse,
)
from roofcast.serving.predict.next_measurements import NextMeasurementsRequest, NextMeasurementsResponse, measure_next
from roofcast.serving.predict.question_rows import columns_from_rows, table_from_rows
from roofcast.serving.predict.reference_rows import read_references
from roofcast.serving.predict.row_answers import PredictOptions, describe_column
from roofcast.serving.request_fields import Level, ModelConfig, OperatorName, Row, StackName, StackResponse, Value
from roofcast.serving.stacks.stack_choice import StackUsed
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


_ROW: Final = TypeAdapter(Row)

_HEADER_SAFE: Final = " /:;,=.'()"
"""Characters of a header that are not percent-encoded, besides letters and digits."""

router = APIRouter(tags=["predictions"], route_class=GuardedRoute)
bulk = APIRouter(route_class=BulkRoute)


def _empty_list() -> list[str]:  # pydantic inspects the signature in each request, which is slow for `list`
    return []


QueryLevel = Annotated[Level | None, Query(description="Probability of the intervals; overrides the body's.")]
QueryReferences = Annotated[
    list[Annotated[str, Field(max_length=2000)]],
    Query(
        max_length=20,
        default_factory=_empty_list,
        description="Reference measurements, in addition to those of the body; one JSON object each. The address "
        "must fit into 64 KiB.",
    ),
]


QueryStack = Annotated[
    StackName, Query(description="Name of a stack profile or measured stack; overrides the body's.")
]


QueryOperator = Annotated[OperatorName | None, Query(description="Overrides the body's operator.")]


@bulk.post(PATH, dependencies=READ, include_in_schema=False)
async def post_bulk(
    request: Request,
    *,
    service: Parts,
    active: ActiveModel,
    owner: Owner,
    reference: QueryReferences,
    level: QueryLevel = None,
    stack: QueryStack = None,
    operator: QueryOperator = None,
) -> Response:
    """Predict the rows of an NDJSON or Parquet body, chunk by chunk."""
    kind = bulk_kind(request.scope) or Kind.NDJSON
    accepted = response_kind(request, kind)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RefusedError(
            "unsupported-media-type", f"send the body without content-encoding, or as {Kind.PARQUET}, which is small"
        )
    _check_parquet(kind, accepted)
    own = OwnRuns(owner, stack, _parse_references(reference), operator or DEFAULT_OPERATOR)
    options, used = await run_in_threadpool(_options, service, active, level or DEFAULT_LEVEL, [], own)
    version, max_row = active.champion.version, service.settings.max_bulk_row
    parts = answer_body(
        request.scope[BODY], (kind, accepted), options, version, max_row, stack=StackResponse.of(used)
    )
    return await stream(parts, accepted, _headers(active, options.level, used))


class OwnRuns(NamedTuple):
    """What the predictions of a request are about: the stack that it names, if any, references, and the operator."""

    owner: str
    stack: str | None
    references: list[Row]
    operator: Operator


def _options(
    service: Service, active: LoadedModel, level: float, models: list[ModelConfig], own: OwnRuns
) -> tuple[PredictOptions, StackUsed | None]:
    catalog, _ = with_own_models(service.catalog, [(model.name, model.config) for model in models])
    rows = table_from_rows(own.references) if own.references else None
    references = None if rows is None else read_references(rows, catalog, active.bundle.predictor)
    bundle, points, used = service.stacks.choose(
        catalog, active, own.owner, own.stack, references, operator=own.operator
    )
    return PredictOptions(bundle, catalog, level, points), used


def _check_parquet(*kinds: Kind) -> None:
    if Kind.PARQUET in kinds and not has_parquet():
        raise RefusedError(
            "unsupported-media-type", f"{Kind.PARQUET} needs pyarrow here: pip install 'roofcast[parquet]'"
        )


def _headers(active: LoadedModel, level: float, used: StackUsed | None) -> dict[str, str]:
    stack = {STACK_HEADER: quote("; ".join([str(used), *used.notes]), safe=_HEADER_SAFE)} if used else {}
    return {VERSION_HEADER: active.champion.version, LEVEL_HEADER: repr(level), **stack}


def _parse_references(texts: Iterable[str]) -> list[Row]:
    try:
        return [_ROW.validate_json(text) for text in texts]
    except ValidationError as error:
        message = f"must be a JSON object of fields: {error.errors()[0]['msg'].lower()}"
        raise InputError("reference", message) from error


router.include_router(bulk)


@router.post(
    PATH, dependencies=READ, openapi_extra=BULK_REQUEST, responses=BULK_RESPONSES, response_model=PredictionResponse
)
def post_predictions(
    request: PredictionRequest,
    *,
    http: Request,
    service: Parts,
    active: ActiveModel,
    owner: Owner,
    shadow: ShadowQueue,
    reference: QueryReferences,
    level: QueryLevel = None,
    stack: QueryStack = None,
    operator: QueryOperator = None,
) -> Any:
    """Predict TTFT, TPOT and output throughput of each row, with intervals; an invalid row gets its own status.

    With `references` or a stack profile, each number is also given without them, in fields that end in
    `_uncalibrated`.

    NDJSON (one row per line) and Parquet (one row per row) may have many more rows than JSON, and are answered in
    chunks. The media type of the response is chosen by `Accept`; by default it is that of the request.
    """
    accepted = response_kind(http, Kind.JSON)
    _check_parquet(accepted)
    rows, version = request.rows, active.champion.version
    if len(rows) > service.settings.max_row:
        raise InputError("rows", f"must be at most {service.settings.max_row}, got {len(rows)}; send them in parts")
    references = [*request.references, *(_parse_references(reference) if reference else ())]
    own = OwnRuns(owner, stack or request.stack, references, operator or request.operator)
    options, used = _options(service, active, level or request.level, request.models, own)
    chunk = Chunk(columns_from_rows(rows), "", range(1, len(rows) + 1))
    answers = answer_chunk(chunk, options)
    if options.bundle is active.bundle:  # a measured stack has a bundle of its own, the challenger has none
        shadow.offer(chunk.columns, answers, options.catalog, active)
    writer = writer_of(accepted, version, options.level, StackResponse.of(used))
    headers = {} if accepted == Kind.JSON else _headers(active, options.level, used)
    return Response(writer.write(chunk, answers) + writer.end(), media_type=accepted, headers=headers)


@router.post("/v1/explanations", dependencies=READ)
def post_explanations(
    request: ExplanationRequest, service: Parts, active: ActiveModel, owner: Owner
) -> ExplanationsResponse:
    """Explain each row: operators and their bounds, memory, and the factors of its prediction."""
    own = OwnRuns(owner, request.stack, request.references, request.operator)
    options, used = _options(service, active, request.level, request.models, own)
    table = table_from_rows(request.rows)
    parts: Sequence[AcceleratorSpec] = ()
    if request.sweep:
        table, parts = sweep_question(table, options.catalog, request.sweep)
    explanation = explain(
        table, options.catalog, options.bundle, parts=parts, level=options.level, references=options.references
    )
    rows = []
    for i in range(len(table)):
        stop_if_abandoned()
        rows.append(ExplanationResponse.model_validate(explanation.to_json(i)))
    return ExplanationsResponse(predictor_version=active.champion.version, rows=rows, stack=StackResponse.of(used))


@router.post("/v1/next-measurements", dependencies=READ)
def post_next_measurements(
    request: NextMeasurementsRequest, service: Parts, active: ActiveModel
) -> NextMeasurementsResponse:
    """Rank the measurements that would narrow the intervals most, each given the ones before it."""
    return measure_next(request, service.catalog, active)
