"""From a request for a recommendation to its response, for HTTP and the command line alike."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import ModelSpec, Pricing
from roofcast.features.precisions import served_precision
from roofcast.serving.demand import Constraints, Demand
from roofcast.serving.deployment import Question, checkpoint_of, deployment
from roofcast.serving.own_files import staleness_warnings
from roofcast.serving.recommender import Entry, Recommendation, Rejection, recommend
from roofcast.serving.references import references_of
from roofcast.serving.schemas import (
    ConstraintsRequest,
    EntryResponse,
    MetricResponse,
    RecommendationRequest,
    RecommendationResponse,
    RejectionResponse,
)
from roofcast.serving.slo import parse_limit
from roofcast.serving.state import find_model
from roofcast.serving.workbench import InService, Workbench
from roofcast.training.bundle import ModelBundle
from roofcast.training.predictor import References


def answer_recommendation(
    request: RecommendationRequest, bench: Workbench, loaded: InService, today: dt.date
) -> RecommendationResponse:
    """Return the ranking that a request asks for, with a warning if prices in it are old today.

    Raises
    ------
    InputError
        If a limit, a configuration, a bound or a reference cannot be read, or no offer is within the bounds.
    UnknownNameError
        If a model, accelerator, provider, region or kind of price is unknown, or an artefact is asked for that runs
        an engine which is not known how to start.
    OutOfRangeError
        If the level is more than the measurements can promise.
    """
    catalog = bench.catalog
    if isinstance(request.model, str):
        name, model = request.model, catalog.model(request.model)
    else:
        name, model = request.model.name, bench.read_config(request.model.name, request.model.config)
    demand, constraints = demand_of(request), constraints_of(request.constraints, catalog)
    result = recommend(
        loaded.bundle,
        model,
        catalog,
        demand,
        constraints,
        level=request.level,
        n_entry=request.n_entry,
        references=_references_of(request, model, catalog, loaded.bundle),
    )
    warnings = staleness_warnings((entry.offer for entry in result.entries), today)
    response = response_of(result, model, request, loaded, warnings)
    if request.deployment:
        question = Question(model, checkpoint_of(name, model, catalog), catalog.accelerators, demand, constraints)
        _deploy(response, result, request.deployment, question)
    return response


def _references_of(
    request: RecommendationRequest, model: ModelSpec, catalog: Catalog, bundle: ModelBundle
) -> References | None:
    """Return the measurements that came with the request; those without a model are of the one asked about."""
    asked = request.model if isinstance(request.model, str) else model.id
    rows = [{**row, "model": row.get("model") or asked} for row in request.references]
    if not isinstance(request.model, str):
        if find_model(catalog, model.id):  # a name that the catalogue knows means the one asked about here
            catalog = replace(catalog, models={}, model_aliases={}, alias_precisions={})
        catalog = catalog.with_models([model])
    return references_of(rows, catalog, bundle.predictor)


def _deploy(response: RecommendationResponse, result: Recommendation, kind: str, question: Question) -> None:
    """Write what runs each entry into it, or why that cannot be into the warnings."""
    reasons: dict[str, None] = {}
    for shown, entry in zip(response.entries, result.entries, strict=True):
        try:
            shown.deployment = deployment(kind, entry, question)
        except UnknownNameError:
            raise
        except InputError as error:
            reasons[str(error)] = None
    response.warnings.extend(reasons)


def demand_of(request: RecommendationRequest) -> Demand:
    """Return the demand, with limits parsed."""
    workload = request.workload
    return Demand(
        workload.n_input_token,
        workload.n_output_token,
        workload.users,
        workload.request_rate_per_s,
        tuple(parse_limit(text) for text in request.limits),
    )


def constraints_of(request: ConstraintsRequest, catalog: Catalog) -> Constraints:
    """Return the constraints, with every name resolved.

    Raises
    ------
    InputError
        If none of the accelerators asked for is made by the vendors asked for.
    UnknownNameError
        If no offer has such a provider or region, or there is no such vendor, accelerator or kind of price.
    """
    parts = catalog.accelerators.values()
    vendors = _known("constraints.vendors", request.vendors, {part.vendor for part in parts})
    named = {catalog.accelerator(name).id for name in request.accelerators}
    admitted = {
        part.id for part in parts if (not named or part.id in named) and (not vendors or part.vendor in vendors)
    }
    if not admitted:
        raise InputError("constraints.accelerators", "none is made by the vendors asked for; relax one of the two")
    return Constraints(
        providers=_known("constraints.providers", request.providers, {o.provider for o in catalog.offers}),
        regions=_known("constraints.regions", request.regions, {o.region for o in catalog.offers}),
        accelerators=frozenset(admitted),
        pricing=_known("constraints.pricing", request.pricing, get_args(Pricing)),
        max_usd_per_h=request.max_usd_per_h,
        engine=request.engine,
        weight_precision=request.weight_precision or "",
        kv_precision=request.kv_precision or "",
    )


def _known(field: str, names: Iterable[str], known: Iterable[str]) -> frozenset[str]:
    by_key = {name.casefold(): name for name in known}
    for name in names:
        if name.casefold() not in by_key:
            raise UnknownNameError(field, name, by_key.values())
    return frozenset(by_key[name.casefold()] for name in names)


def response_of(
    result: Recommendation, model: ModelSpec, request: RecommendationRequest, loaded: InService, warnings: list[str]
) -> RecommendationResponse:
    """Return a recommendation as it goes over HTTP."""
    return RecommendationResponse(
        model=model.id,
        engine=request.constraints.engine or "any",
        weight_precision=request.constraints.weight_precision or served_precision(model.weight_precision),
        level=request.level,
        predictor_version=loaded.champion.version,
        n_candidate=result.n_candidate,
        n_offer=result.n_offer,
        entries=[_entry(rank, entry) for rank, entry in enumerate(result.entries, start=1)],
        n_rejected=len(result.rejections),
        rejections=[_rejection(rejection) for rejection in result.rejections[: request.n_rejection]],
        warnings=warnings,
    )


def _rejection(rejection: Rejection) -> RejectionResponse:
    return RejectionResponse(
        accelerator=rejection.candidate.accelerator,
        tensor_parallel=rejection.candidate.tp,
        reason=rejection.reason,
        detail=rejection.detail,
        excess=rejection.excess,
    )


def _entry(rank: int, entry: Entry) -> EntryResponse:
    offer = entry.offer
    own = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry) if f.name in EntryResponse.model_fields}
    return EntryResponse.model_validate({
        **own,
        "rank": rank,
        "provider": offer.provider,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "pricing": offer.pricing,
        "price_usd_per_h": float(offer.price_usd_per_h),
        "price_as_of": offer.as_of,
        "accelerator": entry.candidate.accelerator,
        "tensor_parallel": entry.candidate.tp,
        "predictions": [MetricResponse(**dataclasses.asdict(metric)) for metric in entry.predictions],
    })  # fmt: skip
