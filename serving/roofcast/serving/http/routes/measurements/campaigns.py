"""``/v1/campaigns/...``: what became of imported rows, and the measurements of a campaign."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.errors import UnknownNameError
from roofcast.data.measurements.schema import INPUT_COLUMNS, REFERENCE_METRICS
from roofcast.data.measurements.validation import row_ids
from roofcast.serving.app_state.imports.import_report import own_campaign_report
from roofcast.serving.http.access import READ
from roofcast.serving.http.dependencies import ActiveModel, Parts, Viewer
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.predict.question_rows import rows_from_table
from roofcast.serving.request_fields import Value


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


router = APIRouter(tags=["measurements"], route_class=GuardedRoute)


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
