"""``/v1/measurements``, ``/v1/drift`` and ``/v1/campaigns/...``: stored measurements, and what became of them."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.errors import UnknownNameError
from roofcast.data.importers.posted_rows import read_json_rows
from roofcast.data.measurements.schema import INPUT_COLUMNS, REFERENCE_METRICS
from roofcast.data.measurements.validation import row_ids
from roofcast.serving.app_state.imports.import_report import added_warnings, import_warnings, own_campaign_report
from roofcast.serving.app_state.imports.measurement_import import check_names, import_rows
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.drift.import_drift import compare_import, report_days, report_import
from roofcast.serving.http.access import CALLER, KEY, READ, WRITE
from roofcast.serving.http.guarded_routes import (
    ActiveModel,
    ClaimOfKeys,
    Compare,
    GuardedRoute,
    Parts,
    Viewer,
    origin_of,
)
from roofcast.serving.http.schemas.resources import (
    ImportSummary,
    MeasurementsAdded,
    MeasurementsChanged,
    MeasurementSelection,
    MeasurementsRequest,
    Selector,
)
from roofcast.serving.predict.question_rows import rows_from_table
from roofcast.serving.request_fields import Cell, Level, Value
from roofcast.training.drift.drift_report import MAX_CHANGE, DriftReport

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey
    from roofcast.data.store.measurement_store import Added
    from roofcast.data.store.provenance import Action

router = APIRouter(tags=["measurements"], route_class=GuardedRoute)

DRIFT_PATH: Final = "/v1/drift"


def drift_url(added: Added) -> str | None:
    """Return the path at which an import is compared with the predictor; None if it stored and claimed no row."""
    is_comparable = added.import_id and added.n_new + added.n_claimed
    return f"{DRIFT_PATH}?import_id={added.import_id}" if is_comparable else None


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


@router.get(DRIFT_PATH, dependencies=READ)
def get_drift(
    service: Parts,
    viewer: Viewer,
    *,
    days: Annotated[
        float | None,
        Query(gt=0, le=36_500, description="Of the last so many days by import; `ROOFCAST_DRIFT_DAYS` by default."),
    ] = None,
    import_id: Annotated[Selector | None, Query(description="Rows of one import instead.")] = None,
    level: Annotated[Level, Query(description="Probability of the intervals.")] = DEFAULT_LEVEL,
    max_change: Annotated[
        float, Query(gt=1, le=1e6, description="Median ratio of repeats from which it is drift, however few.")
    ] = MAX_CHANGE,
) -> DriftReport:
    """Compare imported rows with the predictor, and with earlier measurements of the same configurations.

    These are rows that the caller may list. Rows that the predictor has learnt do not judge it. Of many rows a sample
    is compared.
    """
    if import_id is not None:
        return report_import(service.store, service.compared_models, import_id, level, max_change, seen_by=viewer)
    return report_days(
        service.store, service.compared_models, days or service.settings.drift_days, level, max_change, seen_by=viewer
    )


class CampaignReport(BaseModel):
    """Rows of an imported campaign: stored, learnt from, and why not."""

    campaign: str
    n_kept: int
    n_learnable: int
    not_learnt: Annotated[str, Field(description="Rules of `docs/REVIEW_RULES.md`, with the number of rows of each.")]


class CampaignRow(BaseModel):
    """A measurement: its question as `/v1/predictions` reads it, outcomes, and whether the predictor learnt them."""

    question: dict[str, Value]
    measured: dict[str, float]
    is_learnt: bool


class CampaignRows(BaseModel):
    """Measurements of a campaign, evenly spread if there are more than asked for."""

    campaign: str
    n_row: int
    n_learnt: int
    rows: list[CampaignRow]


@router.get("/v1/campaigns/report", dependencies=READ)
def get_report(service: Parts, viewer: Viewer) -> list[CampaignReport]:
    """Report the imported campaigns: rows stored, rows that training uses, and why it skips the others."""
    rows = own_campaign_report(service.store.load(seen_by=viewer, provenance=True), service.catalog)
    return [CampaignReport.model_validate({k: row[k] for k in CampaignReport.model_fields}) for row in rows]


@router.get("/v1/campaigns/{name}/measurements", dependencies=READ)
def list_campaign_rows(
    name: Annotated[str, Path(max_length=400, pattern=r"^[^\x00]+$")],
    service: Parts,
    active: ActiveModel,
    viewer: Viewer,
    limit: Annotated[int, Query(ge=1, le=1000)] = 300,
) -> CampaignRows:
    """List measurements of a shipped or imported campaign; those beyond the limit are skipped evenly."""
    own = () if name in CAMPAIGNS else tuple(service.store.campaigns(viewer))
    if name not in CAMPAIGNS and name not in own:
        raise UnknownNameError("campaign", name, (*CAMPAIGNS, *own))
    table = load_campaigns((name,)) if name in CAMPAIGNS else service.store.load(name, seen_by=viewer)
    learnt = set(active.bundle.row_ids)
    is_learnt = np.array([row_id in learnt for row_id in row_ids(table)])
    index = np.unique(np.linspace(0, len(table) - 1, min(limit, len(table))).astype(int))
    shown = rows_from_table(table.iloc[index])
    rows = [_campaign_row(row, is_learnt=bool(is_learnt[i])) for i, row in zip(index, shown, strict=True)]
    return CampaignRows(campaign=name, n_row=len(table), n_learnt=int(is_learnt.sum()), rows=rows)


def _campaign_row(row: dict[str, Value], *, is_learnt: bool) -> CampaignRow:
    filled = {name: value for name, value in row.items() if value not in {None, ""}}
    return CampaignRow(
        question={name: value for name, value in filled.items() if name in INPUT_COLUMNS},
        measured={name: float(value) for name in REFERENCE_METRICS if isinstance(value := filled.get(name), float)},
        is_learnt=is_learnt,
    )
