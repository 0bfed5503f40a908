"""Request and response models of measured training jobs."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from roofcast.serving.request_fields import InlineModelList, Message, Row
from roofcast.serving.training_jobs.imports.import_errors import TrainingImportErrors
from roofcast.serving.training_jobs.request import EXAMPLE_JOB

MAX_ROW: Final = 20_000
"""Largest number of rows of a request."""


class TrainingMeasurementsRequest(Message):
    """Measured training jobs in the columns of the training table, and the models that they bring along."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "rows": [
                        EXAMPLE_JOB
                        | {"campaign": "nightly", "framework": "torchtitan", "throughput_token_per_s": 58_000}
                    ]
                }
            ]
        }
    )


class TrainingMeasurementsAdded(BaseModel):
    """Number of rows that are new, and that were stored before, as of ``/v1/measurements``.

    `errors` compares up to 200 of the new ones with the predictor; it is null if there is none, or no comparison was
    wanted.
    """

    n_new: int
    n_known: int
    n_quarantined: int
    n_withdrawn: int
    n_claimed: int
    import_id: str
    errors: TrainingImportErrors | None = None
