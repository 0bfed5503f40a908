"""Response models of the predictor's versions and of campaigns in detail."""

from typing import Annotated

from pydantic import BaseModel, Field

from roofcast.serving.request_fields import Value


class VersionResponse(BaseModel):
    """A version of the predictor."""

    version: str
    sha256: str
    run_id: str
    in_service: bool
    is_challenger: bool
    description: Annotated[str, Field(description="What it learnt from, its errors, and why it was promoted or not.")]


class ChallengerResponse(BaseModel):
    """The challenger; `is_loaded` is that of the answering server process, and `problem` why it has not loaded it."""

    version: str
    sha256: str
    description: str
    is_loaded: bool
    problem: str
    shadow_ratio: Annotated[float, Field(description="Share of the prediction requests that it answers too.")]


class ChallengerWithdrawn(BaseModel):
    """The version that was the challenger."""

    version: str


class CampaignReport(BaseModel):
    """Rows of an imported campaign: stored, learnt from, and why not."""

    campaign: str
    n_kept: int
    n_learnable: int
    not_learnt: Annotated[str, Field(description="Rules of `docs/REVIEW_RULES.md`, with the number of rows of each.")]


class CampaignRow(BaseModel):
    """A measurement: its question as `/v1/predictions` reads it, outcomes, and whether the predictor learnt them."""

    question: dict[str, Value]
    measured: dict[str, float]
    is_learnt: bool


class CampaignRows(BaseModel):
    """Measurements of a campaign, evenly spread if there are more than asked for."""

    campaign: str
    n_row: int
    n_learnt: int
    rows: list[CampaignRow]
