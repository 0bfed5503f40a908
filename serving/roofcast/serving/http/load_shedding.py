"""Bounded queues in front of the computations: a request waits briefly for a slot, or is answered 503."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

from anyio import move_on_after
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.serving.abandonment import IS_ABANDONED, AbandonedError
from roofcast.serving.http.auth import API, CALLER, presume_caller
from roofcast.serving.http.bulk.media import PATH as PREDICTIONS
from roofcast.serving.http.bulk.media import TRAINING_FILES_PATH, bulk_kind
from roofcast.serving.http.errors import busy_response
from roofcast.serving.http.telemetry.prometheus import SHED

DEAR_PATHS: Final = frozenset({
    "/v1/recommendations", "/v1/explanations", "/v1/training/recommendations", "/v1/training/predictions",
    "/v1/training/measurements", TRAINING_FILES_PATH, "/v1/stacks",
})  # fmt: skip
"""Routes whose POST computes for tenths of a second or longer."""

DEAR_READS: Final = ("/v1/stacks/", "/v1/drift")
"""Starts of the routes whose GET does."""

COMPARISON: Final = "/comparison"
"""End of the route that compares a version."""

DEAR_BYTE: Final = 32_768
"""Body from which a prediction counts as dear: about 150 rows. One with a stack and references counts as dear too."""

STACK: Final = b"stack"
REFERENCES: Final = b"reference"
"""Start of the names of the field and of the query parameter by which a prediction names a stack, or gives runs."""

MAX_DIGIT: Final = 10
"""Digits from which a stated length of a body is not read."""

SHED_RETRY_AFTER_S: Final = 1
CALLER_SHARE: Final = 0.75
"""Largest share of a queue that one caller may have."""
EXPECTED_SHARE: Final = 0.8
"""Share of the longest wait that a request may expect when it comes; the expectation is uncertain."""
INTERVAL_WEIGHT: Final = 0.2
"""Weight of the last interval between two releases of slots in the moving average."""


@dataclass(slots=True)
class Lane:
    """Slots for one kind of request, and the queue for them.

    Parameters
    ----------
    n_slot
        Requests computed at once.
    max_waiting
        Most requests in the queue.
    max_wait_s
        Longest time in the queue.
    """

    name: str
    n_slot: int
    max_waiting: int
    max_wait_s: float
    slots: asyncio.Semaphore = field(init=False)
    waiting: Counter[str] = field(init=False, default_factory=Counter)
    _interval_s: float = field(init=False, default=0.0)
    _last_release_s: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.n_slot)

    def is_full(self, caller: str) -> bool:
        """Return whether no slot is free and the queue has no place for a caller."""
        if not self.slots.locked():
            return False
        n_place = self._n_place()
        return self.waiting.total() >= n_place or self.waiting[caller] >= max(1, int(CALLER_SHARE * n_place))

    def _n_place(self) -> float:
        """Return the number of requests that may wait, at the pace at which slots were released of late."""
        if not self._interval_s:
            return self.max_waiting
        return min(self.max_waiting, EXPECTED_SHARE * self.max_wait_s / self._interval_s)

    def release(self) -> None:
        """Release a slot. Intervals between releases count where requests wait for the whole of them."""
        now = time.monotonic()
        if self._last_release_s is not None:
            interval_s = min(now - self._last_release_s, self.max_wait_s)
            self._interval_s += INTERVAL_WEIGHT * (interval_s - self._interval_s)
        self._last_release_s = now if self.waiting.total() else None
        self.slots.release()


class Lanes:
    """Lanes of a server process, which its middlewares share.

    Predictions, dear requests and those that use the store have slots of their own, so that none of them blocks the
    others. A prediction that names a stack uses the store.

    Parameters
    ----------
    max_running, max_dear
        Slots for predictions and for dear requests; the others have four times those for predictions.
    max_waiting
        Most requests that wait in each of the three queues.
    max_wait_s
        Longest time in a queue.
    """

    def __init__(self, max_running: int, max_dear: int, max_waiting: int, max_wait_s: float) -> None:
        self._predictions = Lane("predictions", max_running, max_waiting, max_wait_s)
        self._dear = Lane("dear", max_dear, max_waiting, max_wait_s)
        self._others = Lane("others", 4 * max_running, max_waiting, max_wait_s)

    def is_busy(self) -> bool:
        """Return whether a prediction or a dear request waits for a slot."""
        return bool(self._predictions.waiting.total() or self._dear.waiting.total())

    def lane(self, scope: Scope, body_byte: int, body: bytes = b"") -> Lane | None:
        """Return the lane of a request with a body of this size; None if it never waits: probes, pages, bulk.

        Parameters
        ----------
        body
            Empty as long as it has not arrived.
        """
        if scope["type"] != "http" or not scope["path"].startswith(API) or bulk_kind(scope):
            return None
        if scope["method"] != "POST":
            path = scope["path"]
            is_dear = scope["method"] == "GET" and (path.startswith(DEAR_READS) or path.endswith(COMPARISON))
            return self._dear if is_dear else self._others
        if scope["path"] == PREDICTIONS:
            has_stack = _has(STACK, scope, body)
            if body_byte > DEAR_BYTE or (has_stack and _has(REFERENCES, scope, body)):
                return self._dear
            return self._others if has_stack else self._predictions
        return self._dear if scope["path"] in DEAR_PATHS else self._others


class EarlyRefusal:
    """ASGI middleware that answers 503 before anything else is done for a request, if its queue has no place.

    It goes outermost: under overload, time spent on refusing is taken from the requests that are served. It does not
    read the body, so a prediction counts as one that names no stack, unless its query names one. A request whose
    headers do not state the size of its body is never refused here.
    """

    def __init__(self, app: ASGIApp, lanes: Lanes) -> None:
        self.app = app
        self.lanes = lanes
        self._refusal = busy_response("its queue is too long", SHED_RETRY_AFTER_S)
        self._refusal.headers["x-content-type-options"] = "nosniff"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, or refuse in its place."""
        n_byte = _stated_byte(scope)
        lane = None if n_byte is None else self.lanes.lane(scope, n_byte)
        if lane and lane.is_full(presume_caller(scope)):
            SHED.labels(lane.name, "refused").inc()
            await self._refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)


class LoadShedding:
    """ASGI middleware that computes few requests at once, and answers 503 to what would wait too long.

    A request whose client leaves while it waits is dropped; one that is computed stops at its next
    `stop_if_abandoned`. It goes innermost, where bodies have arrived.
    """

    def __init__(self, app: ASGIApp, lanes: Lanes) -> None:
        self.app = app
        self.lanes = lanes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application in a slot, or answer in its place."""
        if self.lanes.lane(scope, 0) is None:
            await self.app(scope, receive, send)
            return
        first = await receive()
        body = first.get("body", b"")
        lane = self.lanes.lane(scope, len(body), body)
        if lane is None or first["type"] == "http.disconnect":
            return
        departure = asyncio.ensure_future(_departure(receive))
        with ExitStack() as undo:
            undo.callback(departure.cancel)
            problem = await self._enter(lane, scope.get(CALLER, ""), departure)
            slot = undo.enter_context(ExitStack())
            if not problem:
                slot.callback(lane.release)
            if departure.done():
                SHED.labels(lane.name, "left").inc()
            elif problem:
                SHED.labels(lane.name, "refused").inc()
                await busy_response(problem, SHED_RETRY_AFTER_S)(scope, receive, send)
            else:
                await self._compute(first, departure, slot, scope, send)

    async def _enter(self, lane: Lane, caller: str, departure: asyncio.Future[None]) -> str:
        """Take a slot, waiting for it up to the limit; return the problem if there was none, else a blank."""
        if lane.is_full(caller):
            return f"{lane.waiting[caller]} of your requests wait already, and {lane.waiting.total()} of all callers"
        problem = f"no slot was free within {lane.max_wait_s:g} seconds"
        lane.waiting[caller] += 1
        try:
            with move_on_after(lane.max_wait_s) as waiting:
                departure.add_done_callback(lambda _: waiting.cancel())
                await lane.slots.acquire()
                problem = ""
        finally:
            lane.waiting -= Counter([caller])
        return problem

    async def _compute(
        self, first: Message, departure: asyncio.Future[None], slot: ExitStack, scope: Scope, send: Send
    ) -> None:
        """Call the application; release its slot once the response is there, however slowly the client reads it."""
        pending = [first]

        async def receive() -> Message:
            if not pending:
                await asyncio.shield(departure)
            return pending.pop() if pending else {"type": "http.disconnect"}

        async def send_without_slot(message: Message) -> None:
            slot.close()
            await send(message)

        token = IS_ABANDONED.set(departure.done)
        try:
            with suppress(AbandonedError):
                await self.app(scope, receive, send_without_slot)
        finally:
            IS_ABANDONED.reset(token)


def _has(name: bytes, scope: Scope, body: bytes) -> bool:
    """Return whether the query or the JSON body of a request may have a field; an escape in the body may hide it."""
    in_body = b'"' + name in body or b"\\u" in body
    return in_body or name in unquote_to_bytes(scope.get("query_string", b""))


def _stated_byte(scope: Scope) -> int | None:
    """Return the size of the body that the head of a request states; None if it is not known."""
    headers = dict(scope.get("headers", ()))
    length = headers.get(b"content-length", b"0")
    is_stated = b"transfer-encoding" not in headers and length.isdigit() and len(length) < MAX_DIGIT
    return int(length) if is_stated else None


async def _departure(receive: Receive) -> None:
    """Return when the client has left, or has its response."""
    while (await receive())["type"] != "http.disconnect":
        pass
