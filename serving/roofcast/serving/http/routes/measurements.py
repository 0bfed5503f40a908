"""``/v1/measurements``: the users' own measurements."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from roofcast.data.importers.json_rows import read_json_rows
from roofcast.serving.app_state.measurement_import import import_rows
from roofcast.serving.http.body import JsonRoute
from roofcast.serving.http.dependencies import State
from roofcast.serving.http.schemas.resources import MeasurementsAdded, MeasurementsRequest
from roofcast.serving.predict.json_rows import rows_from_table
from roofcast.serving.request_fields import Cell

router = APIRouter(tags=["measurements"], route_class=JsonRoute)

OWN_CAMPAIGN = "own"
MAX_OFFSET = 10**9


@router.post("/v1/measurements", status_code=HTTPStatus.CREATED)
def post_measurements(request: MeasurementsRequest, state: State) -> MeasurementsAdded:
    """Store measured rows: all of them, or none. Rows that were stored before are counted, not stored twice.

    A row whose numbers contradict each other is refused, as in files. The default of `campaign` is `own`, that of
    `statistic` the mean.
    """
    rows = read_json_rows(request.rows, OWN_CAMPAIGN)
    added = import_rows(state, rows, [(model.name, model.config) for model in request.models])
    return MeasurementsAdded(n_new=added.n_new, n_known=added.n_known)


@router.get("/v1/measurements")
def list_measurements(
    state: State,
    campaign: Annotated[str | None, Query(max_length=400, pattern=r"^[^\x00]*$")] = None,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[dict[str, Cell]]:
    """List the measurements stored here; those of the package are listed by ``/v1/campaigns``."""
    return rows_from_table(state.store.load(campaign, offset, limit))
