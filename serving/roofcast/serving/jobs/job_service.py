"""Training service: from a request to its response, for HTTP and the command line."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, join_errors
from roofcast.data.measurements.job_schema import TRAINING_OUTCOME_COLUMNS, TRAINING_SCHEMA
from roofcast.data.specs import ModelSpec
from roofcast.features.jobs.methods import OTHER_ADAPTERS
from roofcast.features.jobs.plan_enumeration import choose_plans
from roofcast.features.jobs.run_table import FROZEN_METHODS, build_jobs
from roofcast.features.jobs.step.step import mfu_ratio, throughput_token_per_s
from roofcast.features.queries import FloatArray, RowIndex
from roofcast.serving.app_state.catalog.live_catalog import Config, with_own_models
from roofcast.serving.app_state.catalog.user_files import old_price_warnings
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.jobs.job_answer import best_runs, build_entries, build_front, list_misses
from roofcast.serving.jobs.job_messages import (
    JobPredictionRequest,
    JobPredictionResponse,
    JobRecommendationRequest,
    JobRecommendationResponse,
)
from roofcast.serving.jobs.job_predictions import answer_jobs
from roofcast.serving.jobs.rows import (
    JOB_COLUMNS,
    default_batch,
    job_table,
    list_assumptions,
    list_defaults,
    parse_jobs,
)
from roofcast.serving.jobs.search.candidates import JobDemand
from roofcast.serving.jobs.search.job_search import JobSearch, at_level, search
from roofcast.serving.predict.name_remarks import request_remarks
from roofcast.serving.predict.question_rows import columns_from_rows, rows_from_columns
from roofcast.serving.recommend.answer.cautions import region_warnings
from roofcast.serving.recommend.api.recommendation_service import resolve_constraints, resolve_model
from roofcast.serving.recommend.api.request import ConstraintsRequest
from roofcast.serving.recommend.api.request_errors import request_errors
from roofcast.serving.recommend.demand.constraints import override_prices
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_predictor import JobPredictor

OUTCOMES: Final = ("throughput_token_per_s", "step_time_s", "memory_byte_per_accelerator")
REFERENCE_COLUMNS: Final = {
    **JOB_COLUMNS,
    **{name: TRAINING_OUTCOME_COLUMNS[name] for name in OUTCOMES},
    "memory_kind": TRAINING_SCHEMA["memory_kind"],
}
"""Columns of a reference: those of a job, and what was measured; a step time needs length and global batch."""

MAX_RATIO: Final = 10.0
"""Ratio of a reference's rate to the estimate, or inverse, above which its unit counts as wrong: judgement."""

CONTEXT: Final = {
    "status": "ok",
    "campaign": "own",
    "stack": "",
    "date": "",
    "software": "",
    "derived": "",
    "note": "",
}
"""Context columns of own runs, which are of one stack that nobody else measured."""


def condition_on(predictor: JobPredictor, rows: Sequence[Mapping[str, Any]], catalog: Catalog) -> JobPredictor:
    """Return the predictor conditioned on own runs; itself if there are none.

    Raises `InputError` if a row is not a job, lacks its sequence length or an outcome, or has an impossible rate;
    names the row.
    """
    if not rows:
        return predictor
    jobs, problems = parse_jobs(rows, catalog, REFERENCE_COLUMNS, is_measured=True)
    errors = [
        InputError(f"references.{i}.{one.field}".removesuffix("."), one.message)
        for i, problem in enumerate(problems)
        if problem is not None
        for one in (problem, *problem.further)
    ]
    if errors:
        raise join_errors(errors)
    for i, job in enumerate(jobs):
        _check_outcome(f"references.{i}", job)
    table = job_table(jobs, REFERENCE_COLUMNS)
    rate = table["n_global_batch_sequence"] * table["n_token_per_sequence"] / table["step_time_s"]
    known = table["throughput_token_per_s"].fillna(rate)
    _check_rates(table, known.to_numpy(dtype=float), catalog)
    return predictor.with_references(table.assign(throughput_token_per_s=known, **CONTEXT), catalog=catalog)


def _check_rates(table: pd.DataFrame, rate: FloatArray, catalog: Catalog) -> None:
    choice = choose_plans(build_jobs(table, catalog.models, catalog.accelerators))
    ratio = rate / throughput_token_per_s(choice.runs, choice.time)
    mfu = ratio * mfu_ratio(choice.runs, choice.time)
    for i in np.flatnonzero((mfu > 1.0) | (ratio > MAX_RATIO) | (ratio < 1.0 / MAX_RATIO)).tolist():
        name = "step_time_s" if np.isnan(table["throughput_token_per_s"].iloc[i]) else "throughput_token_per_s"
        text = f"{rate[i]:.4g} tokens/s of all accelerators together are {ratio[i]:.3g} times the estimate"
        raise InputError(f"references.{i}.{name}", f"{text}, at {mfu[i]:.3g} of the peak; check the unit")


def _check_outcome(field: str, job: Mapping[str, Any]) -> None:
    if "n_token_per_sequence" not in job:
        raise InputError(f"{field}.n_token_per_sequence", "must be given")
    if not any(name in job for name in OUTCOMES):
        raise InputError(field, f"must state what was measured, one of {', '.join(OUTCOMES)}")
    if "step_time_s" in job and "throughput_token_per_s" not in job and "n_global_batch_sequence" not in job:
        raise InputError(f"{field}.n_global_batch_sequence", "must be given with step_time_s")


CURE: Final = "; where it does not fit, admit more nodes, or try shorter sequences or a method such as qlora"


def answer_training_predictions(
    request: JobPredictionRequest, known: Catalog, active: LoadedModel[JobBundle]
) -> JobPredictionResponse:
    """Return the rows of a request with their answers: see `answer_rows`."""
    configs = [(model.name, model.config) for model in request.models]
    rows = answer_rows(request.rows, configs, request.level, known, active, references=request.references)
    return JobPredictionResponse(predictor_version=active.champion.version, level=request.level, rows=rows)


def answer_rows(
    rows: Sequence[Mapping[str, Any]],
    configs: Iterable[tuple[str, Config]],
    level: float,
    known: Catalog,
    active: LoadedModel[JobBundle],
    *,
    references: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return rows of jobs with their answers, as JSON values.

    Raises `InputError` if a configuration is not a language model's, two have one name, or a reference is invalid;
    `SchemaError` if a column is unknown.
    """
    catalog, _ = with_own_models(known, configs)
    predictor = condition_on(active.bundle.predictor, references, catalog)
    answers = answer_jobs(rows, predictor, catalog, level)
    return rows_from_columns(columns_from_rows(rows) | answers)


def answer_training_recommendation(
    request: JobRecommendationRequest, known: Catalog, active: LoadedModel[JobBundle], today: dt.date
) -> JobRecommendationResponse:
    """Return the response to a request, with warnings such as old prices.

    Raises `InputError` if a configuration, constraint, price or reference is invalid, or nothing is within the
    constraints; `UnknownNameError` if a model, accelerator, provider, region or pricing is unknown; `OutOfRangeError`
    if the level is above what the measurements can guarantee.
    """
    if errors := request_errors(request.model_dump(include={"model", "constraints"}), known, engines=()):
        raise join_errors(errors)
    spec, catalog = resolve_model(request.model, known)
    model = catalog.models[spec.id]
    demand = _demand(request, model)
    market = override_prices(catalog, request.price_overrides, today)
    own = request.constraints
    common = ConstraintsRequest(**own.model_dump(exclude={"max_nodes"}))
    constraints = resolve_constraints(common, market, today, engines=())
    offers = constraints.require_offers(market.offers)
    own_runs = [{**row, "model": row.get("model") or model.id} for row in request.references]
    predictor = condition_on(active.bundle.predictor, own_runs, catalog)
    found = search(
        demand,
        catalog,
        offers,
        predictor,
        max_nodes=own.max_nodes,
        max_usd_per_h=own.max_usd_per_h or math.inf,
        confidence=request.confidence,
    )
    if isinstance(found, dict):
        reasons = "; ".join(f"{name} {reason}" for name, reason in found.items())
        raise InputError("constraints", f"admit no accelerator that trains the job: {reasons[:400]}")
    entries = best_runs(found, request.confidence)[: request.n_entry]
    found = at_level(found, entries, predictor, request.level)
    warnings = request_remarks(request.model, {"accelerator": own.accelerators}, known)
    warnings += region_warnings(own.regions, market.offers, constraints)
    return _response(request, found, entries, today, active.champion.version, more_warnings=warnings)


def _demand(request: JobRecommendationRequest, model: ModelSpec) -> JobDemand:
    n_token = request.n_token_per_sequence
    return JobDemand(
        model=model,
        method=request.method,
        total_token=request.n_token * request.n_epoch,
        n_token=n_token,
        n_batch=request.n_global_batch_sequence or default_batch(request.method, n_token),
        deadline_h=request.deadline_h or math.inf,
        budget_usd=request.budget_usd or math.inf,
        adapter_rank=float(request.adapter_rank or math.nan),
        adapter_targets=" ".join(request.adapter_targets),
        compute_precision=request.compute_precision or "",
        frameworks=tuple(dict.fromkeys(request.frameworks)),
        adapter=request.adapter or "",
    )


def _adapts_latent(demand: JobDemand) -> bool:
    is_lora = demand.method in FROZEN_METHODS and demand.adapter not in OTHER_ADAPTERS
    return is_lora and demand.model.attention == "mla"


def _response(
    request: JobRecommendationRequest,
    found: JobSearch,
    entries: RowIndex,
    today: dt.date,
    version: str,
    *,
    more_warnings: list[str],
) -> JobRecommendationResponse:
    demand = found.demand
    misses = list_misses(found, entries, request.confidence)
    first = [found.offers[k] for k in found.runs.offer[entries[:1]].tolist()]
    warnings = old_price_warnings({"first entry": first}, today)
    if not len(entries):
        warnings.append(f"no hardware runs the job within its limits with probability {request.confidence:g}{CURE}")
    return JobRecommendationResponse(
        model=demand.model.id,
        method=demand.method,
        total_token=demand.total_token,
        n_step=demand.n_step,
        n_token_per_sequence=demand.n_token,
        n_global_batch_sequence=demand.n_batch,
        deadline_h=request.deadline_h,
        budget_usd=request.budget_usd,
        confidence=request.confidence,
        level=request.level,
        predictor_version=version,
        n_plan=found.jobs.n_plan,
        n_hardware=len(found.hardware),
        n_offer=len(found.offers),
        entries=tuple(build_entries(found, entries)),
        pareto=tuple(build_front(found, request.confidence)),
        misses=tuple(misses[: request.n_rejection]),
        n_miss=len(misses),
        defaults=tuple(
            list_defaults(request.model_fields_set, demand.method, demand.n_token, demand.n_batch, demand.adapter)
        ),
        assumptions=tuple(
            list_assumptions(
                demand.method,
                demand.n_batch,
                has_batch=request.n_global_batch_sequence is not None,
                is_latent=_adapts_latent(demand),
            )
        ),
        warnings=(*warnings, *more_warnings),
    )
