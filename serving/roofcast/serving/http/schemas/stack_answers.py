"""Request and response models of stack profiles."""

from typing import Annotated

from pydantic import BaseModel, Field

from roofcast.data.store.stack_profiles import MAX_ROW
from roofcast.serving.request_fields import InlineModelList, Message, Row, Text, examples


class StackRequest(Message):
    """Rows to add to a profile, as references, and the models that they bring along."""

    name: Text
    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROW)]
    models: InlineModelList = Field(default_factory=list)

    model_config = examples(
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
    )


class StackAdded(BaseModel):
    """Numbers of added rows that are new to the profile and that it had already, and of all its rows."""

    name: str
    n_new: int
    n_known: int
    n_row: int


class StackRemoved(BaseModel):
    """Number of rows that the profile had."""

    name: str
    n_row: int
