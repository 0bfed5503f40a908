"""``/v1/measurements``: the users' own measurements."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from roofcast.data.importers.posted_rows import read_json_rows
from roofcast.serving.app_state.imports.import_report import added_warnings, import_warnings
from roofcast.serving.app_state.imports.measurement_import import check_names, import_rows
from roofcast.serving.drift.import_drift import compare_import
from roofcast.serving.http.access import CALLER, KEY, READ, WRITE
from roofcast.serving.http.dependencies import ClaimOfKeys, Compare, Parts, Viewer, origin_of
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.http.routes.measurements.drift import drift_url
from roofcast.serving.http.schemas.resources import (
    ImportSummary,
    MeasurementsAdded,
    MeasurementsChanged,
    MeasurementSelection,
    MeasurementsRequest,
)
from roofcast.serving.predict.question_rows import rows_from_table
from roofcast.serving.request_fields import Cell

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey
    from roofcast.data.store.provenance import Action

router = APIRouter(tags=["measurements"], route_class=GuardedRoute)

OWN_CAMPAIGN = "own"

OfCampaign = Annotated[str | None, Query(max_length=400, pattern=r"^[^\x00]*$")]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Limit = Annotated[int, Query(ge=1, le=1000)]
"""Which stored measurements a list shows."""


@router.post("/v1/measurements", dependencies=WRITE, status_code=HTTPStatus.CREATED)
def post_measurements(
    request: MeasurementsRequest,
    *,
    http: Request,
    service: Parts,
    claim_of_keys: ClaimOfKeys,
    compare: Compare = False,
) -> MeasurementsAdded:
    """Store measured rows: all of them, or none. Rows that were stored before are counted, not stored twice.

    A row whose numbers contradict each other is refused, as in files. Rows far from what others measured are in
    quarantine: no training uses them before a confirmation. The default of `campaign` is `own`, that of `statistic`
    the mean. The answer waits for the database alone: `drift_url` of the answer compares the rows.
    """
    models = [(model.name, model.config) for model in request.models]
    rows = read_json_rows(request.rows, OWN_CAMPAIGN, check_names(service.catalogs, models))
    added = import_rows(
        service.stores, service.catalogs, rows, models, origin=origin_of(http), claim_of_keys=claim_of_keys
    )
    report = compare_import(service.store, lambda: service.compared_models, added) if compare else None
    warnings = [*import_warnings(rows), *added_warnings(added, "http")]
    return MeasurementsAdded(**asdict(added), warnings=warnings, drift_url=drift_url(added), drift=report)


@router.get("/v1/measurements", dependencies=READ)
def list_measurements(
    service: Parts, viewer: Viewer, campaign: OfCampaign = None, offset: Offset = 0, limit: Limit = 100
) -> list[dict[str, Cell]]:
    """List the measurements stored here; those of the package are listed by ``/v1/campaigns``.

    A key lists its own rows and those of operators, a key of the scope `admin` all, unless `ROOFCAST_SHARE_ROWS` says
    that everyone lists all.

    `import_id` and `key` tell where a row comes from, `state` whether training may use it (`accepted`, `confirmed`)
    or not (`quarantined`, `withdrawn`), `reason` why not.
    """
    return rows_from_table(service.store.load(campaign, offset, limit, provenance=True, seen_by=viewer))


@router.get("/v1/measurements/imports", dependencies=READ)
def list_imports(service: Parts, viewer: Viewer) -> list[ImportSummary]:
    """List the imports of the rows that the caller may list, the latest first."""
    return [ImportSummary(**summary) for summary in service.store.provenance.imports(viewer)]


@router.post("/v1/measurements/withdrawals", dependencies=WRITE)
def post_withdrawal(
    request: MeasurementSelection, *, http: Request, service: Parts, viewer: Viewer
) -> MeasurementsChanged:
    """Withdraw measurements: they stay listed, and the next retraining does without them.

    A key of the scope `write` withdraws rows that it stored itself; a key of the scope `admin` any.
    """
    return _change("withdrawal", request, http, service, viewer)


@router.post("/v1/measurements/restorations", dependencies=WRITE)
def post_restoration(
    request: MeasurementSelection, *, http: Request, service: Parts, viewer: Viewer
) -> MeasurementsChanged:
    """Undo withdrawals.

    A key of the scope `write` restores what it withdrew itself, a key of the scope `admin` also what an operator did:
    403 where all withdrawn rows are an operator's, `n_refused` counts them where some are.
    """
    return _change("restoration", request, http, service, viewer)


@router.post("/v1/measurements/confirmations", dependencies=WRITE)
def post_confirmation(
    request: MeasurementSelection, *, http: Request, service: Parts, viewer: Viewer
) -> MeasurementsChanged:
    """Confirm that measurements in quarantine are right: the next retraining uses them.

    A key of the scope `write` confirms rows that it stored itself; a key of the scope `admin` any.
    """
    return _change("confirmation", request, http, service, viewer)


def _change(
    action: Action, request: MeasurementSelection, http: Request, service: Parts, seen_by: str | None
) -> MeasurementsChanged:
    key: ApiKey = http.scope[KEY]
    only_of = None if key.may("admin") else key.name
    selection = request.model_dump(exclude_none=True, exclude={"target"})
    changed = service.store.provenance.change(
        action, http.scope[CALLER], selection, only_of, request.target, seen_by=seen_by
    )
    return MeasurementsChanged(n_row=changed.n_row, n_refused=changed.n_refused)
