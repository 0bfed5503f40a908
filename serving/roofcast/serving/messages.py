"""What every request over HTTP is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=200)]
Tokens = Annotated[float, Field(ge=1, le=10_000_000)]


class Message(BaseModel):
    """Base of requests: no unknown fields, no NaN or infinity, no text or truth value for a number."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)
