"""``/v1/measurements/files``: import of a benchmark client's own file."""

from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request

from roofcast.data.importers import read_upload
from roofcast.data.importers.overrides import parse_overrides
from roofcast.data.importers.sources import Source
from roofcast.serving.app_state.imports.import_report import added_warnings, count_failed_runs, import_warnings
from roofcast.serving.app_state.imports.measurement_import import check_names, import_rows
from roofcast.serving.drift.import_drift import compare_import
from roofcast.serving.http.access import WRITE
from roofcast.serving.http.body import FILES_PATH
from roofcast.serving.http.guarded_routes import BODY, ClaimOfKeys, Compare, DryRun, FileRoute, Parts, origin_of
from roofcast.serving.http.problem_details import RefusedError
from roofcast.serving.http.routes.measurements.measurements import drift_url
from roofcast.serving.http.schemas.resources import FileAdded

router = APIRouter(tags=["measurements"], route_class=FileRoute)

AUTO: Final = "auto"

SUFFIXES: Final = {
    "application/json": ".json",
    "application/x-ndjson": ".jsonl",
    "text/csv": ".csv",
    "application/octet-stream": "",
}
"""Suffix of a name without one, by media type. A form on another site's page can send none of these types."""

FILE_NAME: Final = r"^[^/\\\x00-\x1f]{1,200}$"
"""Name that a client gives its file. Messages have it, and suffixes are read from it; no file on disk is named so."""

Overrides = Annotated[
    list[Annotated[str, Query(max_length=400)]] | None,
    Query(alias="set", max_length=100, description="`COLUMN=VALUE` that the file does not hold; repeatable."),
]

_BINARY: Final[dict[str, Any]] = {"schema": {"type": "string", "format": "binary"}}


@router.post(
    FILES_PATH,
    dependencies=WRITE,
    status_code=HTTPStatus.CREATED,
    responses={HTTPStatus.OK: {"model": FileAdded, "description": "Counts of a dry run; nothing is stored."}},
    openapi_extra={"requestBody": {"required": True, "content": dict.fromkeys(SUFFIXES, _BINARY)}},
)
def post_file(
    request: Request,
    service: Parts,
    *,
    format_: Annotated[
        str, Query(alias="format", max_length=40, description="A name of `roofcast formats`; detected by default.")
    ] = AUTO,
    name: Annotated[
        str, Query(pattern=FILE_NAME, description="File name, for messages; its suffix helps to detect the format.")
    ] = "upload",
    campaign: Annotated[
        str | None,
        Query(max_length=200, pattern=r"^[^\x00]+$", description="Campaign; the format's name by default."),
    ] = None,
    set_: Overrides = None,
    dry_run: DryRun,
    claim_of_keys: ClaimOfKeys,
    compare: Compare = False,
) -> FileAdded:
    """Import a file as a benchmark client writes it (GuideLLM, AIPerf, vLLM, ...), as `roofcast import` does.

    The body is the file itself, uncompressed. All of its rows are stored, or none: one error lists all
    wrong values and unknown names. A dry run counts what an import would do, and answers 200. The answer waits for
    the database alone: `drift_url` of the answer compares the rows.
    """
    kind = media_type(request)
    if kind not in SUFFIXES:
        raise RefusedError("unsupported-media-type", f"send the file as {', '.join(SUFFIXES)}")
    overrides = parse_overrides(set_ or [])
    source = Source(name if Path(name).suffix else f"{name}{SUFFIXES[kind]}", request.scope[BODY])
    chosen, table = read_upload(
        None if format_ == AUTO else format_, source, campaign, overrides, names=check_names(service.catalogs)
    )
    added = import_rows(
        service.stores,
        service.catalogs,
        table,
        origin=origin_of(request),
        dry_run=dry_run,
        claim_of_keys=claim_of_keys,
    )
    return FileAdded(
        **asdict(added),
        format=chosen,
        n_row=len(table),
        n_failed_run=count_failed_runs(table),
        warnings=[*import_warnings(table), *added_warnings(added, "http")],
        is_kept=not dry_run,
        drift_url=None if dry_run else drift_url(added),
        drift=compare_import(service.store, lambda: service.compared_models, added)
        if compare and not dry_run
        else None,
    )


def media_type(request: Request) -> str:
    """Return the media type of a request's body, without parameters; empty if it has none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
