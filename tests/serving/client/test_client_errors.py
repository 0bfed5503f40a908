"""What the client raises, and when it asks again."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from roofcast.client import (
    Client,
    InputError,
    NoAnswerError,
    NotAllowedError,
    NotReadyError,
    RoofcastError,
    ServiceError,
    TooManyRequestsError,
    UnknownNameError,
    UnreachableError,
)
from tests.serving.client.test_client import Wire
from tests.serving.http_client import MODEL, a_demand, a_question
from tests.serving.http_client import Client as Bridge


def problem(status: int, **headers: str) -> httpx.Response:
    body = {"status": status, "detail": "no", "field": "model", "did_you_mean": ["a"], "request_id": "r"}
    return httpx.Response(status, json=body, headers=headers)


def serving(*answers: httpx.Response | Exception) -> tuple[Client, list[httpx.Request]]:
    """Return a client whose requests are answered by these, one after another, and the requests."""
    asked: list[httpx.Request] = []
    waiting = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        following = waiting.pop(0)
        if isinstance(following, Exception):
            raise following
        return following

    return Client("http://test", "secret", transport=httpx.MockTransport(answer)), asked


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, NotAllowedError), (403, NotAllowedError), (404, UnknownNameError), (409, NoAnswerError),
        (413, InputError), (415, InputError), (422, InputError), (500, ServiceError), (502, ServiceError),
    ],
)  # fmt: skip
def test_a_problem_is_an_error_of_its_kind(status: int, kind: type[RoofcastError]) -> None:
    client, asked = serving(problem(status))
    with pytest.raises(kind, match="no") as raised:
        client.models()
    error = raised.value
    assert (error.status, error.field, error.did_you_mean, error.request_id) == (status, "model", ["a"], "r")
    assert len(asked) == 1
    assert asked[0].headers["authorization"] == "Bearer secret"
    assert str(pickle.loads(pickle.dumps(error))) == "no"  # noqa: S301  (our own)


@pytest.mark.parametrize(
    ("ask", "n_asked"),
    [(lambda c: c.recommend(**a_demand()), 3), (lambda c: c.ready(), 3), (lambda c: c.retrain(), 1)],
)
def test_connections_that_fail_are_tried_again_unless_it_would_be_done_twice(
    ask: Callable[[Client], Any], n_asked: int
) -> None:
    done = httpx.Response(200, json={"status": "ready"})
    client, asked = serving(httpx.ReadError("gone"), httpx.ReadTimeout("late"), done)
    if n_asked == 1:
        with pytest.raises(UnreachableError, match="ReadError: gone"):
            ask(client)
    else:
        assert ask(client) == {"status": "ready"}
    assert len(asked) == n_asked


def test_what_was_not_taken_is_sent_again_when_the_service_says(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    done = httpx.Response(202, json={"state": "queued"})
    client, asked = serving(problem(429, **{"retry-after": "7"}), problem(503, **{"retry-after": "5"}), done)
    assert client.retrain()["state"] == "queued"
    assert slept == [7, 5]
    assert [request.content for request in asked] == [b""] * 3


@pytest.mark.parametrize(("status", "kind"), [(429, TooManyRequestsError), (503, NotReadyError)])
def test_who_has_waited_in_vain_is_told_how_long_to_wait(
    monkeypatch: pytest.MonkeyPatch, status: int, kind: type[RoofcastError]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    client, asked = serving(*[problem(status, **{"retry-after": "9"}) for _ in range(4)])
    with pytest.raises(kind) as raised:
        client.models()
    assert raised.value.retry_after_s == 9
    assert len(asked) == 4


def test_an_answer_that_is_no_problem_is_told_by_its_status() -> None:
    client, _ = serving(httpx.Response(502, text="<html>"))
    with pytest.raises(ServiceError, match="502 Bad Gateway") as raised:
        client.models()
    assert raised.value.field == raised.value.request_id == ""


def test_a_name_that_is_not_known_is_told_with_those_that_are(shared: Bridge) -> None:
    with Client("http://test", transport=Wire(shared)) as client:
        with pytest.raises(UnknownNameError) as raised:
            client.recommend(**a_demand(model="llama-3.1-8"))
        assert MODEL in raised.value.did_you_mean
        with pytest.raises(InputError, match="ttft: is not an input column"):
            client.predict([a_question(ttft=1)])
