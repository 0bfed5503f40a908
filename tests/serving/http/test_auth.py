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
from roofcast.serving.http.auth import ADMIN_ROUTES, READING_POSTS, needed_scope
from tests.conditions import wait_until
from tests.conftest import QUICK
from tests.serving.http.test_app import register_copy
from tests.serving.http_client import Client, a_demand, a_measurement, a_question, problem_of, running

MEASURE, RETRAIN, PREDICT = "/v1/measurements", "/v1/retrainings", "/v1/predictions"
ROWS = {"rows": [a_measurement()]}
QUESTION = {"rows": [a_question()]}


@pytest.fixture
def shut(home: Path) -> Iterator[Client]:
    """Return a client, with no key, of a service that asks everyone for one."""
    with running(create_app(Settings(home=home, training=QUICK, poll_s=3600, require_key="all"))) as opened:
        opened.use_key(None)
        yield opened


def challenge_of(response: httpx.Response, status: int) -> str:
    problem_of(response, status)
    return response.headers["www-authenticate"]


def test_reading_and_asking_are_open_and_writing_is_not(client: Client) -> None:
    client.use_key(None)
    assert client.get(MEASURE).status_code == 200
    assert client.post(PREDICT, QUESTION).status_code == 200
    assert client.post("/v1/recommendations", a_demand()).status_code == 200
    for response in (client.post(MEASURE, ROWS), client.send("POST", RETRAIN), client.send("DELETE", "/v1/models")):
        assert challenge_of(response, 401) == 'Bearer realm="roofcast"'
        assert "roofcast keys create NAME --scope write" in response.json()["detail"]
    assert client.bench.store.count() == 0
    assert client.bench.store.retrainings.load() == []


def test_a_key_that_may_write_writes(client: Client) -> None:
    client.use_key(client.make_key("write"))
    assert client.post(MEASURE, ROWS).status_code == 201
    assert client.send("POST", RETRAIN).status_code == 202


def test_who_may_not_is_told_why(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
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
            "a bad key is told of even where none is asked"
        )
    for header in ("Basic abc", "Bearer", "nonsense"):
        problem_of(client.send("POST", RETRAIN, headers={"authorization": header}), 401)


def test_a_revoked_key_opens_nothing_within_seconds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "KEY_CACHE_S", 0.2)
    client.use_key(client.make_key("write", name="ci"))
    assert client.send("POST", RETRAIN).status_code == 202
    client.keys.revoke("ci")
    wait_until(lambda: client.send("POST", RETRAIN).status_code == 401)
    assert "revoked" in challenge_of(client.send("POST", RETRAIN), 401)


def test_a_known_key_is_not_looked_up_again_at_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = client.app.state.key_ring
    monkeypatch.setattr(auth, "KEY_CACHE_S", 3600.0)
    assert client.send("POST", RETRAIN).status_code == 202
    monkeypatch.setattr(ring, "_open_store", None)
    assert client.send("POST", RETRAIN).status_code == 202


def test_who_guesses_keys_beyond_the_limit_is_refused_without_a_look(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    find = KeyStore.find

    def looking(keys: KeyStore, digest: str) -> ApiKey | None:
        looked_up.append(digest)
        return find(keys, digest)

    with running(create_app(Settings(home=home, poll_s=3600, rate_limit="3/hour"))) as opened:
        known, other = opened.make_key("read"), opened.make_key("read")
        opened.use_key(known)
        assert opened.get(RETRAIN).status_code == 200
        monkeypatch.setattr(KeyStore, "find", looking)
        opened.use_key(other)
        assert opened.get("/metrics").status_code == 200, "what is not limited is not counted"
        looked_up.clear()
        statuses = []
        for i, path in enumerate([RETRAIN, RETRAIN, "/metrics", *[RETRAIN, "/metrics"] * 10]):
            opened.use_key(f"made up {i}")
            statuses.append(opened.get(path).status_code)
        assert statuses == [401, 401, 401] + [429] * 20
        assert len(looked_up) == 4, "the first that is refused is looked up too"
        for key in (known, other):
            opened.use_key(key)
            left = [opened.get(RETRAIN).headers["ratelimit-remaining"] for _ in range(2)]
            assert left == (["1", "0"] if key is known else ["2", "1"]), "a key has its own count"


def test_the_key_is_asked_for_before_the_body_is_looked_at(client: Client) -> None:
    client.use_key(None)
    for body in ("{", "x" * 2_000_000, "[" * 10_000):
        problem_of(client.post_text(MEASURE, body), 401)


def test_everything_may_take_a_key(shut: Client) -> None:
    for path in ("/v1/models", "/v1/predictor", "/metrics", "/v1/nothing"):
        problem_of(shut.get(path), 401)
    problem_of(shut.post(PREDICT, QUESTION), 401)
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert shut.get(path).status_code == 200
    shut.use_key(shut.make_key("read"))
    assert shut.get("/metrics").status_code == 200
    assert shut.post(PREDICT, QUESTION).status_code == 200
    problem_of(shut.post(MEASURE, ROWS), 403)


def test_a_known_key_goes_on_while_the_store_does_not_answer(shut: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise NotReadyError("the store does not answer")

    known, other = shut.make_key("write"), shut.make_key("write")
    shut.use_key(known)
    assert shut.post(PREDICT, QUESTION).status_code == 200
    monkeypatch.setattr(auth, "KEY_CACHE_S", 0.0)
    assert shut.post(PREDICT, QUESTION).status_code == 200
    monkeypatch.setattr(shut.app.state.key_ring, "_open_store", lambda: SimpleNamespace(find=fail))
    assert shut.post(PREDICT, QUESTION).status_code == 200
    shut.use_key(other)
    assert int(shut.post(PREDICT, QUESTION).headers["retry-after"]) > 0
    problem_of(shut.post(PREDICT, QUESTION), 503)


def test_a_key_hinders_nobody_who_needs_none(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise NotReadyError("the store does not answer")

    monkeypatch.setattr(client.app.state.key_ring, "_open_store", lambda: SimpleNamespace(find=fail))
    assert client.post(PREDICT, QUESTION).status_code == 200
    problem_of(client.post(MEASURE, ROWS), 503)


def test_admins_put_another_version_into_service(client: Client) -> None:
    version = register_copy(client.bench)
    client.use_key(client.make_key("write"))
    problem_of(client.send("PUT", "/v1/predictor", "{}"), 403)
    client.use_key(client.make_key("admin"))
    json = {"content-type": "application/json"}
    answer = client.send("PUT", "/v1/predictor", f'{{"version": "{version}"}}', json)
    assert answer.json()["version"] == version == client.get("/v1/predictor").json()["version"]
    assert problem_of(client.send("PUT", "/v1/predictor", '{"version": "99"}', json), 404)["field"] == "version"


def test_whatever_may_change_something_takes_a_key_and_the_document_says_so(shared: Client) -> None:
    document = shared.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    routes = [route for module in ROUTERS for route in module.router.routes if isinstance(route, APIRoute)]
    changing = {
        (m, r.path) for r in routes for m in (r.methods or set()) - {"GET", "HEAD"} if r.path not in READING_POSTS
    }
    for_admins = {("PUT", "/v1/predictor"), ("POST", "/v1/predictor/rollback")}
    assert changing == {("POST", MEASURE), ("POST", RETRAIN), *for_admins}
    for method, path in changing:
        scope = "admin" if path in ADMIN_ROUTES else "write"
        assert needed_scope(method, path, "write") == scope
        assert document["paths"][path][method.lower()]["security"] == [{"key": [scope]}]
    assert "security" not in document["paths"][PREDICT]["post"]


def test_all_that_tells_something_is_where_a_key_can_guard_it() -> None:
    routes = {route.path for module in ROUTERS for route in module.router.routes if isinstance(route, APIRoute)}
    open_to_all = {path for path in routes if needed_scope("GET", path, "all") is None}
    assert open_to_all == {"/healthz", "/readyz", "/", "/page.js", "/page.css"}
