"""Errors and retries of the client."""

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
    """Return a client whose requests get these answers in turn, and the list of its requests."""
    requests: list[httpx.Request] = []
    pending = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        next_answer = pending.pop(0)
        if isinstance(next_answer, Exception):
            raise next_answer
        return next_answer

    return Client("http://test", "secret", transport=httpx.MockTransport(answer)), requests


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, NotAllowedError), (403, NotAllowedError), (404, UnknownNameError), (409, NoAnswerError),
        (413, InputError), (415, InputError), (422, InputError), (500, ServiceError), (502, ServiceError),
    ],
)  # fmt: skip
def test_each_status_raises_its_class_of_error(status: int, kind: type[RoofcastError]) -> None:
    client, requests = serving(problem(status))
    with pytest.raises(kind, match="no") as raised:
        client.models()
    error = raised.value
    assert (error.status, error.field, error.did_you_mean, error.request_id) == (status, "model", ["a"], "r")
    assert len(requests) == 1
    assert requests[0].headers["authorization"] == "Bearer secret"
    assert str(pickle.loads(pickle.dumps(error))) == "no"  # noqa: S301  (our own)


@pytest.mark.parametrize(
    ("send", "n_request"),
    [(lambda c: c.recommend(**a_demand()), 3), (lambda c: c.ready(), 3), (lambda c: c.retrain(), 1)],
)
def test_failed_connections_are_retried_if_the_request_is_idempotent(
    send: Callable[[Client], Any], n_request: int
) -> None:
    done = httpx.Response(200, json={"status": "ready"})
    client, requests = serving(httpx.ReadError("gone"), httpx.ReadTimeout("late"), done)
    if n_request == 1:
        with pytest.raises(UnreachableError, match="ReadError: gone"):
            send(client)
    else:
        assert send(client) == {"status": "ready"}
    assert len(requests) == n_request


def test_retries_wait_as_retry_after_says(monkeypatch: pytest.MonkeyPatch) -> None:
    waits_s: list[float] = []
    monkeypatch.setattr("time.sleep", waits_s.append)
    done = httpx.Response(202, json={"state": "queued"})
    client, requests = serving(problem(429, **{"retry-after": "7"}), problem(503, **{"retry-after": "5"}), done)
    assert client.retrain()["state"] == "queued"
    assert waits_s == [7, 5]
    assert [request.content for request in requests] == [b'{"target":"inference"}'] * 3


@pytest.mark.parametrize(("status", "kind"), [(429, TooManyRequestsError), (503, NotReadyError)])
def test_the_error_after_the_last_retry_has_retry_after(
    monkeypatch: pytest.MonkeyPatch, status: int, kind: type[RoofcastError]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    client, requests = serving(*[problem(status, **{"retry-after": "9"}) for _ in range(4)])
    with pytest.raises(kind) as raised:
        client.models()
    assert raised.value.retry_after_s == 9
    assert len(requests) == 4


def test_an_answer_without_problem_details_is_described_by_its_status() -> None:
    client, _ = serving(httpx.Response(502, text="<html>"))
    with pytest.raises(ServiceError, match="502 Bad Gateway") as raised:
        client.models()
    assert raised.value.field == raised.value.request_id == ""


def test_the_error_of_an_unknown_name_lists_similar_ones(shared: Bridge) -> None:
    with Client("http://test", transport=Wire(shared)) as client:
        with pytest.raises(UnknownNameError) as raised:
            client.recommend(**a_demand(model="llama-3.1-8"))
        assert MODEL in raised.value.did_you_mean
        with pytest.raises(InputError, match="ttft: is not an input column"):
            client.predict([a_question(ttft=1)])
