"""What is known: models, accelerators, offers, campaigns, the predictor in service and how good it is."""

from __future__ import annotations

from fastapi import APIRouter

from roofcast.data.campaigns import CAMPAIGNS, CampaignInfo, load_campaign_info
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.serving.app_state.app_state import InService
from roofcast.serving.app_state.published_figures import read_figures
from roofcast.serving.http.dependencies import Bench, Loaded
from roofcast.serving.http.schemas.resources import OwnCampaign, PredictorResponse, ScoreboardResponse

router = APIRouter(tags=["knowledge"])


@router.get("/v1/models")
def list_models(bench: Bench) -> list[ModelSpec]:
    """List the models of the catalogue and those registered here."""
    return list(bench.catalog.models.values())


@router.get("/v1/accelerators")
def list_accelerators(bench: Bench) -> list[AcceleratorSpec]:
    """List the accelerators of the catalogue and your own."""
    return list(bench.catalog.accelerators.values())


@router.get("/v1/offers")
def list_offers(bench: Bench) -> list[Offer]:
    """List the dated prices of the catalogue and your own."""
    return list(bench.catalog.offers)


@router.get("/v1/campaigns")
def list_campaigns(bench: Bench) -> list[CampaignInfo | OwnCampaign]:
    """List the measurement campaigns that come with the package, then your own."""
    own = [OwnCampaign(name=name, n_row=n) for name, n in bench.store.campaigns().items()]
    return [*map(load_campaign_info, CAMPAIGNS), *own]


@router.get("/v1/predictor")
def get_predictor(loaded: Loaded) -> PredictorResponse:
    """Return the champion in service: version, data and held-out errors."""
    return described(loaded)


def described(loaded: InService) -> PredictorResponse:
    """Return what there is to tell of a predictor."""
    bundle = loaded.bundle
    return PredictorResponse(
        version=loaded.champion.version,
        sha256=loaded.champion.sha256,
        roofcast_version=bundle.roofcast_version,
        data_digest=bundle.data_digest,
        n_row=len(bundle.row_ids),
        engines=list(bundle.engines),
        held_out=bundle.scores,
        highest_level=bundle.predictor.highest_level,
    )


@router.get("/v1/scoreboard")
def get_scoreboard(bench: Bench, loaded: Loaded) -> ScoreboardResponse:
    """Return how good the predictor in service is: its held-out errors, and the figures of the protocols.

    The latter come with the package, as in docs/SCOREBOARD.md; those that `roofcast scoreboard` computed later in the
    service's state folder take their place.
    """
    predictor = described(loaded)
    return ScoreboardResponse(
        predictor_version=predictor.version,
        data_digest=predictor.data_digest,
        n_row=predictor.n_row,
        held_out=predictor.held_out,
        protocols=read_figures(bench.settings.home),
    )
