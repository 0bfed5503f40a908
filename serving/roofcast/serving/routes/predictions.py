"""``POST /v1/predictions``, one or many rows, and ``POST /v1/explanations``, why they are what they are."""

from __future__ import annotations

from fastapi import APIRouter

from roofcast.data.errors import InputError
from roofcast.serving.answering import answer
from roofcast.serving.bodies import JsonRoute
from roofcast.serving.dependencies import Bench, Loaded
from roofcast.serving.explaining import explain
from roofcast.serving.metrics import count_answers
from roofcast.serving.references import references_of
from roofcast.serving.rows import records, table
from roofcast.serving.schemas import ExplanationRequest, PredictionRequest, PredictionResponse
from roofcast.serving.schemas_explaining import ExplanationResponse, ExplanationsResponse

router = APIRouter(tags=["predictions"], route_class=JsonRoute)


@router.post("/v1/predictions")
def post_predictions(request: PredictionRequest, bench: Bench, loaded: Loaded) -> PredictionResponse:
    """Predict TTFT, TPOT and output throughput of each row, with intervals; a bad row gets a status of its own.

    With `references`, each number also comes as it is without them, in fields that end in `_uncalibrated`.
    """
    if len(request.rows) > bench.settings.max_row:
        problem = f"must be at most {bench.settings.max_row}, got {len(request.rows)}; send them in parts"
        raise InputError("rows", problem)
    catalog, _ = bench.with_configs([(model.name, model.config) for model in request.models])
    references = references_of(request.references, catalog, loaded.bundle.predictor)
    answers = answer(table(request.rows), loaded.bundle, catalog, request.level, references)
    count_answers(answers)
    return PredictionResponse(predictor_version=loaded.champion.version, level=request.level, rows=records(answers))


@router.post("/v1/explanations")
def post_explanations(request: ExplanationRequest, bench: Bench, loaded: Loaded) -> ExplanationsResponse:
    """Tell of each row where its time goes, what bounds it, what fits, and what moved its prediction."""
    catalog, _ = bench.with_configs([(model.name, model.config) for model in request.models])
    references = references_of(request.references, catalog, loaded.bundle.predictor)
    explanation = explain(table(request.rows), catalog, loaded.bundle, level=request.level, references=references)
    rows = [ExplanationResponse.model_validate(explanation.to_json(i)) for i in range(len(request.rows))]
    return ExplanationsResponse(predictor_version=loaded.champion.version, rows=rows)
