"""``/v1/measurements``: what users measured themselves."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from roofcast.data.importers.json_rows import read_json_rows
from roofcast.serving.http.body import JsonRoute
from roofcast.serving.http.dependencies import Bench
from roofcast.serving.http.schemas.resources import MeasurementsAdded, MeasurementsRequest
from roofcast.serving.predict.json_rows import records
from roofcast.serving.request_fields import Cell

router = APIRouter(tags=["measurements"], route_class=JsonRoute)

OWN_CAMPAIGN = "own"
MAX_OFFSET = 10**9


@router.post("/v1/measurements", status_code=HTTPStatus.CREATED)
def post_measurements(request: MeasurementsRequest, bench: Bench) -> MeasurementsAdded:
    """Keep measured rows: all of them, or none. Rows that are known already are counted and not kept twice.

    A row whose numbers contradict each other is refused, as it is of a file. One without `campaign` is kept under the
    campaign `own`; one without `statistic` speaks of means.
    """
    rows = read_json_rows(request.rows, OWN_CAMPAIGN)
    n_new, n_known = bench.add_measurements(rows, [(model.name, model.config) for model in request.models])
    return MeasurementsAdded(n_new=n_new, n_known=n_known)


@router.get("/v1/measurements")
def list_measurements(
    bench: Bench,
    campaign: Annotated[str | None, Query(max_length=400, pattern=r"^[^\x00]*$")] = None,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[dict[str, Cell]]:
    """List the measurements kept here; those that come with the package stand under ``/v1/campaigns``."""
    return records(bench.store.load(campaign, offset, limit))
