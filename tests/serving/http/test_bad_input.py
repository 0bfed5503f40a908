"""No input yields a 5xx, and the problem names the invalid field."""

import copy
import json
import shutil
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.store.provenance import Origin
from roofcast.serving.app_state.imports import import_report
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http import problem_details
from roofcast.serving.http.app import create_app
from tests.effort import n_example
from tests.serving.http_client import CONFIG, Client, a_demand, a_measurement, a_question, problem_of, running

RECOMMEND, PREDICT, MEASURE = "/v1/recommendations", "/v1/predictions", "/v1/measurements"
EXPLAIN = "/v1/explanations"
BODIES: dict[str, dict[str, Any]] = {
    RECOMMEND: a_demand(),
    PREDICT: {"rows": [a_question()], "models": [{"name": "mine", "config": CONFIG}]},
    EXPLAIN: {
        "rows": [a_question()],
        "models": [{"name": "mine", "config": CONFIG}],
        "references": [a_question(tpot_s=0.02)],
    },
    MEASURE: {"rows": [a_measurement()], "models": [{"name": "mine", "config": CONFIG}]},
}
LONE_SURROGATE = "\ud800"


@pytest.fixture(scope="module")
def shared(trained_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client of an application whose store these tests may change."""
    home = shutil.copytree(trained_home, tmp_path_factory.mktemp("bad_input") / "home")
    with running(create_app(Settings(home=home, poll_s=3600))) as client:
        yield client


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, item in inner for path in paths(item, (*at, key)))]


def replace_at(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return the body with another value at a path."""
    if not path:
        return value
    changed = copy.deepcopy(body)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return changed


def value_at(body: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        body = body[key]
    return body


TEXT_PATHS = [
    (p, path) for p, body in BODIES.items() for path in paths(body) if isinstance(value_at(body, path), str)
]


INVALID_TEXTS = (LONE_SURROGATE, f"a{LONE_SURROGATE}b", "\udfff", "\x00", "a\x00b")
"""Texts that no database stores; each place of a text gets one of them."""


@pytest.mark.parametrize(
    ("route", "path", "invalid"),
    [(*at, invalid) for at, invalid in zip(TEXT_PATHS, cycle(INVALID_TEXTS), strict=False)],
)
def test_lone_surrogates_and_nul_are_refused(shared: Client, route: str, path: tuple[Any, ...], invalid: str) -> None:
    problem = problem_of(shared.post(route, replace_at(BODIES[route], path, invalid)), 422)
    assert problem["field"] == ".".join(map(str, path))
    assert "lone surrogate" in problem["detail"]


@pytest.mark.parametrize("route", BODIES)
def test_lone_surrogates_and_nul_in_field_names_are_refused(shared: Client, route: str) -> None:
    problem_of(shared.post(route, {**BODIES[route], LONE_SURROGATE: 1}), 422)
    problem_of(shared.post(route, {**BODIES[route], "\x00": 1}), 422)


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "field required"),
        ("{", "is no valid JSON"),
        ("[]", "must be an object"),
        ("null", "must be an object"),
        ('"text"', "must be an object"),
        ("[" * 10_000, "nested too deeply"),
        ('{"a":' * 10_000, "nested too deeply"),
        ('{"rows": 1, "rows": 2}', "rows: is given twice"),
        ('{"a": {"b": NaN}}', "NaN is no JSON number"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ('{"a": ' + "9" * 5000 + "}", "too many digits"),
        (b'{"model": "\xff"}', "UTF-8"),
        ("{}", "field required"),
    ],
)
def test_invalid_bodies_are_refused(shared: Client, route: str, text: str | bytes, detail: str) -> None:
    assert detail in problem_of(shared.post_text(route, text), 422)["detail"]


@pytest.mark.parametrize(
    ("changes", "near"),
    [
        ({"precisions": ["fp8"]}, "constraints.weight_precisions"),
        ({"constraints": {"precisions": ["fp8"]}}, "weight_precisions"),
        ({"think_time_s": 20}, "workload.think_time_s"),
        ({"confidense": 0.9}, "confidence"),
        ({"deployment": "kubernets"}, "kubernetes"),
        ({"constraints": {"weight_precisions": ["bf61"]}}, "bf16"),
    ],
)
def test_a_near_miss_is_named_also_where_it_belongs_elsewhere(
    shared: Client, changes: dict[str, Any], near: str
) -> None:
    problem = problem_of(shared.post(RECOMMEND, a_demand(**changes)), 422)
    assert problem["did_you_mean"][0] == near
    assert f"did you mean {near}" in problem["detail"]


def test_each_problem_has_its_field_value_and_choices_apart(shared: Client) -> None:
    workload = {"preset": "chat", "request_rate_per_s": 2, "think_time_s": 9}
    problem = problem_of(shared.post(RECOMMEND, a_demand(workload=workload, deployment="kubernets", n_entry=0)), 422)
    by_field = {one["field"]: one for one in problem["errors"]}
    assert by_field["deployment"]["given"] == "kubernets"
    assert by_field["deployment"]["expected"] == ["vllm", "sglang", "trtllm", "kubernetes", "kserve"]
    assert by_field["deployment"]["did_you_mean"][0] == "kubernetes"
    assert by_field["n_entry"]["given"] == "0"
    assert by_field["workload"]["mentions"] == ["think_time_s", "users"]
    assert [f"{one['field']}: {one['problem']}" for one in problem["errors"]] == problem["problems"]


def test_all_problems_of_a_request_are_reported(shared: Client) -> None:
    problem = problem_of(shared.post(RECOMMEND, a_demand(confidence=2, n_entry=0, max_node=1)), 422)
    assert problem["field"] == "max_node"
    assert problem["detail"].startswith("max_node: is not a field here; did you mean constraints.max_nodes?")
    for field in ("confidence", "n_entry"):
        assert f"; {field}: input should be" in problem["detail"]


@pytest.mark.parametrize(
    "route", [pytest.param(one, marks=[pytest.mark.slow] * (one == "/v1/explanations")) for one in BODIES]
)
def test_a_deeply_nested_config_is_stored_or_refused(client: Client, route: str) -> None:
    for depth in (50, 60, 70, 100, 500, 950):
        config = {**CONFIG, "extra": "HERE"}
        body = (
            a_demand(model={"name": "m", "config": config})
            if route == RECOMMEND
            else BODIES[route] | {"models": [{"name": f"deep-{depth}", "config": config}]}
        )
        text = json.dumps(body).replace('"HERE"', "[" * depth + "1" + "]" * depth)
        assert client.post_text(route, text).status_code in {200, 201, 422}
    assert client.get("/v1/models").status_code == 200


@pytest.mark.parametrize("route", BODIES)
def test_other_content_types_are_refused(shared: Client, route: str) -> None:
    body = json.dumps(BODIES[route])
    for headers in ({}, {"content-type": "text/plain"}, {"content-type": "nonsense"}):
        problem = problem_of(shared.send("POST", route, body, headers), 415)
        assert "application/json" in problem["detail"]
    valid = {"content-type": "application/vnd.own+json; charset=utf-8"}
    assert shared.send("POST", PREDICT, json.dumps(BODIES[PREDICT]), valid).status_code == 200


def test_wrong_methods_and_unknown_paths_are_problems(shared: Client) -> None:
    response = shared.send("PUT", RECOMMEND)
    problem_of(response, 405)
    assert response.headers["allow"] == "POST"
    problem_of(shared.get("/v1/nothing"), 404)
    problem_of(shared.get("/v1/%00%ff/%2e%2e"), 404)


@pytest.mark.parametrize("route", BODIES)
def test_a_body_over_a_megabyte_is_refused_before_it_is_parsed(shared: Client, route: str) -> None:
    assert "over 1000000 bytes" in problem_of(shared.post_text(route, b"x" * 1_000_001), 413)["detail"]
    assert shared.post_text(route, b" " * 999_990 + b"{}").status_code == 422


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (
            {"model": {"name": "m", "config": {k: v for k, v in CONFIG.items() if k != "hidden_size"}}},
            "model.config.hidden_size",
        ),
        (
            {"model": {"name": "m", "config": CONFIG | {"num_hidden_layers": "forty"}}},
            "model.config.num_hidden_layers",
        ),
        ({"model": {"name": "m", "config": CONFIG | {"num_hidden_layers": -1}}}, "model.config.num_hidden_layers"),
        ({"model": {"name": "m", "config": CONFIG | {"hidden_size": 10**400}}}, "model.config.hidden_size"),
        ({"model": {"name": "m", "config": CONFIG | {"vocab_size": [1, {"a": []}]}}}, "model.config.vocab_size"),
        ({"model": {"name": "m", "config": {"_class_name": "UNet2DConditionModel"}}}, "model.config._class_name"),
        ({"model": {"name": "m", "config": {"model_type": "bert"}}}, "model.config.model_type"),
        ({"model": {"name": "m", "config": {}}}, None),
        ({"model": {"name": "m", "config": []}}, "model.config"),
        ({"model": {"name": "", "config": CONFIG}}, "model.name"),
        ({"model": {"name": "m"}}, "model.config"),
        ({"model": {"name": "m", "config": CONFIG, "x": 1}}, "model.x"),
        ({"model": 7}, "model"),
        ({"model": []}, "model"),
        ({"model": ""}, "model"),
        ({"model": "m" * 201}, "model"),
        ({"workload": {"n_input_token": -1, "n_output_token": 1, "users": 1}}, "workload.n_input_token"),
        ({"workload": {"n_input_token": 10**400, "n_output_token": 1, "users": 1}}, "workload.n_input_token"),
        ({"workload": {"n_input_token": 1, "n_output_token": 0, "users": 1}}, "workload.n_output_token"),
        ({"workload": {"n_input_token": 1, "n_output_token": 1, "users": 1e300}}, "workload.users"),
        ({"workload": {"n_input_token": 1, "n_output_token": 1, "users": 1, "request_rate_per_s": 1}}, "workload"),
        ({"workload": []}, "workload"),
        ({"limits": "ttft<=1s"}, "limits"),
        ({"limits": ["fast"]}, "limits"),
        ({"limits": ["ttft:p95<=-1s"]}, "limits"),
        ({"limits": ["ttft:p95<=0s"]}, "limits"),
        ({"limits": ["ttft:p95<=99999999s"]}, "limits"),
        ({"limits": ["itl<=1s"] * 21}, "limits"),
        ({"constraints": {"max_usd_per_h": -1}}, "constraints.max_usd_per_h"),
        ({"constraints": {"weight_precision": "fp7"}}, "constraints.weight_precision"),
        ({"constraints": {"providers": "aws"}}, "constraints.providers"),
        ({"level": 1}, "level"),
        ({"level": 0}, "level"),
        ({"n_entry": 0}, "n_entry"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_the_problem_of_an_invalid_demand_names_the_field(
    shared: Client, changes: dict[str, Any], field: str | None
) -> None:
    problem = problem_of(shared.post(RECOMMEND, a_demand(**changes)), 422)
    if field is not None:
        assert problem["field"] == field


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limits": ["tftt:p95<=1s"]}, "did you mean 'ttft'"),
        ({"model": "meta-llama/Llama-3.1-8"}, "did you mean 'meta-llama/Llama-3.1-8B'"),
        ({"constraints": {"regions": ["us-east-11"]}}, "did you mean 'us-east-1'"),
        ({"constraints": {"pricing": ["ondemand"]}}, "did you mean 'on_demand'"),
        ({"limits": ["latency<=1s"]}, "there are e2e, itl, nttft, throughput, throughput_per_user, tpot, ttft"),
        ({"limits": ["ttft:p42<=1s"]}, "p95"),
        (
            {"constraints": {"pricing": ["preemptible"]}},
            "there are capacity_block, on_demand, reserved_1y, reserved_3y, spot",
        ),
        ({"constraints": {"accelerators": ["abacus"]}}, "GET /v1/accelerators lists the known names"),
        ({"constraints": {"accelerators": ["h1000"]}}, "did you mean 'nvidia-h100-"),
        ({"constraints": {"providers": ["Amazon"]}}, "did you mean 'aws'?"),
    ],
)
def test_the_problem_of_an_unknown_name_lists_the_known_ones(
    shared: Client, changes: dict[str, Any], message: str
) -> None:
    assert message in problem_of(shared.post(RECOMMEND, a_demand(**changes)), 404)["detail"]


def test_model_names_may_be_in_any_script(shared: Client) -> None:
    response = shared.post(RECOMMEND, a_demand(model={"name": "模型-Größe-🦙", "config": CONFIG}))
    assert response.json()["model"] == "模型-Größe-🦙"
    problem = problem_of(shared.post(RECOMMEND, a_demand(model="模型")), 404)
    assert "模型" in problem["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/measurements?offset=-1", "/v1/measurements?limit=0", "/v1/measurements?offset=" + "9" * 30,
        "/v1/measurements?limit=x", "/v1/measurements?campaign=%00", "/v1/retrainings/%00",
        "/v1/retrainings/" + "a" * 5000,
    ],
)  # fmt: skip
def test_invalid_query_parameters_are_refused(shared: Client, path: str) -> None:
    problem_of(shared.get(path), 422)


def test_a_query_parameter_of_invalid_utf8_matches_nothing(shared: Client) -> None:
    assert shared.get("/v1/measurements?campaign=%ff%ed%a0%80").json() == []


def examples(document: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Return method, path and body of each operation that can be called as documented."""
    calls = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"].get("application/json", {}).get("schema", {})
                if "$ref" not in schema:
                    continue
                name = schema["$ref"].rpartition("/")[2]
                calls += [(method, path, body) for body in document["components"]["schemas"][name]["examples"]]
            elif "{" not in path:
                calls.append((method, path, None))
    return calls


def test_names_of_a_list_that_is_too_long_are_not_looked_up(shared: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_details, "request_errors", lambda *_: pytest.fail("names are looked up"))
    names = [f"accelerator-{i}" for i in range(5000)]
    problem = problem_of(shared.post(RECOMMEND, a_demand(constraints={"accelerators": names})), 422)
    assert problem["field"] == "constraints.accelerators"


def test_every_example_of_the_openapi_document_works(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_report, "TRAINED_ON", ("llm_pilot",))
    calls = examples(client.get("/openapi.json").json())
    assert {RECOMMEND, PREDICT, MEASURE} <= {path for _, path, _ in calls}
    (import_id,) = {body["import_id"] for _, _, body in calls if "import_id" in (body or {})}
    client.service.store.add(
        validate_measurements(pd.DataFrame([a_measurement()])), origin=Origin(import_id=import_id)
    )
    for method, path, body in calls:
        headers = {} if body is None else {"content-type": "application/json"}
        response = client.send(method.upper(), path, None if body is None else json.dumps(body), headers)
        has_no_earlier_champion = path == "/v1/predictor/rollback" and response.status_code == 409
        has_no_challenger = path == "/v1/predictor/challenger" and response.status_code in (404, 409, 422)
        assert response.status_code < 400 or has_no_earlier_champion or has_no_challenger, (path, response.text)
        if path == f"{MEASURE}/withdrawals":
            assert response.json()["n_row"] == 1


def test_the_openapi_document_has_problem_details_for_each_operation(shared: Client) -> None:
    document = shared.get("/openapi.json").json()
    for operations in document["paths"].values():
        for operation in operations.values():
            assert set(operation["responses"]["422"]["content"]) == {"application/problem+json"}


SMALL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**20, max_value=10**400),
    st.floats(),
    st.text(st.characters(codec=None, exclude_categories=()), max_size=20),
    st.sampled_from(["", "=1+1", "nan", "inf", "1e999", "x" * 300, "../../etc/passwd", "p95", "%s"]),
)
VALUES = st.recursive(
    SMALL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("route", BODIES)
@settings(max_examples=n_example(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_request_never_yields_a_5xx(shared: Client, route: str, data: st.DataObject) -> None:
    body = copy.deepcopy(BODIES[route])
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(paths(body)))
        body = replace_at(body, path, data.draw(VALUES))
    response = shared.post(route, body)
    if response.status_code >= 400:
        assert problem_of(response, response.status_code)["status"] in {404, 409, 422}
    else:
        json.loads(response.text, parse_constant=pytest.fail)


@settings(max_examples=n_example(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(route=st.sampled_from(list(BODIES)), noise=st.binary(max_size=60), at=st.integers(0, 400))
def test_random_bytes_in_a_body_never_yield_a_5xx(shared: Client, route: str, noise: bytes, at: int) -> None:
    text = json.dumps(BODIES[route]).encode()
    assert shared.post_text(route, text[:at] + noise + text[at:]).status_code < 500
    assert shared.post_text(route, text[:at] + noise).status_code < 500


@pytest.mark.parametrize(
    "path", ["predictions", "explanations", "measurements", "training/predictions", "training/measurements"]
)
def test_a_row_that_stands_alone_is_told_to_join_a_list(shared: Client, path: str) -> None:
    problem = problem_of(shared.post(f"/v1/{path}", a_question()), 422)
    assert problem["detail"] == f"rows: {problem_details.FLAT_ROW}"
    assert problem["field"] == "rows"


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [("model", True, 422), ("accelerator", True, 422), ("engine", True, 422), ("model", 3, 404)],
)
def test_a_name_that_is_no_text_is_refused(shared: Client, field: str, value: object, status: int) -> None:
    row = a_measurement(**{field: value})
    assert f"{field}: " in problem_of(shared.post("/v1/measurements", {"rows": [row]}), status)["detail"]


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
