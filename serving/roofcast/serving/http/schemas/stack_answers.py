"""Request and response models of stack profiles."""

from typing import Annotated

from pydantic import BaseModel, Field

from roofcast.data.store.stack_profiles import MAX_ROW
from roofcast.serving.http.schemas.resources import EXAMPLE_RUN
from roofcast.serving.request_fields import InlineModelList, Message, Row, Text, examples


class StackRequest(Message):
    """Rows to add to a profile, as references, and the models that they bring along."""

    name: Text
    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)

    model_config = examples(
        {"name": "rack-1", "rows": [EXAMPLE_RUN | {"statistic": "mean", "ttft_s": 0.06, "tpot_s": 0.02}]}
    )


class StackRemoved(BaseModel):
    """Number of rows that the profile had."""

    name: str
    n_row: int
