import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from starlette.requests import Request
from starlette.responses import Response

from roofcast.serving.abandonment import AbandonedError, stop_if_abandoned
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.access import CALLER
from roofcast.serving.http.app import create_app
from roofcast.serving.http.load_shedding import EXPENSIVE_BYTE, EarlyRefusal, Lanes
from roofcast.serving.http.problem_details import RefusedError, error_response
from roofcast.serving.http.routes import predictions
from roofcast.serving.http.routes.predictions import ExplanationResponse
from tests.serving.http_client import a_question, running

PREDICTIONS, EXPLANATIONS, MODELS = "/v1/predictions", "/v1/explanations", "/v1/models"
pytestmark = pytest.mark.anyio


class Exchange:
    """A request and its client, which stays until `leaves` is set."""

    def __init__(self, path: str = PREDICTIONS, caller: str = "a", method: str = "POST", body: bytes = b"{}") -> None:
        headers = [(b"host", b"test")]
        request = {"type": "http", "http_version": "1.1", "method": method, "path": path, "headers": headers}
        self.scope: dict[str, Any] = {**request, CALLER: caller}
        self.leaves = anyio.Event()
        self.answer: list[Mapping[str, Any]] = []
        self._pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive(self) -> Any:
        if not self._pending:
            await self.leaves.wait()
        return self._pending.pop() if self._pending else {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.answer.append(message)

    async def through(self, app: Any) -> None:
        await app(self.scope, self.receive, self.send)

    @property
    def status(self) -> int:
        """Status of the response; 0 without one."""
        return int(self.answer[0]["status"]) if self.answer else 0


class Computation:
    """An application whose computations end when `may_end` is set."""

    def __init__(self) -> None:
        self.may_end = anyio.Event()
        self.n_running = self.n_started = self.most_running = 0

    async def __call__(self, _scope: Any) -> Response:
        self.n_started += 1
        self.n_running += 1
        self.most_running = max(self.most_running, self.n_running)
        await self.may_end.wait()
        self.n_running -= 1
        return Response()


class Shedding:
    """A route that computes its responses in slots."""

    def __init__(self, compute: Callable[[Any], Awaitable[Response]], **limits: Any) -> None:
        self.compute = compute
        defaults = {"max_running": 1, "max_expensive": 1, "max_waiting": 4, "max_wait_s": 30.0}
        self.lanes = Lanes(**(defaults | limits))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        with suppress(AbandonedError):
            try:
                async with self.lanes.slot(Request(scope, receive), body):
                    response = await self.compute(scope)
            except RefusedError as error:
                response = error_response(error)
            await response(scope, receive, send)


async def start(group: TaskGroup, app: Any, *exchanges: Exchange) -> None:
    """Send requests, each when those before it wait or are computed."""
    for each in exchanges:
        group.start_soon(each.through, app)
        await anyio.wait_all_tasks_blocked()


async def test_requests_beyond_the_queue_are_refused_at_once() -> None:
    app = Computation()
    shed = Shedding(app, max_waiting=2)
    admitted, refused = [Exchange(caller=name) for name in "abc"], Exchange(caller="d")
    async with anyio.create_task_group() as group:
        await start(group, shed, *admitted)
        await refused.through(shed)
        app.may_end.set()
    assert refused.status == 503
    assert dict(refused.answer[0]["headers"])[b"retry-after"] == b"1"
    assert [each.status for each in admitted] == [200] * 3
    assert app.most_running == 1


async def test_a_full_queue_is_noticed_before_anything_else_is_done() -> None:
    app, calls = Computation(), []
    shed = Shedding(app, max_waiting=1)

    async def middle(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope["path"])
        await shed(scope, receive, send)

    early = EarlyRefusal(middle, shed.lanes)
    admitted = [Exchange(), Exchange()]
    large = Exchange()
    large.scope["headers"] = [(b"content-length", b"%d" % (EXPENSIVE_BYTE + 1))]
    probe = Exchange("/healthz", method="GET")
    refused = [Exchange(), Exchange()]
    async with anyio.create_task_group() as group:
        await start(group, early, *admitted)
        for each in refused:
            await each.through(early)
        assert [each.status for each in refused] == [503, 503]
        assert len(calls) == 2
        group.start_soon(probe.through, early)
        await start(group, early, large)
        assert len(calls) == 4
        app.may_end.set()
    headers = dict(refused[0].answer[0]["headers"])
    assert headers[b"retry-after"] == b"1"
    assert headers[b"content-type"] == b"application/problem+json"


@pytest.mark.parametrize("has_key", [False, True])
async def test_a_caller_who_has_his_share_of_the_queue_is_noticed_before_anything_else_is_done(has_key: bool) -> None:
    app, calls = Computation(), []
    shed = Shedding(app, max_waiting=4)
    keys = {secret: SimpleNamespace(name=secret, state="valid") for secret in ("a", "b")}
    server = SimpleNamespace(state=SimpleNamespace(key_cache=SimpleNamespace(cached=keys.get)))

    async def middle(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope[CALLER])
        await shed(scope, receive, send)

    def exchange(name: str) -> Exchange:
        made = Exchange(caller=f"key:{name}" if has_key else name)
        made.scope |= {"client": ("proxy" if has_key else name, 1), "app": server}
        if has_key:
            made.scope["headers"] = [(b"authorization", b"Bearer " + name.encode())]
        return made

    early = EarlyRefusal(middle, shed.lanes)
    admitted, refused, other = [exchange("a") for _ in range(4)], exchange("a"), exchange("b")
    async with anyio.create_task_group() as group:
        await start(group, early, *admitted)
        await refused.through(early)
        await start(group, early, other)
        app.may_end.set()
    assert refused.status == 503
    assert calls == [each.scope[CALLER] for each in (*admitted, other)]
    assert [each.status for each in (*admitted, other)] == [200] * 5


async def test_a_client_that_does_not_read_its_response_has_no_slot() -> None:
    app = Computation()
    app.may_end.set()
    shed, slow, next_ = Shedding(app), Exchange(), Exchange()
    reads = anyio.Event()

    async def send_slowly(message: Any) -> None:
        await reads.wait()
        await slow.send(message)

    async with anyio.create_task_group() as group:
        group.start_soon(shed, slow.scope, slow.receive, send_slowly)
        await anyio.wait_all_tasks_blocked()
        await next_.through(shed)
        assert (slow.status, next_.status) == (0, 200)
        reads.set()
    assert slow.status == 200
    assert not shed.lanes.lane(slow.scope, 0).slots.locked()  # type: ignore[union-attr]


async def test_a_body_of_unknown_size_is_not_refused_early() -> None:
    app = Computation()
    shed = Shedding(app, max_waiting=0)
    early = EarlyRefusal(shed, shed.lanes)
    busy, plain = Exchange(), Exchange()
    large = Exchange(body=b" " * (EXPENSIVE_BYTE + 1))
    large.scope["headers"] = [(b"transfer-encoding", b"chunked")]
    async with anyio.create_task_group() as group:
        await start(group, early, busy)
        await plain.through(early)
        await start(group, early, large)
        app.may_end.set()
    assert [each.status for each in (busy, plain, large)] == [200, 503, 200]


async def test_a_request_that_waits_too_long_is_refused() -> None:
    app = Computation()
    shed = Shedding(app, max_wait_s=0.01)
    first, second, third = Exchange(), Exchange(), Exchange()
    async with anyio.create_task_group() as group:
        await start(group, shed, first)
        await second.through(shed)
        app.may_end.set()
    await third.through(shed)
    assert [each.status for each in (first, second, third)] == [200, 503, 200]
    assert b"no slot was free within 0.01 seconds" in second.answer[1]["body"]


async def test_a_request_whose_client_left_is_never_computed() -> None:
    app = Computation()
    shed = Shedding(app)
    first, gone, last = Exchange(), Exchange(), Exchange()
    async with anyio.create_task_group() as group:
        await start(group, shed, first, gone, last)
        gone.leaves.set()
        await anyio.wait_all_tasks_blocked()
        app.may_end.set()
    assert [each.status for each in (first, gone, last)] == [200, 0, 200]
    assert app.n_started == 2


async def test_one_caller_cannot_fill_the_queue() -> None:
    app = Computation()
    shed = Shedding(app)
    greedy, other = [Exchange() for _ in range(5)], Exchange(caller="b")
    async with anyio.create_task_group() as group:
        await start(group, shed, *greedy, other)
        app.may_end.set()
    assert [each.status for each in greedy] == [200] * 4 + [503]
    assert other.status == 200


@pytest.mark.parametrize(
    ("path", "method", "body", "n_slot"),
    [
        pytest.param(EXPLANATIONS, "POST", b"{}", 1, id="explanations"),
        pytest.param(PREDICTIONS, "POST", b" " * (EXPENSIVE_BYTE + 1), 1, id="predictions of many rows"),
        pytest.param(PREDICTIONS, "POST", b'{"stack": "a", "references": [{}]}', 1, id="a stack and references"),
        pytest.param(PREDICTIONS, "POST", b'{"st\\u0061ck": "a", "references": []}', 1, id="an escaped stack"),
        pytest.param("/v1/stacks", "POST", b"{}", 1, id="rows of a stack"),
        pytest.param("/v1/stacks/rack", "GET", b"", 1, id="reports of a stack"),
        pytest.param(PREDICTIONS, "POST", b'{"stack": "a", "rows": []}', 4, id="a stack alone"),
        pytest.param("/v1/stacks", "GET", b"", 4, id="stacks"),
        pytest.param(MODELS, "GET", b"", 4, id="listings"),
    ],
)
async def test_predictions_do_not_wait_for_other_kinds(path: str, method: str, body: bytes, n_slot: int) -> None:
    others, prediction = Computation(), Computation()
    prediction.may_end.set()

    async def app(scope: Any) -> Response:
        return await (prediction if scope["id"] == "prediction" else others)(scope)

    shed = Shedding(app)
    async with anyio.create_task_group() as group:
        for each in [Exchange(path, name, method, body) for name in "abcde"]:
            group.start_soon(shed, {**each.scope, "id": ""}, each.receive, each.send)
        await anyio.wait_all_tasks_blocked()
        quick = Exchange()
        await shed({**quick.scope, "id": "prediction"}, quick.receive, quick.send)
        assert quick.status == 200
        assert others.n_started == n_slot
        others.may_end.set()


@pytest.mark.parametrize(
    ("query", "body", "name"),
    [
        (b"", b'{"rows": [], "stack": "a"}', "others"),
        (b"stack=a", b'{"rows": []}', "others"),
        (b"", b'{"rows": [], "references": [{}]}', "predictions"),
        (b"stack=a", b'{"rows": [], "references": [{}]}', "dear"),
        (b"%73tack=a&reference=%7B%7D", b"{}", "dear"),
    ],
)
def test_a_prediction_that_names_a_stack_uses_the_store(query: bytes, body: bytes, name: str) -> None:
    scope = {**Exchange(PREDICTIONS, "a", "POST", body).scope, "query_string": query}
    lane = Lanes(1, 1, 1, 1.0).lane(scope, len(body), body)
    assert lane is not None
    assert lane.name == name


@pytest.mark.parametrize("path", [EXPLANATIONS, "/v1/recommendations", "/v1/drift"])
async def test_a_flood_without_keys_leaves_a_slot_to_a_key(path: str) -> None:
    app = Computation()
    shed = Shedding(app, max_expensive=2, max_wait_s=0.02)
    flood = [Exchange(EXPLANATIONS, caller=f"10.0.0.{i % 9}") for i in range(20)]
    keyed = [Exchange(path, caller="key:a", method="GET" if path.endswith("drift") else "POST") for _ in range(2)]
    async with anyio.create_task_group() as group:
        await start(group, shed, *flood, keyed[0])
        assert app.n_running == 3
        await keyed[1].through(shed)
        app.may_end.set()
    assert [each.status for each in keyed] == [200, 503]
    assert sum(each.status == 200 for each in flood) == 2


@pytest.mark.parametrize("path", ["/healthz", "/", "/docs"])
async def test_probes_and_pages_never_wait(path: str) -> None:
    app, busy = Computation(), Exchange()
    shed = Shedding(app)
    probe = Exchange(path, method="GET")
    async with anyio.create_task_group() as group:
        group.start_soon(busy.through, shed)
        await start(group, shed, probe)
        assert app.n_running == 2
        app.may_end.set()


async def test_a_computation_in_a_thread_stops_when_its_client_leaves() -> None:
    has_left, stopped = threading.Event(), []

    def compute() -> None:
        has_left.wait()
        try:
            stop_if_abandoned()
        except AbandonedError:
            stopped.append(True)
            raise

    async def app(_scope: Any) -> Response:
        await anyio.to_thread.run_sync(compute)
        return Response()

    shed, exchange = Shedding(app), Exchange()
    async with anyio.create_task_group() as group:
        await start(group, shed, exchange)
        exchange.leaves.set()
        await anyio.wait_all_tasks_blocked()
        has_left.set()
    assert stopped == [True]
    assert exchange.status == 0
    stop_if_abandoned()


async def test_an_error_of_the_application_frees_its_slot() -> None:
    async def app(_: Any) -> Response:
        raise ZeroDivisionError

    shed = Shedding(app)
    for _ in range(3):
        each = Exchange()
        with pytest.raises(ZeroDivisionError):
            await each.through(shed)


def test_an_explanation_stops_between_its_rows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explained: list[int] = []

    class Explained:
        def to_json(self, i: int) -> dict[str, Any]:
            explained.append(i)
            return {}

    def leave_at_the_third() -> None:
        if len(explained) == 2:
            raise AbandonedError

    monkeypatch.setattr(predictions, "explain", lambda *_, **__: Explained())
    monkeypatch.setattr(ExplanationResponse, "model_validate", lambda row: row)
    monkeypatch.setattr(predictions, "stop_if_abandoned", leave_at_the_third)
    exchange = Exchange(EXPLANATIONS, body=json.dumps({"rows": [a_question()] * 5}).encode())
    exchange.scope |= {
        "headers": [(b"host", b"test"), (b"content-type", b"application/json")],
        "query_string": b"",
        "client": None,
    }
    with running(create_app(Settings(home=home, poll_s=3600))) as client:
        client.run(lambda: client.app(exchange.scope, exchange.receive, exchange.send))
    assert exchange.status == 0
    assert explained == [0, 1]


def test_the_limits_are_settings(home: Path) -> None:
    with running(create_app(Settings(home=home, poll_s=3600, max_waiting=0, max_running=1))) as client:
        assert client.post(PREDICTIONS, {"rows": [a_question()]}).status_code == 200
        assert "roofcast_requests_shed_total" in client.get("/metrics").text
