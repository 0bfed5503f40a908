"""``POST /v1/predictions``, one row to very many, and ``POST /v1/explanations``, why they are what they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from roofcast.data.errors import InputError
from roofcast.serving.app_state.app_state import AppState, InService
from roofcast.serving.explain.explanation import explain
from roofcast.serving.http.body import BODY, BulkRoute, JsonRoute, kind_to_answer, refuse_kind
from roofcast.serving.http.bulk.answers import Asked, answers_to_body, answers_to_chunks, has_parquet
from roofcast.serving.http.bulk.chunks import Chunk
from roofcast.serving.http.bulk.media import PATH, Kind, bulk_kind
from roofcast.serving.http.bulk.openapi import BULK_REQUEST, BULK_RESPONSES
from roofcast.serving.http.bulk.streaming import stream
from roofcast.serving.http.dependencies import Bench, Loaded
from roofcast.serving.http.schemas.explanations import ExplanationResponse, ExplanationsResponse
from roofcast.serving.http.schemas.resources import (
    ExplanationRequest,
    PredictionRequest,
    PredictionResponse,
)
from roofcast.serving.http.telemetry.prometheus import count_answers
from roofcast.serving.predict.answers import answer_columns
from roofcast.serving.predict.json_rows import columns, records_of, table
from roofcast.serving.predict.references import references_of
from roofcast.serving.request_fields import Level, Row

DEFAULT_LEVEL: Final[float] = PredictionRequest.model_fields["level"].default

_ROW: Final = TypeAdapter(Row)

router = APIRouter(tags=["predictions"], route_class=JsonRoute)
bulk = APIRouter(route_class=BulkRoute)


def _none() -> list[str]:  # pydantic reads the signature at each request, which takes long for `list`
    return []


QueryLevel = Annotated[Level | None, Query(description="Probability of the intervals; goes before a body's.")]
QueryReferences = Annotated[
    list[Annotated[str, Field(max_length=2000)]],
    Query(
        max_length=20,
        default_factory=_none,
        description="Measurements that the predictions are to know, with those of a body; a JSON object each. With "
        "all headers they must fit into 128 KiB.",
    ),
]


@bulk.post(PATH, include_in_schema=False)
async def post_bulk(
    request: Request, bench: Bench, loaded: Loaded, reference: QueryReferences, level: QueryLevel = None
) -> Response:
    """Predict rows in bulk, answered part by part."""
    kind = bulk_kind(request.scope) or Kind.NDJSON
    wanted = kind_to_answer(request, kind)
    if request.headers.get("content-encoding", "identity") != "identity":
        refuse_kind(f"send the body as it is, or as {Kind.PARQUET}, which is small")
    _check_known(kind, wanted)
    asked = await run_in_threadpool(_asked, bench, loaded, level, reference)
    parts = answers_to_body(request.scope[BODY], kind, wanted, asked, bench.settings.max_bulk_row)
    return await stream(parts, wanted, asked.headers)


def _check_known(*kinds: Kind) -> None:
    if Kind.PARQUET in kinds and not has_parquet():
        refuse_kind(f"{Kind.PARQUET} takes pyarrow here: pip install 'roofcast[parquet]'")


def _asked(bench: AppState, loaded: InService, level: float | None, reference: list[str]) -> Asked:
    catalog = bench.catalog
    references = references_of(read_rows(reference), catalog, loaded.bundle.predictor)
    return Asked(loaded, catalog, level or DEFAULT_LEVEL, references)


def read_rows(texts: Iterable[str]) -> list[Row]:
    """Return the rows that stand as JSON in parameters of a query.

    Raises
    ------
    InputError
        If one is no JSON object of numbers and texts.
    """
    try:
        return [_ROW.validate_json(text) for text in texts]
    except ValidationError as error:
        raise InputError(
            "reference", f"must be a JSON object of fields: {error.errors()[0]['msg'].lower()}"
        ) from error


router.include_router(bulk)


@router.post(PATH, openapi_extra=BULK_REQUEST, responses=BULK_RESPONSES, response_model=PredictionResponse)
def post_predictions(
    request: PredictionRequest,
    *,
    http: Request,
    bench: Bench,
    loaded: Loaded,
    reference: QueryReferences,
    level: QueryLevel = None,
) -> Any:
    """Predict TTFT, TPOT and output throughput of each row, with intervals; a bad row gets a status of its own.

    With `references`, each number also comes as it is without them, in fields that end in `_uncalibrated`.

    NDJSON (a row a line) and Parquet (a row a row) take many more rows than JSON, and are answered part by part. The
    answer is in the kind that `Accept` asks for, by default in that of the body.
    """
    wanted = kind_to_answer(http, Kind.JSON)
    _check_known(wanted)
    if len(request.rows) > bench.settings.max_row:
        problem = f"must be at most {bench.settings.max_row}, got {len(request.rows)}; send them in parts"
        raise InputError("rows", problem)
    catalog, _ = bench.with_configs([(model.name, model.config) for model in request.models])
    references = references_of([*request.references, *read_rows(reference)], catalog, loaded.bundle.predictor)
    asked = Asked(loaded, catalog, level or request.level, references)
    if wanted == Kind.JSON:
        questions = columns(request.rows)
        answers = answer_columns(questions, loaded.bundle, catalog, asked.level, references)
        count_answers(answers)
        rows = records_of(questions | answers)
        answer = PredictionResponse(predictor_version=loaded.champion.version, level=asked.level, rows=rows)
        return Response(answer.model_dump_json(), media_type=wanted)  # else checked again, in another thread
    chunk = Chunk(table(request.rows), "", range(1, len(request.rows) + 1))
    body = b"".join(answers_to_chunks(iter([chunk]), wanted, asked))
    return Response(body, media_type=wanted, headers=asked.headers)


@router.post("/v1/explanations")
def post_explanations(request: ExplanationRequest, bench: Bench, loaded: Loaded) -> ExplanationsResponse:
    """Tell of each row where its time goes, what bounds it, what fits, and what moved its prediction."""
    catalog, _ = bench.with_configs([(model.name, model.config) for model in request.models])
    references = references_of(request.references, catalog, loaded.bundle.predictor)
    explanation = explain(table(request.rows), catalog, loaded.bundle, level=request.level, references=references)
    rows = [ExplanationResponse.model_validate(explanation.to_json(i)) for i in range(len(request.rows))]
    return ExplanationsResponse(predictor_version=loaded.champion.version, rows=rows)
