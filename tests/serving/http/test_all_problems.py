"""A request has the problems of its values and of its names at once."""

from typing import Any

import pytest

from tests.serving.http_client import Client, a_demand, problem_of

WRONG: dict[str, Any] = {
    "model": "no-such",
    "limits": ["ttft<=1s", "tpo<=1s", "nonsense"],
    "constraints": {"accelerators": ["h101"], "engines": ["vlm"], "vendors": ["NVIDA"], "regions": [3]},
}


@pytest.mark.parametrize("more", [{}, {"confidence": 2}, {"workload": {"n_input_token": -1}}])
def test_a_recommendation_names_all(shared: Client, more: dict[str, Any]) -> None:
    problem = problem_of(shared.post("/v1/recommendations", a_demand() | WRONG | more), 422)
    texts = ["regions.0", "no 'no-such'", "no 'tpo'", "'nonsense'", "'h101'", "no 'vlm'", "no 'NVIDA'"]
    texts += ["confidence"] if "confidence" in more else []
    texts += ["a preset such as chat"] if "workload" in more else []
    for text in texts:
        assert text in problem["detail"]
        assert any(text in one for one in problem["problems"])
    assert len(problem["problems"]) >= len(texts)


def test_names_alone_are_unknown_names(shared: Client) -> None:
    constraints = {"accelerators": ["h101"], "engines": ["vlm"]}
    problem = problem_of(shared.post("/v1/recommendations", a_demand(constraints=constraints)), 404)
    assert "'h101'" in problem["detail"]
    assert "no 'vlm' is known" in problem["detail"]
