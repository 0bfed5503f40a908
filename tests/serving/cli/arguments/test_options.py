"""Options that are declared in tables."""

import json
from collections.abc import Mapping

import pytest

from roofcast.data.measurements.column_types import Column
from roofcast.data.measurements.job_schema import TRAINING_CONFIG_COLUMNS
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.serving.cli.arguments.options import column_options
from tests.serving.http_client import Run


@pytest.mark.parametrize("columns", [INPUT_COLUMNS, TRAINING_CONFIG_COLUMNS])
def test_the_options_of_columns_have_help_and_those_of_numbers_take_suffixes(columns: Mapping[str, Column]) -> None:
    options = column_options(columns)
    assert all(option.help[0].isalnum() and option.help.endswith(".") for option in options.values())
    numbers = {name for name in options if columns[name].kind == "float"}
    assert {name for name, option in options.items() if option.parse} == numbers
    assert {option.parse("4k") for option in options.values() if option.parse} == {"4000"}


@pytest.mark.usefixtures("home")
def test_a_prediction_takes_lengths_with_suffixes(run: Run) -> None:
    question = ("--model", "Qwen/Qwen3-32B", "--accelerator", "nvidia-h100-sxm-80gb", "--n-accelerator", "2")
    engine = ("--engine", "vllm", "--engine-version", "0.10", "--osl", "256", "--json")
    answers = [json.loads(run("predict", *question, *engine, "--isl", length)[1]) for length in ("4k", "4000")]
    assert answers[0] == answers[1]
