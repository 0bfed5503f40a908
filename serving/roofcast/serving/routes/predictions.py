"""``POST /v1/predictions``: one or many rows."""

from __future__ import annotations

from fastapi import APIRouter

from roofcast.data.errors import InputError
from roofcast.serving.answering import answer
from roofcast.serving.bodies import JsonRoute
from roofcast.serving.dependencies import Bench, Loaded
from roofcast.serving.rows import records, table
from roofcast.serving.schemas import PredictionRequest, PredictionResponse

router = APIRouter(tags=["predictions"], route_class=JsonRoute)


@router.post("/v1/predictions")
def post_predictions(request: PredictionRequest, bench: Bench, loaded: Loaded) -> PredictionResponse:
    """Predict TTFT, TPOT and output throughput of each row, with intervals; a bad row gets a status of its own."""
    if len(request.rows) > bench.settings.max_row:
        problem = f"must be at most {bench.settings.max_row}, got {len(request.rows)}; send them in parts"
        raise InputError("rows", problem)
    catalog, _ = bench.with_configs([(model.name, model.config) for model in request.models])
    answers = answer(table(request.rows), loaded.bundle, catalog, request.level)
    return PredictionResponse(predictor_version=loaded.champion.version, level=request.level, rows=records(answers))
