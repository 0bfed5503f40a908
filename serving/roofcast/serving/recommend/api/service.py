"""From a request for a recommendation to its response, for HTTP and the command line alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, get_args

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import ModelSpec, Pricing
from roofcast.features.columns import ENGINES
from roofcast.features.validity.context import context_error, context_limit
from roofcast.serving.app_state.app_state import AppState, InService
from roofcast.serving.app_state.state_folder import find_model
from roofcast.serving.app_state.user_files import staleness_warnings
from roofcast.serving.deployment import Question, checkpoint_of, deployment
from roofcast.serving.deployment.served import ENGINES as DEPLOYED
from roofcast.serving.predict.references import references_of
from roofcast.serving.predict.unknown_names import unknown_name_error
from roofcast.serving.recommend.answer.basis import BasisOf
from roofcast.serving.recommend.answer.recommendation import Recommendation
from roofcast.serving.recommend.api.models import (
    ConstraintsRequest,
    RecommendationRequest,
    RecommendationResponse,
)
from roofcast.serving.recommend.api.response import response_of
from roofcast.serving.recommend.demand.demand import Constraints, Demand
from roofcast.serving.recommend.demand.inventory import owned_nodes, repriced
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.recommendation import recommend
from roofcast.serving.request_fields import ModelConfig
from roofcast.training.learner.predictor import References
from roofcast.training.lifecycle.bundle import ModelBundle

BOUNDS_OF_WAIT: Final = frozenset({"ttft_s", "nttft_s_per_token", "e2e_s"})
"""Limits on these bound how long a request waits for its first token."""

basis_of: Final = BasisOf()


def answer_recommendation(
    request: RecommendationRequest, bench: AppState, loaded: InService, today: dt.date
) -> RecommendationResponse:
    """Return the ranking that a request asks for, with a warning if prices in it are old today.

    Raises
    ------
    InputError
        If a limit, a configuration, a bound, a price or a reference cannot be read, or nothing is within the bounds.
    UnknownNameError
        If a model, accelerator, provider, region, engine, kind of price or preset is unknown, or an artefact is
        asked for that runs an engine which is not known how to start.
    OutOfRangeError
        If the level or the confidence is more than the measurements can promise.
    """
    catalog = bench.catalog
    if isinstance(request.model, str):
        name, model = request.model, catalog.model(request.model)
    else:
        name, model = request.model.name, _read_config(bench, request.model)
    demand = demand_of(request)
    _check_preset(request, demand, model)
    market = _repriced(catalog, request, today)
    known = {*loaded.bundle.engines, *ENGINES} - {""}
    constraints = constraints_of(request.constraints, market, today, known, request.deployment)
    result = recommend(
        loaded.bundle,
        model,
        market,
        demand,
        constraints,
        confidence=request.confidence,
        level=request.level,
        n_entry=request.n_entry,
        n_rejection=request.n_rejection,
        references=_references_of(request, model, catalog, loaded.bundle),
    )
    warnings = [*result.warnings, *staleness_warnings(result.offers, today)]
    response = response_of(result, model, request, basis_of(catalog, loaded.champion), warnings)
    response.warnings.extend(_unbounded_wait(response, demand))
    if request.deployment:
        question = Question(model, checkpoint_of(name, model, catalog), catalog.accelerators, demand, constraints)
        _deploy(response, result, request.deployment, question)
    return response


def _unbounded_wait(response: RecommendationResponse, demand: Demand) -> list[str]:
    """Return a warning if the first entry's requests mostly wait for their first token, which no limit bounds."""
    if not response.entries or {limit.metric for limit in demand.limits} & BOUNDS_OF_WAIT:
        return []
    median = {one.metric: one.value for one in response.entries[0].predictions if one.statistic == "p50"}
    wait, whole = median["ttft_s"], median["e2e_s"]
    if wait < whole / 2:
        return []
    spent = f"the first entry's requests wait {wait:.3g} s of {whole:.3g} s for their first token"
    return [f"{spent}, in the median, and no limit bounds that; add one on ttft or e2e"]


def _read_config(bench: AppState, given: ModelConfig) -> ModelSpec:
    try:
        return bench.read_config(given.name, given.config)
    except InputError as error:
        raise InputError(f"model.config.{error.field}".removesuffix("."), error.problem) from error


def _repriced(catalog: Catalog, request: RecommendationRequest, today: dt.date) -> Catalog:
    """Return the catalogue with the prices that the request sets."""
    if not request.price_overrides:
        return catalog
    changes = [override.change() for override in request.price_overrides]
    return catalog.with_offers(repriced(catalog.offers, changes, catalog, today))


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


def _check_preset(request: RecommendationRequest, demand: Demand, model: ModelSpec) -> None:
    """Raise if a preset makes requests that are longer than the model's context: name it, its lengths and a cure."""
    asked = request.workload
    is_given = None not in (asked.n_input_token, asked.n_output_token)
    if asked.preset is None or is_given or not context_error(model, demand.n_input_token, demand.n_output_token):
        return
    lengths = f"{demand.n_input_token:g} input and {demand.n_output_token:g} output tokens"
    cure = "choose a model of a longer context, or give n_input_token and n_output_token"
    limit = f"the context of {model.id} is {context_limit(model):g}"
    raise InputError("workload.preset", f"{asked.preset!r} makes requests of {lengths}, and {limit}; {cure}")


def demand_of(request: RecommendationRequest) -> Demand:
    """Return the demand, with limits parsed."""
    return request.workload.demand(tuple(parse_limit(text) for text in request.limits))


def constraints_of(
    request: ConstraintsRequest, catalog: Catalog, today: dt.date, known_engines: Iterable[str], deployment: str = ""
) -> Constraints:
    """Return the constraints, with every name resolved.

    Parameters
    ----------
    request
        As it came.
    catalog
        What is known by name.
    today
        Date of the prices of what is there already.
    known_engines
        Those that may be asked for.
    deployment
        What is to be written; the command of an engine bounds the engines to it, unless others are named.

    Raises
    ------
    InputError
        If none of the accelerators asked for is made by the vendors asked for.
    UnknownNameError
        If no offer has such a provider or region, or there is no such vendor, accelerator, engine or kind of price.
    """
    parts = catalog.accelerators.values()
    vendors = _known("constraints.vendors", request.vendors, {part.vendor for part in parts})
    named = {catalog.accelerator(name).id for name in request.accelerators}
    admitted = {
        part.id for part in parts if (not named or part.id in named) and (not vendors or part.vendor in vendors)
    }
    if not admitted:
        raise InputError("constraints.accelerators", "none is made by the vendors asked for; relax one of the two")
    asked = [*request.engines, *([request.engine] if request.engine else [])]
    if not asked and deployment in DEPLOYED:
        asked = [deployment]
    one = [request.weight_precision] if request.weight_precision else []
    own = owned_nodes((item.stock() for item in request.inventory), catalog, today)
    return Constraints(
        providers=_known("constraints.providers", request.providers, {o.provider for o in [*catalog.offers, *own]}),
        regions=_known("constraints.regions", request.regions, {o.region for o in catalog.offers}),
        accelerators=frozenset(admitted),
        pricing=_known("constraints.pricing", request.pricing, get_args(Pricing)),
        max_usd_per_h=request.max_usd_per_h,
        kv_precision=request.kv_precision or "",
        engines=_known("constraints.engines", asked, known_engines),
        weight_precisions=frozenset([*request.weight_precisions, *one]),
        max_nodes=request.max_nodes,
        inventory=own,
    )


def _known(field: str, names: Iterable[str], known: Iterable[str]) -> frozenset[str]:
    by_key = {name.casefold(): name for name in known}
    for name in names:
        if name.casefold() not in by_key:
            raise unknown_name_error(field, name, by_key.values())
    return frozenset(by_key[name.casefold()] for name in names)
