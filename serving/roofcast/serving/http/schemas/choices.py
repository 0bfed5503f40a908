"""Response models of the valid names of request fields."""

from __future__ import annotations

from pydantic import BaseModel


class PresetResponse(BaseModel):
    """An observed workload: mean lengths in tokens, and where they are published."""

    name: str
    meaning: str
    n_input_token: float
    n_output_token: float
    observed: str
    source: str
    basis: str


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
    highest_level: float
