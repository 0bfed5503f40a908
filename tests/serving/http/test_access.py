import datetime as dt
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import anyio
import httpx
import pytest
from fastapi.routing import APIRoute, APIRouter

from roofcast.data.errors import NotReadyError
from roofcast.data.store.api_keys import KeyStore
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.access import Gate, KeyCache, RateLimits, declared_scope, presume_caller
from roofcast.serving.http.app import ROUTERS, create_app
from roofcast.serving.http.guarded_routes import GuardedRoute
from roofcast.serving.http.routes import jobs
from tests.conditions import wait_until
from tests.conftest import QUICK
from tests.serving.http.test_app import register_copy
from tests.serving.http_client import Client, a_demand, a_measurement, a_question, problem_of, running

MEASURE, RETRAIN, PREDICT = "/v1/measurements", "/v1/retrainings", "/v1/predictions"
ROWS = {"rows": [a_measurement()]}
QUESTION = {"rows": [a_question()]}


@pytest.fixture
def closed(home: Path) -> Iterator[Client]:
    """Return a client without a key, of a service that requires a key of everyone."""
    with running(create_app(Settings(home=home, training=QUICK, poll_s=3600, require_key="all"))) as service:
        service.use_key(None)
        yield service


def challenge_of(response: httpx.Response, status: int) -> str:
    problem_of(response, status)
    return response.headers["www-authenticate"]


def test_reading_and_predicting_need_no_key_and_writing_does(client: Client) -> None:
    client.use_key(None)
    assert client.get(MEASURE).status_code == 200
    assert client.post(PREDICT, QUESTION).status_code == 200
    assert client.post("/v1/recommendations", a_demand()).status_code == 200
    for response in (
        client.post(MEASURE, ROWS),
        client.send("POST", RETRAIN),
        client.send("DELETE", "/v1/models/a"),
    ):
        assert challenge_of(response, 401) == 'Bearer realm="roofcast"'
        assert "roofcast keys create NAME --scope write" in response.json()["detail"]
    assert client.service.store.count() == 0
    assert client.service.store.retrainings.load() == []


def test_a_key_of_the_scope_write_may_write(client: Client) -> None:
    client.use_key(client.make_key("write"))
    assert client.post(MEASURE, ROWS).status_code == 201
    assert client.send("POST", RETRAIN).status_code == 202


def test_the_refusal_of_a_key_has_the_reason(client: Client) -> None:
    client.use_key(client.make_key("read", name="page"))
    assert 'error="insufficient_scope", scope="write"' in challenge_of(client.post(MEASURE, ROWS), 403)
    for secret, reason in {
        "nonsense": "unknown",
        "": "unknown",
        client.make_key("write", dt.timedelta(microseconds=1)): "expired",
    }.items():
        client.use_key(secret)
        assert reason in challenge_of(client.post(MEASURE, ROWS), 401)
        assert reason in challenge_of(client.post(PREDICT, QUESTION), 401), (
            "an invalid key is refused even where none is needed"
        )
    for header in ("Basic abc", "Bearer", "nonsense"):
        problem_of(client.send("POST", RETRAIN, headers={"authorization": header}), 401)


def cache_keys(client: Client, cache_s: float, open_store: Callable[[], Any] | None = None) -> KeyCache:
    """Let an application cache its keys for so long, and look them up in another store."""
    ring = KeyCache(open_store or (lambda: client.keys), cache_s)
    client.app.state.key_cache, client.app.state.gate = ring, Gate(client.service.settings.require_key, None, ring)
    return ring


def test_a_revoked_key_is_refused_once_the_cache_expires(client: Client) -> None:
    cache_keys(client, 0.2)
    client.use_key(client.make_key("write", name="ci"))
    assert client.send("POST", RETRAIN).status_code == 202
    client.keys.revoke("ci")
    wait_until(lambda: client.send("POST", RETRAIN).status_code == 401)
    assert "revoked" in challenge_of(client.send("POST", RETRAIN), 401)


def test_a_cached_key_is_not_looked_up_again(client: Client) -> None:
    n_lookup = 0

    def open_store() -> KeyStore:
        nonlocal n_lookup
        n_lookup += 1
        return client.keys

    cache_keys(client, 3600.0, open_store)
    assert [client.send("POST", RETRAIN).status_code for _ in range(3)] == [202] * 3
    assert n_lookup == 1


def test_guessed_keys_beyond_the_rate_limit_are_refused_without_a_lookup(home: Path) -> None:
    n_lookup = 0
    with running(create_app(Settings(home=home, poll_s=3600))) as service:

        def open_store() -> KeyStore:
            nonlocal n_lookup
            n_lookup += 1
            return service.keys

        ring = KeyCache(open_store)
        service.app.state.key_cache, service.app.state.gate = ring, Gate("write", RateLimits("4/hour"), ring)
        known = service.make_key("read")
        service.use_key(known)
        assert service.get(RETRAIN).headers["ratelimit-remaining"] == "3"
        assert service.get("/metrics").status_code == 200, "unlimited paths are not counted"
        n_lookup, statuses = 0, []
        for i, path in enumerate([RETRAIN, RETRAIN, "/metrics", *[RETRAIN, "/metrics"] * 10]):
            service.use_key(f"made up {i}")
            statuses.append(service.get(path).status_code)
        assert statuses == [401, 401, 401] + [429] * 20
        assert n_lookup == 3
        service.use_key(known)
        assert service.get(RETRAIN).headers["ratelimit-remaining"] == "2", "a key has its own count"


def test_the_key_is_checked_before_the_body(client: Client) -> None:
    client.use_key(None)
    for body in ("{", "x" * 2_000_000, "[" * 10_000):
        problem_of(client.post_text(MEASURE, body), 401)


def test_a_closed_service_requires_keys_for_reading_and_predicting(closed: Client) -> None:
    for path in ("/v1/models", "/v1/predictor", "/metrics"):
        problem_of(closed.get(path), 401)
    problem_of(closed.get("/v1/nothing"), 404)
    problem_of(closed.post(PREDICT, QUESTION), 401)
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert closed.get(path).status_code == 200
    closed.use_key(closed.make_key("read"))
    assert closed.get("/metrics").status_code == 200
    assert closed.post(PREDICT, QUESTION).status_code == 200
    problem_of(closed.post(MEASURE, ROWS), 403)


def fail() -> KeyStore:
    raise NotReadyError("the store does not answer")


def test_a_cached_key_is_valid_while_the_store_does_not_answer(closed: Client) -> None:
    known, other = closed.make_key("write"), closed.make_key("write")
    store = [closed.keys]
    cache_keys(closed, 0.0, lambda: store[0] if store else fail())
    closed.use_key(known)
    assert closed.post(PREDICT, QUESTION).status_code == 200
    store.clear()
    assert closed.post(PREDICT, QUESTION).status_code == 200
    closed.use_key(other)
    assert int(closed.post(PREDICT, QUESTION).headers["retry-after"]) > 0
    problem_of(closed.post(PREDICT, QUESTION), 503)


def test_a_key_that_cannot_be_looked_up_is_ignored_where_none_is_needed(client: Client) -> None:
    cache_keys(client, 0.0, fail)
    assert client.post(PREDICT, QUESTION).status_code == 200
    problem_of(client.post(MEASURE, ROWS), 503)


def test_a_key_of_the_scope_admin_promotes_a_version(client: Client) -> None:
    version = register_copy(client.service)
    client.use_key(client.make_key("write"))
    problem_of(client.send("PUT", "/v1/predictor", "{}"), 403)
    client.use_key(client.make_key("admin"))
    json = {"content-type": "application/json"}
    answer = client.send("PUT", "/v1/predictor", f'{{"version": "{version}"}}', json)
    assert answer.json()["version"] == version == client.get("/v1/predictor").json()["version"]
    assert problem_of(client.send("PUT", "/v1/predictor", '{"version": "99"}', json), 404)["field"] == "version"


ADMIN = {
    ("PUT", "/v1/predictor"), ("POST", "/v1/predictor/rollback"), ("PUT", "/v1/predictor/challenger"),
    ("DELETE", "/v1/predictor/challenger"), ("POST", f"{RETRAIN}/{{retraining_id}}/cancellation"),
}  # fmt: skip
WRITE = {
    ("POST", RETRAIN), ("DELETE", "/v1/models/{name:path}"), ("POST", "/v1/stacks"), ("DELETE", "/v1/stacks/{name}"),
    *(("POST", f"{MEASURE}{part}") for part in ("", "/files", "/withdrawals", "/restorations", "/confirmations")),
    *(("POST", f"/v1/training/measurements{part}") for part in ("", "/files")),
}  # fmt: skip
OPEN = {"/healthz", "/readyz", "/", "/docs", "/page/{name:path}"}


def routes_of(router: APIRouter) -> Iterator[APIRoute]:
    """Yield the routes of a router and of those in it."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            yield route
        elif inner := getattr(route, "original_router", None):
            yield from routes_of(inner)


def test_every_route_declares_its_scope() -> None:
    routers = (*(module.router for module in ROUTERS), jobs.files)
    routes = [route for router in routers for route in routes_of(router)]
    assert {route.path for route in routes if not isinstance(route, GuardedRoute)} == OPEN
    guarded = [route for route in routes if isinstance(route, GuardedRoute)]
    scopes = {(m, r.path): declared_scope(r.dependant) for r in guarded for m in r.methods or ()}
    assert {key for key, scope in scopes.items() if scope == "admin"} == ADMIN
    assert {key for key, scope in scopes.items() if scope == "write"} == WRITE
    assert len(scopes) > 40


@pytest.mark.parametrize("require", ["write", "all"])
def test_the_openapi_document_has_the_scope_of_each_operation(home: Path, require: Literal["write", "all"]) -> None:
    document = create_app(Settings(home=home, require_key=require)).openapi()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for method, path in ADMIN | WRITE:
        scope = "admin" if (method, path) in ADMIN else "write"
        assert document["paths"][path.replace(":path", "")][method.lower()]["security"] == [{"key": [scope]}]
    of_predictions = document["paths"][PREDICT]["post"].get("security")
    assert of_predictions == (None if require == "write" else [{"key": ["read"]}])
    assert "security" not in document["paths"]["/readyz"]["get"]


def test_a_key_that_nobody_looked_up_has_no_presumed_caller() -> None:
    state = SimpleNamespace(
        key_cache=SimpleNamespace(cached={"revoked": SimpleNamespace(name="r", state="revoked")}.get)
    )
    scope = {"type": "http", "app": SimpleNamespace(state=state), "client": ("10.0.0.1", 1)}
    assert presume_caller({**scope, "headers": []}) == "10.0.0.1"
    for credentials in (b"Bearer unknown", b"Bearer revoked", b"Basic a"):
        assert not presume_caller({**scope, "headers": [(b"authorization", credentials)]})


MODELS = "/v1/retrainings"


@pytest.fixture
def limited(home: Path) -> Iterator[Client]:
    with running(create_app(Settings(home=home, poll_s=3600, rate_limit="3/hour"))) as client:
        yield client


def test_a_request_over_the_limit_has_retry_after(limited: Client) -> None:
    remaining = [limited.get(MODELS).headers["ratelimit-remaining"] for _ in range(3)]
    assert remaining == ["2", "1", "0"]
    response = limited.get(MODELS)
    assert "requests is reached; try again in" in problem_of(response, 429)["detail"]
    assert response.headers["ratelimit-limit"] == "3"
    assert response.headers["ratelimit-policy"] == "3;w=3600"
    assert 0 < int(response.headers["retry-after"]) <= 3600
    assert limited.get("/readyz").status_code == limited.get("/metrics").status_code == 200


def test_each_key_and_each_address_has_its_own_count(limited: Client) -> None:
    statuses = []
    for key in (limited.make_key("read"), limited.make_key("read"), None, "nonsense"):
        limited.use_key(key)
        statuses.append([limited.get(MODELS).status_code for _ in range(4)])
    of_key, of_address = [200, 200, 200, 429], [200, 429, 429, 429]
    assert statuses == [of_key, of_key, of_address, [429] * 4], "a first request counts for its address too"


def test_rates_are_limited_by_default(shared: Client) -> None:
    assert shared.get(MODELS).headers["ratelimit-policy"] == "1000;w=1"


def test_the_headers_describe_the_tightest_of_several_limits() -> None:
    async def hits() -> list[tuple[bool, str]]:
        rates = RateLimits("2/hour; 100/day")
        answers = [await rates.hit("me") for _ in range(3)]
        return [(is_admitted, headers["ratelimit-policy"]) for is_admitted, headers in answers]

    assert anyio.run(hits) == [(True, "2;w=3600"), (True, "2;w=3600"), (False, "2;w=3600")]


def test_a_caller_that_waits_for_the_reset_is_admitted() -> None:
    async def hits() -> bool:
        rates = RateLimits("2/second")
        is_admitted = True
        while is_admitted:
            is_admitted, headers = await rates.hit("me")
        time.sleep(int(headers["ratelimit-reset"]))
        return (await rates.hit("me"))[0]

    assert anyio.run(hits)
