"""Damaged configurations, limits and rows are read, or refused with a 4xx that names the problem."""

import codecs
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.serving.http.body import Kind
from roofcast.serving.recommend.demand.slo import METRIC_OF
from tests.attack.conftest import EFFORT
from tests.data.model_config.model_configs import PUBLISHED
from tests.effort import n_example
from tests.serving.http_client import CONFIG, Client, a_demand, a_question, problem_of

REFUSALS = {404, 409, 422}
INVALID_VALUES: tuple[Any, ...] = (
    None, True, False, "", "x", "9" * 400, "NaN", "\u202e", "\U0001f999", "\x00", "\ud800", -1, 0, 0.5, 2**31, 2**63,
    10**30, 10**400, 1e308, 5e-324, float("nan"), float("-inf"), [], [[]], {}, {"": ""}, [1] * 300,
    {"a": {"b": [None]}},
)  # fmt: skip
"""Values of a wrong type, too large, not finite, or texts that a database cannot store."""

LIMITS = st.lists(
    st.sampled_from(
        [*METRIC_OF, ":", "p95", "p50", "mean", "p101", "<=", ">=", "<", "==", "500", "1e3", "-1", "0", ".5",
         "9" * 12, "ms", "s", "tok/s", " ", "\t", "٣", "≤", "\x00", "%", "'"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


def quick(n: int) -> settings:
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=n_example(n) * EFFORT, deadline=None, suppress_health_check=checks)


def nested(depth: int) -> Any:
    deep: Any = 1
    for level in range(depth):
        deep = [deep] if level % 2 else {"a": deep}
    return deep


def bodies(config: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a request to each route that accepts a configuration."""
    inline = {"models": [{"name": "fuzzed", "config": config}]}
    return [
        ("/v1/recommendations", a_demand(model={"name": "fuzzed", "config": config})),
        ("/v1/predictions", {"rows": [a_question(model="fuzzed")], **inline}),
        ("/v1/explanations", {"rows": [a_question(model="fuzzed")], **inline}),
    ]


def check(client: Client, path: str, body: Any) -> None:
    """Post, and check that the response is JSON without NaN, or problem details."""
    response = client.post(path, body)
    if response.status_code in {200, 201}:
        json.loads(response.text, parse_constant=pytest.fail)
    else:
        assert problem_of(response, response.status_code)["status"] in REFUSALS, response.text


@quick(25)
@given(st.sampled_from(sorted(PUBLISHED)), st.data())
def test_damaged_configurations(local: Client, name: str, data: st.DataObject) -> None:
    config: dict[str, Any] = json.loads(json.dumps(PUBLISHED[name][0]))
    for key in data.draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=3)):
        inner = config[key]
        if isinstance(inner, dict) and inner and data.draw(st.booleans()):
            inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(st.sampled_from(INVALID_VALUES))
        else:
            config[key] = data.draw(st.sampled_from(INVALID_VALUES))
    path, body = data.draw(st.sampled_from(bodies(config)))
    check(local, path, body)


@pytest.mark.parametrize("depth", [10, 60, 70, 900, 10_000])
def test_deeply_nested_configurations_are_refused(local: Client, depth: int) -> None:
    text = json.dumps(bodies({**CONFIG, "extra": "HERE"})[0][1])
    opening, closing = '{"a":[' * (depth // 2), "]}" * (depth // 2)
    response = local.post_text("/v1/recommendations", text.replace('"HERE"', f"{opening}1{closing}"))
    assert response.status_code == (200 if depth <= 60 else 422), response.text[:300]


@quick(10)
@given(st.lists(LIMITS | st.text(max_size=12), max_size=3))
def test_random_limits_over_http(local: Client, texts: list[str]) -> None:
    check(local, "/v1/recommendations", a_demand(limits=texts))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(INVALID_VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
MODELS = st.fixed_dictionaries({"name": JSON, "config": st.just(CONFIG) | JSON}) | JSON
CHANGES = st.dictionaries(st.sampled_from([*INPUT_COLUMNS]), JSON, max_size=3)
LINES = (
    st.builds(lambda changes: a_question(**changes), CHANGES)
    | CHANGES
    | st.builds(lambda model: a_question(model=model), MODELS)
    | JSON
)


@quick(60)
@given(st.lists(LINES.map(json.dumps).map(str.encode) | st.binary(min_size=1, max_size=30), min_size=1, max_size=6))
def test_each_line_of_a_bulk_request_is_answered(local: Client, lines: list[bytes]) -> None:
    """Every line that is not blank has an answer, and a valid one has status ``ok``."""
    body = b"\n".join([json.dumps(a_question()).encode(), *lines])
    response = local.send("POST", "/v1/predictions", body, {"content-type": Kind.NDJSON.value})
    assert response.status_code == 200, response.text
    answers = [json.loads(line, parse_constant=pytest.fail) for line in response.content.strip().split(b"\n")]
    n_line = sum(bool(line.strip().removeprefix(codecs.BOM_UTF8)) for line in body.split(b"\n"))
    assert len(answers) == n_line
    assert answers[0]["status"] == "ok"
    assert all(answer["status"] == "ok" or answer["reason"] for answer in answers)


FRAGMENTS = st.sampled_from(
    [",", '"', "\n", "\r", "\x00", "NaN", "1e999", "=1", "\ufeff", "[", "{", "}", '\\"', "ü", "9" * 30, "-"]
)


def damaged(text: str, data: st.DataObject) -> str:
    """Return the text with fragments inserted or overwritten at random positions."""
    for _ in range(data.draw(st.integers(1, 4))):
        at, n = data.draw(st.integers(0, len(text))), data.draw(st.sampled_from([0, 1, 5, 60]))
        text = text[:at] + data.draw(FRAGMENTS) * data.draw(st.sampled_from([1, 1, 50])) + text[at + n :]
    return text


@quick(25)
@given(data=st.data())
def test_damaged_bulk_requests(local: Client, data: st.DataObject) -> None:
    text = damaged(f"{json.dumps(a_question())}\n" * 4, data)
    headers = {"content-type": "application/x-ndjson"}
    response = local.send("POST", "/v1/predictions", text.encode(), headers)
    assert response.status_code in {200, *REFUSALS, 413, 415}, response.text
    if response.status_code == 200:
        for line in response.text.splitlines():
            json.loads(line, parse_constant=pytest.fail)
