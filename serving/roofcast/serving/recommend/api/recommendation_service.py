"""Recommendation service: from a request to its response, for HTTP and the command line."""

import datetime as dt
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError, join_errors
from roofcast.data.precision_names import format_engine, format_name, parse_weights, split_copy_name
from roofcast.data.prices.price_book import MAX_AGE_DAY
from roofcast.data.prices.regions import resolve_region
from roofcast.data.specs import ModelSpec, Pricing
from roofcast.data.units import S_PER_H
from roofcast.features.columns import ENGINES
from roofcast.features.validity.model_limits import context_error, context_limit
from roofcast.serving.app_state.catalog.live_catalog import with_own_models
from roofcast.serving.app_state.catalog.user_files import old_price_warnings
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.deployment import Question, checkpoint_of, deployment
from roofcast.serving.deployment.engine_config import ENGINES as DEPLOYABLE_ENGINES
from roofcast.serving.display_names import (
    count_text,
    engine_name,
    metric_name,
    precision_name,
    quantity_text,
    three_digits,
    usd_text,
)
from roofcast.serving.predict.name_remarks import request_remarks
from roofcast.serving.predict.question_rows import table_from_rows
from roofcast.serving.predict.reference_rows import read_references
from roofcast.serving.recommend.answer.basis import BasisFactory
from roofcast.serving.recommend.answer.cautions import demand_warnings, region_warnings
from roofcast.serving.recommend.answer.parts import (
    CalibrationEffect,
    Entry,
    PeakLoad,
    PredictedMetric,
    Recommendation,
    RecommendationResponse,
    WithoutStack,
)
from roofcast.serving.recommend.api.request import ConstraintsRequest, RecommendationRequest
from roofcast.serving.recommend.api.request_errors import NAMED_FIELDS, check_name, request_errors
from roofcast.serving.recommend.demand.constraints import (
    SERVER_SETTINGS,
    Constraints,
    Objective,
    override_prices,
    owned_nodes,
)
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.recommendation import recommend
from roofcast.serving.request_fields import ModelConfig, StackResponse
from roofcast.serving.stacks.stack_choice import Stacks
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

basis_of: Final = BasisFactory()


def answer_recommendation(
    request: RecommendationRequest,
    catalog: Catalog,
    loaded: LoadedModel,
    stacks: Stacks,
    today: dt.date,
    *,
    owner: str = "",
) -> RecommendationResponse:
    """Return the response to a request, with warnings such as old prices.

    `owner` is the API key whose stack profiles the request may name; empty for the command line.

    Raises `InputError` if a limit, configuration, constraint, price or reference is invalid, nothing is within the
    constraints, or no accelerator named has a price; `UnknownNameError` if a model, accelerator, provider, region,
    engine, pricing or preset is unknown, or the engine has no artefacts; `OutOfRangeError` if the level or the
    confidence is above what the measurements can guarantee.
    """
    engines = {*loaded.bundle.engines, *ENGINES} - {""}
    if errors := request_errors(request.model_dump(include=NAMED_FIELDS), catalog, engines):
        raise join_errors(errors)
    model, known = resolve_model(request.model, catalog)
    demand = request.workload.demand(request.limits)
    _check_preset(request, demand, model)
    market = override_prices(catalog, request.price_overrides, today)
    constraints = resolve_constraints(request.constraints, market, today, engines, request.deployment)
    choices = {"objective": _objective(request, demand), **_checkpoints(model, catalog, request.constraints)}
    constraints = _of_format(replace(constraints, **choices), request, model, catalog)
    unpriced = _unpriced_warnings(request.constraints.accelerators, market, constraints)
    references = _references(request, model, known, loaded.bundle) if request.references else None
    bundle, points, used = stacks.choose(catalog, loaded, owner, request.stack, references, operator=request.operator)
    result = recommend(
        bundle,
        model,
        market,
        demand,
        constraints,
        confidence=request.confidence,
        level=request.level,
        n_entry=request.n_entry,
        n_rejection=request.n_rejection,
        references=points,
        baseline=loaded.bundle.predictor if used else None,
        has_levers=request.levers,
    )
    warnings = [
        *request_remarks(request.model, request.constraints.typed_names(), catalog),
        *result.warnings,
        *unpriced,
        *region_warnings(request.constraints.regions, market.offers, constraints),
    ]
    first = [one.offer for one in result.entries[:1]]
    rented = {"first entry": first, "mixed fleet": [one.offer for one in result.fleet]}
    warnings += [*old_price_warnings(rented, today), *demand_warnings(demand, result)]
    warnings += used.notes if used else ()
    entries = result.entries
    if request.deployment:
        name = request.model if isinstance(request.model, str) else request.model.name
        question = Question(model, checkpoint_of(name, model, catalog), catalog.accelerators, demand, constraints)
        entries, reasons = _with_artefacts(entries, request.deployment, question)
        warnings += reasons
    basis = basis_of(catalog, loaded.champion)
    fields = dict(result) | {"entries": entries, "warnings": tuple(warnings)}
    if used or points:
        fields |= _calibration_fields(result, f"the {used}" if used else "the references", request.confidence)
    return RecommendationResponse(
        **fields,
        id=basis.answer_id(request.model_dump(mode="json")),
        basis=basis,
        model=model.id,
        load=peak_load(demand, result),
        objective=constraints.objective,
        confidence=request.confidence,
        level=request.level,
        predictor_version=basis.predictor_version,
        stack=StackResponse.of(used),
    )


def _calibration_fields(result: Recommendation, source: str, confidence: float) -> dict[str, Any]:
    effect, without = result.calibration_effect, None
    if effect and effect.without and effect.calibrated:
        shown = {name: value for name, value in effect.calibrated if name in WithoutStack.model_fields}
        without = WithoutStack(**shown, p_limits_met_without=effect.without.p_limits_met)
    return {"stack_effect": calibration_text(source, result, confidence), "without_stack": without}


def resolve_model(choice: str | ModelConfig, catalog: Catalog) -> tuple[ModelSpec, Catalog]:
    """Return the model of a request, and the catalogue with it: its config takes precedence over the catalogue.

    Raises `InputError` if a config is not a language model's; `UnknownNameError` if there is no such model.
    """
    if isinstance(choice, str):
        return catalog.model(choice), catalog
    try:
        catalog, (spec,) = with_own_models(catalog, [(choice.name, choice.config)])
    except InputError as error:
        raise InputError(f"model.config.{error.field}".removesuffix("."), error.problem) from error
    return spec, catalog


def _checkpoints(model: ModelSpec, catalog: Catalog, request: ConstraintsRequest) -> dict[str, Any]:
    if catalog.models.get(model.id) != model:  # a checkpoint is named, or the model has a config of its own
        return {}
    names = catalog.checkpoints(model)
    own = {precision for precision, name in names.items() if name.partition("/")[0] == model.id.partition("/")[0]}
    return {"checkpoints": names, "published": frozenset() if request.original else frozenset(own)}


def _of_format(
    constraints: Constraints, request: RecommendationRequest, model: ModelSpec, catalog: Catalog
) -> Constraints:
    if constraints.weight_precisions:
        return constraints
    if isinstance(request.model, str) and model.weight_precision != catalog.models[model.id].weight_precision:
        copy = split_copy_name(request.model).quantisation
        return _with_formats(constraints, [copy]) if parse_weights(copy).precision else constraints
    own = format_engine(model.weight_format)
    return replace(
        constraints,
        weight_formats=frozenset({(model.weight_precision, model.weight_format)} if model.weight_format else ()),
        engines=constraints.engines or frozenset({own} - {""}),
    )


def _objective(request: RecommendationRequest, demand: Demand) -> Objective:
    if request.objective == "throughput":
        if not demand.is_endless:
            problem = "throughput needs a workload without a load: leave out users, rate and deadline"
            raise InputError("objective", problem)
        if request.constraints.max_usd_per_h is None:
            budget = "constraints.max_usd_per_h"
            raise InputError("objective", f"throughput needs a budget: give {budget}", [budget])
    if request.objective in ("throughput", "accelerators"):
        return request.objective
    return "tokens" if demand.is_endless else "cost"


def _check_preset(request: RecommendationRequest, demand: Demand, model: ModelSpec) -> None:
    workload = request.workload
    has_own_lengths = None not in (workload.n_input_token, workload.n_output_token)
    if workload.preset is None or has_own_lengths:
        return
    if context_error(model, demand.n_input_token, demand.n_output_token):
        lengths = f"{demand.n_input_token:g} input and {demand.n_output_token:g} output tokens"
        limit = f"the context of {model.id} is {context_limit(model):g}"
        cure = "choose a model of a longer context, or give n_input_token and n_output_token"
        raise InputError("workload.preset", f"{workload.preset!r} makes requests of {lengths}, and {limit}; {cure}")


def _unpriced_warnings(names: Iterable[str], catalog: Catalog, constraints: Constraints) -> list[str]:
    ids = sorted({catalog.accelerator(name).id for name in names})
    priced = {offer.accelerator for offer in (*catalog.offers, *constraints.inventory)}
    unpriced = [id_ for id_ in ids if id_ not in priced]
    cure = "add one with `roofcast offers --add FILE`"
    cure += f", or give `--inventory {unpriced[0]}=1,1,0` if you own it" if unpriced else ""
    if unpriced and unpriced == ids:
        raise InputError("constraints.accelerators", f"{', '.join(unpriced)}: no price is known; {cure}")
    return [f"{id_} is left out: no price is known; {cure}" for id_ in unpriced]


def _references(
    request: RecommendationRequest, model: ModelSpec, catalog: Catalog, bundle: ModelBundle
) -> CalibrationPoints:
    name = request.model if isinstance(request.model, str) else model.id
    rows = [{**row, "model": row.get("model") or name} for row in request.references]
    return read_references(table_from_rows(rows), catalog, bundle.predictor)


def _with_artefacts(
    entries: Iterable[Entry], kind: str, question: Question
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    reasons: dict[str, None] = {}
    complete = []
    for entry in entries:
        artefact = None
        try:
            artefact = deployment(kind, entry, question)
        except UnknownNameError:
            raise
        except InputError as error:
            reasons[str(error)] = None
        complete.append(entry.model_copy(update={"deployment": artefact}))
    return tuple(complete), tuple(reasons)


def resolve_constraints(
    request: ConstraintsRequest, catalog: Catalog, today: dt.date, engines: Iterable[str], deployment: str = ""
) -> Constraints:
    """Return the constraints with every name resolved.

    Raises `InputError` if no accelerator named is made by a vendor named; `UnknownNameError` if no offer has such a
    provider or region, or there is no such vendor, accelerator, engine or pricing.

    - `today`: Date of the prices of the inventory, which the age of others is counted to.
    - `engines`: Known engines.
    - `deployment`: Kind of artefact; that of an engine constrains the engines to it unless others are named.
    """
    accelerators = catalog.accelerators.values()
    vendors = _resolve_names("constraints.vendors", request.vendors, {spec.vendor for spec in accelerators})
    ids = {catalog.accelerator(name).id for name in request.accelerators}
    admissible = {
        spec.id for spec in accelerators if (not ids or spec.id in ids) and (not vendors or spec.vendor in vendors)
    }
    if not admissible:
        raise InputError("constraints.accelerators", "none is made by the vendors named; relax one of the two")
    engine_names = [*request.engines, *filter(None, [request.engine])]
    if not engine_names and deployment in DEPLOYABLE_ENGINES:
        engine_names = [deployment]
    inventory, age = owned_nodes(request.inventory, catalog, today), request.max_price_age_day
    providers = {offer.provider for offer in (*catalog.offers, *inventory)}
    regions = {offer.region for offer in catalog.offers}
    constraints = Constraints(
        providers=_resolve_names("constraints.providers", request.providers, providers),
        regions=frozenset[str]().union(
            *(resolve_region("constraints.regions", name, regions) for name in request.regions)
        ),
        accelerators=frozenset(admissible),
        pricing=_resolve_names("constraints.pricing", request.pricing, get_args(Pricing)),
        max_usd_per_h=request.max_usd_per_h,
        kv_precision=request.kv_precision or "",
        server_settings={name: value for name in SERVER_SETTINGS if (value := getattr(request, name)) is not None},
        engines=_resolve_names("constraints.engines", engine_names, engines),
        max_nodes=request.max_nodes,
        speculations=request.speculations(),
        draft_model=request.draft_model or "",
        inventory=inventory,
        marketplaces=request.marketplaces,
        oldest_price=today - dt.timedelta(days=MAX_AGE_DAY if age is None else age),
        has_old_prices=age is None,
    )
    return _with_formats(constraints, request.weight_names())


def _with_formats(constraints: Constraints, names: Collection[str]) -> Constraints:
    bits: dict[str, list[float | None]] = {}
    for one in dict.fromkeys(map(parse_weights, names)):
        bits.setdefault(one.precision, []).append(None if math.isnan(one.bit) else one.bit)
    own = frozenset(map(format_engine, names))
    formats = {(parse_weights(name).precision, format_name(name)) for name in names}
    is_any = {precision for precision, kind in formats if not kind}
    return replace(
        constraints,
        weight_precisions=frozenset(bits),
        weight_formats=frozenset(one for one in formats if one[0] not in is_any),
        weight_bits={precision: (*listed,) for precision, listed in bits.items() if any(listed)},
        engines=constraints.engines or (own if "" not in own else frozenset()),
    )


def _resolve_names(field: str, names: Iterable[str], known: Iterable[str]) -> frozenset[str]:
    ids = [*known]
    return frozenset(check_name(field, ids, name) for name in names)


def peak_load(demand: Demand, result: Recommendation) -> PeakLoad:
    """Return the load at the peak: users or request rate, think time, and requests in flight on the first entry.

    Without an entry the requests in flight of users who think are unknown, as those of arrivals at a rate are.
    """
    entry = result.entries[0] if result.entries else None
    in_flight = None if entry is None else entry.load_per_replica * entry.n_replica
    is_of_users = demand.unit == "users"
    if is_of_users and not demand.think_time_s:
        in_flight = demand.peak_load
    if is_of_users:
        who = f"{count_text(demand.peak_load, 'user')}, {three_digits(demand.think_time_s)} s think time"
    elif demand.is_endless:
        n = demand.n_batch_request
        who = f"{'no load given' if n is None else count_text(n, 'request')}: replicas are as busy as pays"
    elif demand.is_batch:
        hours = demand.think_time_s / S_PER_H
        who = f"{count_text(demand.peak_load, 'request')} within {three_digits(hours)} hours"
    else:
        who = f"{count_text(demand.peak_load, 'request')} a second"
    waiting = (
        "" if in_flight is None else f" = {three_digits(in_flight)} request{'s' if in_flight != 1 else ''} in flight"
    )
    return PeakLoad(
        users=demand.peak_load if is_of_users else None,
        think_time_s=demand.think_time_s if is_of_users else 0.0,
        request_rate_per_s=demand.peak_load if demand.users is None else None,
        requests_in_flight=in_flight,
        text=f"{who}{waiting}",
    )


_NOTHING = "no deployment meets the limits"


def calibration_text(source: str, result: Recommendation, confidence: float) -> str:
    """Return the first entry without and with a source of calibration, such as `the stack profile rack-7`.

    The reason is what the source says of the deployment that it rules out, or else of the one that it admits. Figures
    are of one deployment at one load.
    """
    entry, effect = (result.entries[0] if result.entries else None), result.calibration_effect
    if effect is None:
        return f"with {source}: {_name(entry)}"
    if effect.without and entry and _key(effect.without) == _key(entry):
        return f"without {source} the answer is the same, {_name(entry)}; there {_figures(entry.predictions)}"
    answers = f"without {source}: {_name(effect.without)}; with it: {_name(entry)}"
    return f"{answers}, because {reason}" if (reason := _reason(effect, entry, confidence)) else answers


def _reason(effect: CalibrationEffect, entry: Entry | None, confidence: float) -> str:
    before, after = effect.without, effect.calibrated
    if before is None or after is None or (entry and entry.cost_usd_per_h < before.cost_usd_per_h):
        return f"on the latter {_figures(entry.predictions)}" if entry else ""
    reason = f"on the former {_figures(after.predictions)}"
    if entry and (entry.offer.id, entry.replica) == (before.offer.id, before.replica):
        return f"{reason}, so a replica serves {_capacity(entry)} instead of {_capacity(before)}"
    if after.p_limits_met < confidence:
        p = f"{after.p_limits_met:.2f} instead of {before.p_limits_met:.2f}"
        return f"{reason}, and all limits are met with probability {p}"
    if entry and math.isclose(entry.cost_usd_per_h, after.cost_usd_per_h):
        return f"{reason}; both cost the same{_advantage(entry, after)}"
    return f"{reason}, so a replica serves less within the limits"


def _advantage(entry: Entry, former: Entry) -> str:
    chance, former_chance = f"{entry.p_limits_met:.2f}", f"{former.p_limits_met:.2f}"
    if chance != former_chance:
        return f", and the latter meets all limits with probability {chance} instead of {former_chance}"
    used, before = (one.n_replica * one.replica.n_accelerator for one in (entry, former))
    accelerators = count_text(used, "accelerator")
    return f", and replicas of the latter have {accelerators} instead of {before}" if used != before else ""


def _capacity(entry: Entry) -> str:
    if entry.users_per_replica is None:
        return f"{three_digits(entry.request_rate_per_replica)} requests/s"
    return f"{three_digits(entry.users_per_replica)} users"


def _key(entry: Entry) -> tuple[object, ...]:
    return entry.offer.id, entry.replica, entry.n_instance


def _name(entry: Entry | None) -> str:
    if entry is None:
        return _NOTHING
    replica = entry.replica
    precision = precision_name(replica.weight_precision, replica.weight_bit)
    how = f"{replica.split}, {engine_name(replica.engine)}, {precision}"
    return f"{entry.n_instance} x {entry.offer.instance_type} ({how}) for {usd_text(entry.cost_usd_per_h)} USD/h"


def _figures(predictions: Sequence[PredictedMetric]) -> str:
    shown = [one for one in predictions if one.limit is not None] or predictions
    return ", ".join(_figure(one) for one in shown)


def _figure(one: PredictedMetric) -> str:
    value, without = one.value, one.uncalibrated or one.value
    figure, usual = (quantity_text(one.metric, amount) for amount in (value, without))
    return (
        f"{metric_name(one.metric)} {one.statistic} is {figure}, {value / without:.2f} times the {usual} without it"
    )
