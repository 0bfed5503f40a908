"""Request and response models of stack profiles."""

import datetime as dt
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from roofcast.data.store.stack_profiles import MAX_ROW
from roofcast.serving.request_fields import InlineModelList, Message, Row, Text, Value


class StackRequest(Message):
    """Rows to add to a profile, as references, and the models that they bring along."""

    name: Text
    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "rack-1",
                    "rows": [
                        {
                            "model": "meta-llama/Llama-3.1-8B",
                            "accelerator": "nvidia-a100-pcie-80gb",
                            "n_accelerator": 1,
                            "engine": "vllm",
                            "n_input_token": 120,
                            "n_output_token": 20,
                            "concurrency": 16,
                            "statistic": "mean",
                            "ttft_s": 0.06,
                            "tpot_s": 0.02,
                        }
                    ],
                }
            ]
        }
    )


class StackAdded(BaseModel):
    """Numbers of added rows that are new to the profile and that it had already, and of all its rows."""

    name: str
    n_new: int
    n_known: int
    n_row: int


class StackSummary(BaseModel):
    """A profile without its rows."""

    name: str
    n_row: int
    created_at: dt.datetime
    changed_at: dt.datetime
    is_shared: Annotated[bool, Field(description="Made by the command line of the service, for all callers.")]


class MeasuredStackSummary(BaseModel):
    """A stack of the shipped measurements that the predictor learnt from."""

    name: str
    n_row: int
    models: list[str]
    accelerators: list[str]
    engines: list[str]


class StackErrors(BaseModel):
    """Errors of predictions of a profile's own rows."""

    mape: Annotated[float, Field(description="Mean absolute percentage error, as a fraction.")]
    median_ape: float
    bias: Annotated[float, Field(description="Median of log(measured / predicted).")]
    coverage: Annotated[float, Field(description="Share of the rows inside their interval.")]
    width: Annotated[float, Field(description="Median ratio of the ends of the intervals.")]


class StackMetric(BaseModel):
    """Errors of one metric without the profile, and with its other runs; null where there are none."""

    metric: str
    n_row: int
    before: StackErrors
    after: StackErrors | None


class StackReport(BaseModel):
    """A profile, the errors of its rows by leave-one-run-out, and the runs that would narrow its intervals most."""

    name: str
    level: float
    notes: Annotated[list[str], Field(description="Such as rows that cannot be used any more.")]
    n_row: int
    n_run: int
    models: list[str]
    accelerators: list[str]
    engines: list[str]
    errors: list[StackMetric]
    measure_next: list[dict[str, Value | dict[str, float]]]


class StackRemoved(BaseModel):
    """Number of rows that the profile had."""

    name: str
    n_row: int
