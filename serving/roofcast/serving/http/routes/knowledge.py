"""Models, accelerators, offers, campaigns, the active predictor and its scoreboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request

from roofcast.data.campaigns import CAMPAIGNS, CampaignInfo, load_campaign_info
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.published_figures import read_figures
from roofcast.serving.http.access import CALLER, KEY, READ, WRITE
from roofcast.serving.http.dependencies import ActiveModel, Parts, TargetQuery, Viewer
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.http.schemas.resources import OwnCampaign, PredictorResponse, ScoreboardResponse

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
