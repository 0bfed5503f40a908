from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from fastapi.routing import APIRoute

from roofcast.data.errors import NotReadyError
from roofcast.data.store.api_keys import ApiKey, KeyStore
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http import auth
from roofcast.serving.http.app import ROUTERS, create_app
from roofcast.serving.http.auth import READING_POSTS, needed_scope, presume_caller
from roofcast.serving.http.routes.measurements import job_measurements
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
    for response in (client.post(MEASURE, ROWS), client.send("POST", RETRAIN), client.send("DELETE", "/v1/models")):
        assert challenge_of(response, 401) == 'Bearer realm="roofcast"'
        assert "roofcast keys create NAME --scope write" in response.json()["detail"]
    assert client.service.store.count() == 0
    assert client.service.store.retrainings.load() == []


def test_a_key_of_the_scope_write_may_write(client: Client) -> None:
    client.use_key(client.make_key("write"))
    assert client.post(MEASURE, ROWS).status_code == 201
    assert client.send("POST", RETRAIN).status_code == 202


def test_the_refusal_of_a_key_has_the_reason(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_revoked_key_is_refused_once_the_cache_expires(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "KEY_CACHE_S", 0.2)
    client.use_key(client.make_key("write", name="ci"))
    assert client.send("POST", RETRAIN).status_code == 202
    client.keys.revoke("ci")
    wait_until(lambda: client.send("POST", RETRAIN).status_code == 401)
    assert "revoked" in challenge_of(client.send("POST", RETRAIN), 401)


def test_a_cached_key_is_not_looked_up_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = client.app.state.key_ring
    monkeypatch.setattr(auth, "KEY_CACHE_S", 3600.0)
    assert client.send("POST", RETRAIN).status_code == 202
    monkeypatch.setattr(ring, "_open_store", None)
    assert client.send("POST", RETRAIN).status_code == 202


def test_guessed_keys_beyond_the_rate_limit_are_refused_without_a_lookup(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    find = KeyStore.find

    def find_and_record(keys: KeyStore, digest: str) -> ApiKey | None:
        looked_up.append(digest)
        return find(keys, digest)

    with running(create_app(Settings(home=home, poll_s=3600, rate_limit="3/hour"))) as service:
        known, other = service.make_key("read"), service.make_key("read")
        service.use_key(known)
        assert service.get(RETRAIN).status_code == 200
        monkeypatch.setattr(KeyStore, "find", find_and_record)
        service.use_key(other)
        assert service.get("/metrics").status_code == 200, "unlimited paths are not counted"
        looked_up.clear()
        statuses = []
        for i, path in enumerate([RETRAIN, RETRAIN, "/metrics", *[RETRAIN, "/metrics"] * 10]):
            service.use_key(f"made up {i}")
            statuses.append(service.get(path).status_code)
        assert statuses == [401, 401, 401] + [429] * 20
        assert len(looked_up) == 4, "the first refused key is looked up too"
        for key in (known, other):
            service.use_key(key)
            remaining = [service.get(RETRAIN).headers["ratelimit-remaining"] for _ in range(2)]
            assert remaining == (["1", "0"] if key is known else ["2", "1"]), "a key has its own count"


def test_the_key_is_checked_before_the_body(client: Client) -> None:
    client.use_key(None)
    for body in ("{", "x" * 2_000_000, "[" * 10_000):
        problem_of(client.post_text(MEASURE, body), 401)


def test_a_closed_service_requires_keys_for_reading_and_predicting(closed: Client) -> None:
    for path in ("/v1/models", "/v1/predictor", "/metrics", "/v1/nothing"):
        problem_of(closed.get(path), 401)
    problem_of(closed.post(PREDICT, QUESTION), 401)
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert closed.get(path).status_code == 200
    closed.use_key(closed.make_key("read"))
    assert closed.get("/metrics").status_code == 200
    assert closed.post(PREDICT, QUESTION).status_code == 200
    problem_of(closed.post(MEASURE, ROWS), 403)


def test_a_cached_key_is_valid_while_the_store_does_not_answer(
    closed: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise NotReadyError("the store does not answer")

    known, other = closed.make_key("write"), closed.make_key("write")
    closed.use_key(known)
    assert closed.post(PREDICT, QUESTION).status_code == 200
    monkeypatch.setattr(auth, "KEY_CACHE_S", 0.0)
    assert closed.post(PREDICT, QUESTION).status_code == 200
    monkeypatch.setattr(closed.app.state.key_ring, "_open_store", lambda: SimpleNamespace(find=fail))
    assert closed.post(PREDICT, QUESTION).status_code == 200
    closed.use_key(other)
    assert int(closed.post(PREDICT, QUESTION).headers["retry-after"]) > 0
    problem_of(closed.post(PREDICT, QUESTION), 503)


def test_a_key_that_cannot_be_looked_up_is_ignored_where_none_is_needed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise NotReadyError("the store does not answer")

    monkeypatch.setattr(client.app.state.key_ring, "_open_store", lambda: SimpleNamespace(find=fail))
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


def test_every_route_that_writes_needs_a_key_and_the_openapi_document_says_so(shared: Client) -> None:
    document = shared.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    routers = (*(module.router for module in ROUTERS), job_measurements.files)
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    changing = {
        (m, r.path_format)
        for r in routes
        for m in (r.methods or set()) - {"GET", "HEAD"}
        if r.path not in READING_POSTS
    }
    challenger = "/v1/predictor/challenger"
    of_versions = {("PUT", "/v1/predictor"), ("POST", "/v1/predictor/rollback")}
    cancellation = ("POST", f"{RETRAIN}/{{retraining_id}}/cancellation")
    for_admins = {*of_versions, ("PUT", challenger), ("DELETE", challenger), cancellation}
    parts = ("", "/files", "/withdrawals", "/restorations", "/confirmations")
    of_measurements = {("POST", f"{MEASURE}{part}") for part in parts}
    of_training = {("POST", f"/v1/training/measurements{part}") for part in ("", "/files")}
    of_stacks = {("POST", "/v1/stacks"), ("DELETE", "/v1/stacks/{name}")}
    of_others = {("POST", RETRAIN), ("DELETE", "/v1/models/{name}")}
    assert changing == {*of_others, *of_measurements, *of_training, *of_stacks, *for_admins}
    for method, path in changing:
        scope = "admin" if (method, path) in for_admins else "write"
        assert needed_scope(method, path, "write") == scope
        assert document["paths"][path][method.lower()]["security"] == [{"key": [scope]}]
    assert "security" not in document["paths"][PREDICT]["post"]


def test_every_path_but_probes_and_the_page_can_require_a_key() -> None:
    routes = {route.path for module in ROUTERS for route in module.router.routes if isinstance(route, APIRoute)}
    open_to_all = {path for path in routes if needed_scope("GET", path, "all") is None}
    assert open_to_all == {"/healthz", "/readyz", "/", "/page/{name:path}"}


def test_a_key_that_nobody_looked_up_has_no_presumed_caller() -> None:
    state = SimpleNamespace(
        key_ring=SimpleNamespace(cached={"revoked": SimpleNamespace(name="r", state="revoked")}.get)
    )
    scope = {"type": "http", "app": SimpleNamespace(state=state), "client": ("10.0.0.1", 1)}
    assert presume_caller({**scope, "headers": []}) == "10.0.0.1"
    for credentials in (b"Bearer unknown", b"Bearer revoked", b"Basic a"):
        assert not presume_caller({**scope, "headers": [(b"authorization", credentials)]})
