"""``/v1/measurements``: what users measured themselves."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from roofcast.data.errors import SchemaError
from roofcast.data.importers.run_plausibility import check_plausible_rows
from roofcast.data.measurements.validation import validate_measurements
from roofcast.serving.http.body import JsonRoute
from roofcast.serving.http.dependencies import Bench
from roofcast.serving.http.schemas.resources import MeasurementsAdded, MeasurementsRequest
from roofcast.serving.predict.json_rows import records, table
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
    rows = [_filled(row, line) for line, row in enumerate(request.rows, 1)]
    checked = validate_measurements(table(rows), "rows", first_line=1)
    check_plausible_rows(checked, "rows", first_line=1)
    n_new, n_known = bench.add_measurements(checked, [(model.name, model.config) for model in request.models])
    return MeasurementsAdded(n_new=n_new, n_known=n_known)


def _filled(row: dict[str, Cell], line: int) -> dict[str, Cell]:
    """Return the row with blanks as nulls, which take the schema's defaults; a truth value is no number or text."""
    for name, value in row.items():
        if isinstance(value, bool) and name != "flash_attention":
            raise SchemaError(name, f"must be a number or a text, got {str(value).lower()}", "rows", line)
    given = {name: None if value == "" else value for name, value in row.items()}
    return {**given, "campaign": given.get("campaign") or OWN_CAMPAIGN}


@router.get("/v1/measurements")
def list_measurements(
    bench: Bench,
    campaign: Annotated[str | None, Query(max_length=400, pattern=r"^[^\x00]*$")] = None,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[dict[str, Cell]]:
    """List the measurements kept here; those that come with the package stand under ``/v1/campaigns``."""
    return records(bench.store.load(campaign, offset, limit))
