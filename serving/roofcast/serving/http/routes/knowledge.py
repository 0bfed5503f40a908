"""Models, accelerators, offers, campaigns, choices of request fields, the active predictor and its scoreboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from roofcast.data.campaigns import CAMPAIGNS, CampaignInfo, load_campaign_info
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.data.prices.regions import offered_areas
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer, Precision, Pricing
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.published_figures import read_figures
from roofcast.serving.display_names import (
    OBJECTIVE_NAMES,
    OPERATOR_NAMES,
    engine_name,
    precision_name,
    pricing_name,
    provider_name,
    region_name,
)
from roofcast.serving.http.access import CALLER, KEY, READ, WRITE
from roofcast.serving.http.guarded_routes import ActiveModel, GuardedRoute, Parts, TargetQuery, Viewer
from roofcast.serving.http.schemas.resources import OwnCampaign, PredictorResponse, ScoreboardResponse
from roofcast.serving.recommend.api.request import Artefact, SpeculationKind
from roofcast.serving.recommend.demand.presets import PRESETS, Preset

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey

router = APIRouter(tags=["knowledge"], route_class=GuardedRoute)


@router.get("/v1/models", dependencies=READ)
def list_models(service: Parts, viewer: Viewer) -> list[ModelSpec]:
    """List the models of the catalogue, and those that operators or the caller's key registered here."""
    hidden = service.catalogs.hidden_from(viewer)
    return [spec for spec in service.catalog.models.values() if spec.id not in hidden]


@router.delete("/v1/models/{name:path}", dependencies=WRITE)
def delete_model(
    name: Annotated[str, Path(max_length=200, pattern=r"^[^\x00]+$")],
    *,
    http: Request,
    service: Parts,
    viewer: Viewer,
) -> ModelSpec:
    """Remove a registered model and return it; one to which measurements refer is refused until they are withdrawn.

    A key of the scope `write` removes models that it registered itself; a key of the scope `admin` any.
    """
    key: ApiKey = http.scope[KEY]
    return service.catalogs.remove_model(name, http.scope[CALLER], None if key.may("admin") else key.name, viewer)


@router.get("/v1/accelerators", dependencies=READ)
def list_accelerators(service: Parts) -> list[AcceleratorSpec]:
    """List the accelerators of the catalogue and your own."""
    return list(service.catalog.accelerators.values())


@router.get("/v1/offers", dependencies=READ)
def list_offers(service: Parts) -> list[Offer]:
    """List the dated prices of the catalogue and your own."""
    return list(service.catalog.offers)


@router.get("/v1/campaigns", dependencies=READ)
def list_campaigns(service: Parts, viewer: Viewer) -> list[CampaignInfo | OwnCampaign]:
    """List the measurement campaigns of the package, then those imported here that the caller may list."""
    own = [OwnCampaign(name=name, n_row=n) for name, n in service.store.campaigns(viewer).items()]
    return [*map(load_campaign_info, CAMPAIGNS), *own]


@router.get("/v1/predictor", dependencies=READ)
def get_predictor(service: Parts, target: TargetQuery = INFERENCE) -> PredictorResponse:
    """Return the active predictor of a target: version, training data and held-out errors."""
    return predictor_response(service.champions[target].active_model, target)


def predictor_response(active: LoadedModel[Any], target: Target = INFERENCE) -> PredictorResponse:
    """Return the description of a predictor."""
    bundle = active.bundle
    is_inference = target == INFERENCE
    return PredictorResponse(
        target=target,
        version=active.champion.version,
        sha256=active.champion.sha256,
        roofcast_version=bundle.roofcast_version,
        data_digest=bundle.data_digest,
        n_row=len(bundle.row_ids),
        engines=list(bundle.engines) if is_inference else [],
        held_out=bundle.scores,
        highest_level=bundle.predictor.highest_level() if is_inference else bundle.predictor.highest_coverage,
    )


@router.get("/v1/scoreboard", dependencies=READ)
def get_scoreboard(service: Parts, active: ActiveModel) -> ScoreboardResponse:
    """Return the held-out errors of the active predictor, and the figures of the evaluation protocols.

    The figures are those of the package, as in docs/SCOREBOARD.md, or those that `roofcast scoreboard` computed later
    in the service's state folder.
    """
    predictor = predictor_response(active)
    return ScoreboardResponse(
        predictor_version=predictor.version,
        data_digest=predictor.data_digest,
        n_row=predictor.n_row,
        held_out=predictor.held_out,
        protocols=read_figures(service.settings.home),
    )


class AcceleratorName(BaseModel):
    """An accelerator: its id in requests, and the name to show."""

    id: str
    name: str
    vendor: str


class ChoicesResponse(BaseModel):
    """Names that the fields of a recommendation request may have; accelerators are those with an offer."""

    presets: list[Preset]
    accelerators: list[AcceleratorName]
    vendors: list[str]
    providers: list[str]
    regions: list[str]
    pricing: list[str]
    engines: list[str]
    weight_precisions: list[str]
    speculations: list[str]
    objectives: list[str]
    operators: Annotated[list[str], Field(description="The default first.")]
    deployments: list[str]
    names: Annotated[
        dict[str, str],
        Field(description="Names of codes in engines, weight_precisions, pricing, objectives and operators."),
    ]
    highest_level: float


@router.get("/v1/choices", dependencies=READ)
def get_choices(service: Parts, active: ActiveModel) -> ChoicesResponse:
    """Return the valid names of request fields, for forms and completion."""
    offers = service.catalog.offers
    regions = {offer.region for offer in offers if offer.region}
    priced = {offer.accelerator for offer in offers}
    specs = sorted(
        (spec for spec in service.catalog.accelerators.values() if spec.id in priced),
        key=lambda spec: (spec.vendor, -(spec.year or 0), spec.name),
    )
    providers = sorted({offer.provider for offer in offers})
    engines, precisions, pricing = active.bundle.engines, get_args(Precision), get_args(Pricing)
    return ChoicesResponse(
        presets=[*PRESETS.values()],
        accelerators=[AcceleratorName(id=spec.id, name=spec.name, vendor=spec.vendor) for spec in specs],
        vendors=sorted({spec.vendor for spec in specs}),
        providers=providers,
        regions=[*offered_areas(regions), *sorted(regions)],
        pricing=[*pricing],
        engines=[*engines],
        weight_precisions=[*precisions],
        speculations=[*get_args(SpeculationKind)],
        objectives=[*OBJECTIVE_NAMES],
        operators=[*OPERATOR_NAMES],
        deployments=[kind for kind in get_args(Artefact) if kind],
        names={
            **{engine: engine_name(engine) for engine in engines},
            **{precision: precision_name(precision) for precision in precisions},
            **{kind: pricing_name(kind) for kind in pricing},
            **OBJECTIVE_NAMES,
            **OPERATOR_NAMES,
            **{provider: provider_name(provider) for provider in providers},
            **{region: region_name(region) for region in sorted(regions) if region_name(region) != region},
        },
        highest_level=active.bundle.predictor.highest_level(),
    )
