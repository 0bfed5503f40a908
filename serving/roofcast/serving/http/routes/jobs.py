"""``/v1/training/...``: predictions, recommendations and measurements of training jobs."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from roofcast.data.importers.overrides import parse_overrides
from roofcast.serving.app_state.imports.import_report import added_warnings
from roofcast.serving.http.access import READ, WRITE
from roofcast.serving.http.body import JSON_TYPE, TRAINING_FILES_PATH
from roofcast.serving.http.guarded_routes import (
    BODY,
    ClaimOfKeys,
    Compare,
    DryRun,
    FileRoute,
    GuardedRoute,
    Parts,
    Today,
    Viewer,
    origin_of,
)
from roofcast.serving.http.problem_details import RefusedError
from roofcast.serving.http.routes.measurements.measurement_files import FILE_NAME, Overrides, media_type
from roofcast.serving.http.routes.measurements.measurements import Limit, OfCampaign, Offset
from roofcast.serving.http.schemas.resources import RowsAdded
from roofcast.serving.jobs.imports.run_import import (
    JobImportErrors,
    compare_runs,
    import_runs,
    read_run_file,
)
from roofcast.serving.jobs.job_messages import (
    EXAMPLE_JOB,
    JobPredictionRequest,
    JobPredictionResponse,
    JobRecommendationRequest,
    JobRecommendationResponse,
)
from roofcast.serving.jobs.job_service import answer_training_predictions, answer_training_recommendation
from roofcast.serving.predict.question_rows import rows_from_table
from roofcast.serving.request_fields import Cell, InlineModelList, MeasuredRow, Message, examples

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added

router = APIRouter(tags=["training"], route_class=GuardedRoute)


@router.post("/v1/training/predictions", dependencies=READ, response_model=JobPredictionResponse)
def post_training_predictions(request: JobPredictionRequest, service: Parts) -> Any:
    """Predict step time, throughput, MFU and peak memory of each training job; an invalid row gets its own status.

    Blank settings of the plan are those of the fastest plan that fits.
    """
    answer = answer_training_predictions(request, service.job_catalog, service.job_model)
    return Response(answer.model_dump_json(), media_type=JSON_TYPE)  # FastAPI would validate it again


@router.post("/v1/training/recommendations", dependencies=READ, response_model=JobRecommendationResponse)
def post_training_recommendation(request: JobRecommendationRequest, service: Parts, today: Today) -> Any:
    """Rank hardware and plans for a training job by cost, among those that fit and meet deadline and budget.

    One entry for each accelerator, kind of price and market; the front has the fastest run for each cost.
    """
    answer = answer_training_recommendation(request, service.job_catalog, service.job_model, today)
    return Response(answer.model_dump_json(), media_type=JSON_TYPE)


MAX_ROW: Final = 20_000
"""Largest number of rows of a request."""


class JobMeasurementsRequest(Message):
    """Measured training jobs in the columns of the training table, and the models that they bring along."""

    rows: Annotated[list[MeasuredRow], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)

    model_config = examples(
        {"rows": [EXAMPLE_JOB | {"campaign": "nightly", "framework": "torchtitan", "throughput_token_per_s": 58_000}]}
    )


class JobMeasurementsAdded(RowsAdded):
    """Numbers of the rows of an import, as of ``/v1/measurements``, and the predictor's errors on them."""

    is_kept: Annotated[bool, Field(description="Whether the rows are stored: false for a dry run.")]
    errors: Annotated[
        JobImportErrors | None,
        Field(description="Comparison of up to 200 of the new rows with the predictor; null if there is none."),
    ] = None


files = APIRouter(tags=["training"], route_class=FileRoute)

KINDS: Final = ("text/csv", "application/octet-stream")
"""Media types of tables, and of logs (a form on another site's page could send `text/plain`)."""

_FILE_BODY: Final[dict[str, Any]] = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS}


@router.post("/v1/training/measurements", dependencies=WRITE, status_code=HTTPStatus.CREATED)
def post_training_measurements(
    request: JobMeasurementsRequest,
    *,
    http: Request,
    service: Parts,
    claim_of_keys: ClaimOfKeys,
    compare: Compare = True,
) -> JobMeasurementsAdded:
    """Store measured training jobs: all of them, or none. Rows that were stored before are counted, not stored twice.

    A row whose numbers contradict each other or the peak of the accelerators is refused, with every such row. Rows
    far from what others measured are in quarantine: no training uses them before a confirmation.
    """
    configs = [(model.name, model.config) for model in request.models]
    added = import_runs(
        service.stores, service.catalogs, request.rows, configs, origin=origin_of(http), claim_of_keys=claim_of_keys
    )
    return _answer(added, _compare(service, added) if compare else None)


@files.post(
    TRAINING_FILES_PATH,
    dependencies=WRITE,
    status_code=HTTPStatus.CREATED,
    responses={
        HTTPStatus.OK: {"model": JobMeasurementsAdded, "description": "Counts of a dry run; nothing is stored."}
    },
    openapi_extra={"requestBody": {"required": True, "content": _FILE_BODY}},
)
def post_training_file(
    request: Request,
    service: Parts,
    *,
    name: Annotated[str, Query(pattern=FILE_NAME, description="File name, for messages.")] = "upload",
    campaign: Annotated[
        str | None, Query(max_length=200, pattern=r"^[^\x00]+$", description="Campaign of rows without one.")
    ] = None,
    set_: Overrides = None,
    dry_run: DryRun,
    claim_of_keys: ClaimOfKeys,
    compare: Compare = True,
) -> JobMeasurementsAdded:
    """Import a CSV file of measured training jobs, or a log of torchtitan or Megatron-LM, as `training import` does.

    All rows of a file are stored, or none. A log is one job.
    """
    if media_type(request) not in KINDS:
        raise RefusedError("unsupported-media-type", f"send a table as {KINDS[0]}, a log as {KINDS[1]}")
    overrides = parse_overrides(set_ or [])
    table = read_run_file(request.scope[BODY].read(), name, overrides, service.job_catalog, MAX_ROW)
    added = import_runs(
        service.stores,
        service.catalogs,
        table.records(),
        source=name,
        lines=table.lines,
        origin=origin_of(request),
        campaign=campaign,
        dry_run=dry_run,
        claim_of_keys=claim_of_keys,
    )
    return _answer(added, _compare(service, added) if compare and not dry_run else None)


def _compare(service: Parts, added: Added) -> JobImportErrors | None:
    return compare_runs(service.store, service.job_catalog, lambda: service.job_model, added)


def _answer(added: Added, errors: JobImportErrors | None) -> JobMeasurementsAdded:
    warnings = list(added_warnings(added, "http"))
    return JobMeasurementsAdded(**asdict(added), warnings=warnings, is_kept=bool(added.import_id), errors=errors)


@router.get("/v1/training/measurements", dependencies=READ)
def list_training_measurements(
    service: Parts, viewer: Viewer, campaign: OfCampaign = None, offset: Offset = 0, limit: Limit = 100
) -> list[dict[str, Cell]]:
    """List the measured training jobs stored here that the caller may list, as ``/v1/measurements`` does.

    `import_id` and `key` tell where a row comes from, `state` whether training may use it (`accepted`, `confirmed`)
    or not (`quarantined`, `withdrawn`), `reason` why not.
    """
    return rows_from_table(service.store.training.load(campaign, offset, limit, provenance=True, seen_by=viewer))
