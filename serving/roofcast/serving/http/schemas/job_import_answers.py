"""Request and response models of measured training jobs."""

from typing import Annotated, Final

from pydantic import Field

from roofcast.serving.http.schemas.resources import RowsAdded
from roofcast.serving.jobs.imports.run_accuracy import JobImportErrors
from roofcast.serving.jobs.job_request import EXAMPLE_JOB
from roofcast.serving.request_fields import InlineModelList, MeasuredRow, Message, examples

MAX_ROW: Final = 20_000
"""Largest number of rows of a request."""


class JobMeasurementsRequest(Message):
    """Measured training jobs in the columns of the training table, and the models that they bring along."""

    rows: Annotated[list[MeasuredRow], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)

    model_config = examples(
        {"rows": [EXAMPLE_JOB | {"campaign": "nightly", "framework": "torchtitan", "throughput_token_per_s": 58_000}]}
    )


class JobMeasurementsAdded(RowsAdded):
    """Numbers of the rows of an import, as of ``/v1/measurements``, and the predictor's errors on them."""

    is_kept: Annotated[bool, Field(description="Whether the rows are stored: false for a dry run.")]
    errors: Annotated[
        JobImportErrors | None,
        Field(description="Comparison of up to 200 of the new rows with the predictor; null if there is none."),
    ] = None
