"""``GET /v1/choices``: the names that the fields of a recommendation request may have."""

import dataclasses
import math
from typing import Annotated, get_args

from fastapi import APIRouter
from pydantic import BaseModel, Field

from roofcast.data.prices.regions import offered_areas
from roofcast.data.specs import Precision, Pricing
from roofcast.serving.display_names import (
    OBJECTIVE_NAMES,
    OPERATOR_NAMES,
    engine_name,
    precision_name,
    pricing_name,
    provider_name,
    region_name,
)
from roofcast.serving.http.access import READ
from roofcast.serving.http.dependencies import ActiveModel, Parts
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.recommend.api.request import Artefact, SpeculationKind
from roofcast.serving.recommend.demand.presets import PRESETS, Preset


class PresetResponse(BaseModel):
    """An observed workload: mean lengths in tokens, and where they are published."""

    name: str
    meaning: str
    n_input_token: float
    n_output_token: float
    observed: str
    source: str
    basis: str
    think_time_s: Annotated[
        float | None, Field(description="Between a response and the next request; null if it was not measured.")
    ] = None


class AcceleratorName(BaseModel):
    """An accelerator: its id in requests, and the name to show."""

    id: str
    name: str
    vendor: str


class ChoicesResponse(BaseModel):
    """Names that the fields of a recommendation request may have; accelerators are those with an offer."""

    presets: list[PresetResponse]
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


router = APIRouter(tags=["knowledge"], route_class=GuardedRoute)


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
        presets=[_preset(preset) for preset in PRESETS.values()],
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


def _preset(preset: Preset) -> PresetResponse:
    values = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in dataclasses.asdict(preset).items()
        if name in PresetResponse.model_fields
    }
    return PresetResponse.model_validate(values)
