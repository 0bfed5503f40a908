"""Response models of the valid names of request fields."""

from typing import Annotated

from pydantic import BaseModel, Field


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
    deployments: list[str]
    names: Annotated[
        dict[str, str], Field(description="Names for people of the codes in engines, weight_precisions and pricing.")
    ]
    highest_level: float
