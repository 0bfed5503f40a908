"""No route ignores a query parameter that it does not have, nor one of two values."""

import re
from pathlib import Path
from typing import Any

import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from tests.serving.http_client import Client, problem_of

DOCUMENT = create_app(Settings(home=Path("unused"))).openapi()
ROUTES = [(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods]
FILE = b"model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,statistic,ttft_s\n" + (
    b"meta-llama/Llama-3.1-8B,nvidia-a100-pcie-80gb,1,120,20,4,p50,0.061\n"
)


def body_of(method: str, path: str) -> tuple[bytes, dict[str, str]]:
    request: dict[str, Any] = DOCUMENT["paths"][path][method.lower()].get("requestBody", {})
    kind = next(iter(request.get("content", ())), "")
    return (b"{}" if kind else b"", {"content-type": kind} if kind else {})


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_refuses_an_unknown_parameter(shared: Client, method: str, path: str) -> None:
    address = re.sub(r"{\w+(:path)?}", "x", path)
    problem = problem_of(shared.send(method, f"{address}?unheard_of=1", *body_of(method, path)), 422)
    assert problem["field"] == "unheard_of"
    assert "unheard_of: is not a query parameter here; the route takes" in problem["detail"]


def test_a_misspelt_dry_run_stores_nothing_and_is_told_the_name(client: Client) -> None:
    path = "/v1/measurements/files?name=a.csv"
    response = client.send("POST", f"{path}&dryrun=true&campain=a", FILE, {"content-type": "text/csv"})
    problem = problem_of(response, 422)
    assert (problem["field"], problem["did_you_mean"]) == ("dryrun", ["dry_run"])
    assert len(problem["problems"]) == 2
    assert problem["problems"][0].startswith(
        "dryrun: is not a query parameter here; did you mean dry_run? the route takes format, name, campaign, set"
    )
    assert "did you mean campaign" in problem["problems"][1]
    assert client.get("/v1/measurements").json() == []


@pytest.mark.parametrize(
    "query", ["dry_run=true&dry_run=false", "dry_run=false&dry%5Frun=true", "campaign=a&campaign=a"]
)
def test_a_parameter_that_is_given_twice_stores_nothing(client: Client, query: str) -> None:
    path = f"/v1/measurements/files?{query}&set=engine=vllm&set=engine_version=0.8.0"
    problem = problem_of(client.send("POST", path, FILE, {"content-type": "text/csv"}), 422)
    name = query.partition("=")[0]
    assert (problem["field"], problem["detail"]) == (name, f"{name}: is given 2 times; give it once")
    assert client.get("/v1/measurements").json() == []


def test_the_page_takes_the_parameters_that_links_to_it_have(shared: Client) -> None:
    assert shared.get("/?utm_source=mail").status_code == 200


@pytest.mark.parametrize("path", ["/v1/measurements/files", "/v1/training/measurements/files"])
def test_a_dry_run_creates_nothing_and_says_ok(shared: Client, path: str) -> None:
    documented = DOCUMENT["paths"][path]["post"]["responses"]
    assert {"200", "201"} <= documented.keys()
    assert documented["200"]["content"] == documented["201"]["content"]
    header = b"model,accelerator,n_accelerator,method,n_token_per_sequence,n_global_batch_sequence,step_time_s\n"
    job = b"meta-llama/Llama-3.1-8B,nvidia-h100-sxm-80gb,8,lora,2048,32,9.0\n"
    content = header + job if "training" in path else FILE
    response = shared.send("POST", f"{path}?dry_run=true", content, {"content-type": "text/csv"})
    assert response.status_code == 200, response.text
    assert response.json()["n_new"] == 1
