"""``/v1/measurements``: what users measured themselves."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from roofcast.data.measurements import validate_measurements
from roofcast.serving.dependencies import Bench
from roofcast.serving.rows import records, table
from roofcast.serving.schemas import Cell, MeasurementsAdded, MeasurementsRequest

router = APIRouter(tags=["measurements"])


@router.post("/v1/measurements", status_code=HTTPStatus.CREATED)
def post_measurements(request: MeasurementsRequest, bench: Bench) -> MeasurementsAdded:
    """Keep measured rows: all of them, or none. Rows that are known already are counted and not kept twice."""
    configs = {model.name: model.config for model in request.models}
    rows = validate_measurements(table(request.rows), "rows", first_line=1)
    n_new, n_known = bench.add_measurements(rows, configs)
    return MeasurementsAdded(n_new=n_new, n_known=n_known)


@router.get("/v1/measurements")
def list_measurements(
    bench: Bench,
    campaign: Annotated[str | None, Query(max_length=400)] = None,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[dict[str, Cell]]:
    """List the measurements kept here; those that come with the package stand under ``/v1/campaigns``."""
    return records(bench.store.load(campaign).iloc[offset : offset + limit])
