"""Options of a command are the fields of its request."""

from typing import Any

import pytest
from pydantic import BaseModel

from roofcast.data.errors import InputError
from roofcast.serving.cli.arguments.options import read_request, request_options
from roofcast.serving.jobs.job_messages import JobRecommendationRequest
from roofcast.serving.recommend.api.request import RecommendationRequest

OPTIONS: dict[str, Any] = {
    "model": "llama-3.1-8b", "limits": ["ttft<=1s"], "n_input_token": 500.0, "n_output_token": 100.0, "users": 8.0,
}  # fmt: skip


def test_options_become_the_fields_of_a_request() -> None:
    more = {
        "providers": ["aws"],
        "regions": [],
        "max_usd_per_h": None,
        "think_time_s": 3.0,
        "n_entry": 2,
    }
    expected = {
        "model": "llama-3.1-8b",
        "workload": {"n_input_token": 500.0, "n_output_token": 100.0, "users": 8.0, "think_time_s": 3.0},
        "limits": ["ttft<=1s"],
        "constraints": {"providers": ["aws"]},
        "n_entry": 2,
    }
    request = read_request(RecommendationRequest, OPTIONS | more)
    assert request == RecommendationRequest.model_validate(expected)
    assert request.model_fields_set == {*expected}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"headroom": -1.0}, "workload.headroom"),
        ({"deployment": "bash"}, "deployment"),
    ],
)
def test_invalid_options_are_refused_with_their_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_request(RecommendationRequest, OPTIONS | changes)
    assert refusal.value.field == field


@pytest.mark.parametrize("request_type", [RecommendationRequest, JobRecommendationRequest])
def test_options_have_names_and_help_of_their_own(request_type: type[BaseModel]) -> None:
    options = request_options(request_type)
    names = [name for key, one in options.items() for name in (key, *one.names)]
    assert len(names) == len(set(names))
    assert all(one.help[0].isalnum() for one in options.values())
