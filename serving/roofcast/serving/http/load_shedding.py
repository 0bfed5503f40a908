"""Bounded queues in front of the computations: a request waits briefly for a slot, or is answered 503."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

from anyio import move_on_after
from cachetools import LRUCache
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from roofcast.serving.abandonment import IS_ABANDONED, AbandonedError
from roofcast.serving.http.access import API, CALLER, presume_caller
from roofcast.serving.http.body import PATH as PREDICTIONS
from roofcast.serving.http.body import TRAINING_FILES_PATH, bulk_kind
from roofcast.serving.http.problem_details import RefusedError, busy_error, error_response
from roofcast.serving.http.telemetry.prometheus import SHED

EXPENSIVE_PATHS: Final = frozenset({
    "/v1/recommendations", "/v1/explanations", "/v1/next-measurements",
    "/v1/training/recommendations", "/v1/training/predictions",
    "/v1/training/measurements", TRAINING_FILES_PATH, "/v1/stacks",
})  # fmt: skip
"""Routes whose POST computes for tenths of a second or longer."""

EXPENSIVE_READS: Final = ("/v1/stacks/", "/v1/drift")
"""Starts of the routes whose GET does."""

COMPARISON: Final = "/comparison"
"""End of the route that compares a version."""

EXPENSIVE_BYTE: Final = 32_768
"""Body from which a prediction is expensive: about 150 rows. One with a stack and references is expensive too."""

STACK: Final = b"stack"
REFERENCES: Final = b"reference"
"""Start of the names of the field and of the query parameter by which a prediction names a stack, or gives runs."""

SHED_RETRY_AFTER_S: Final = 1

ANONYMOUS: Final = "anonymous"
"""Holder of the slots of all callers without a key."""

CALLER_SHARE: Final = 0.75
"""Largest share of a queue that one caller may have."""
EXPECTED_SHARE: Final = 0.8
"""Share of the longest wait that a request may expect when it comes; the expectation is uncertain."""
INTERVAL_WEIGHT: Final = 0.2
"""Weight of the last interval between two releases of slots in the moving average."""


@dataclass(slots=True)
class Lane:
    """Slots for one kind of request, and the queue for them.

    `n_slot`: requests computed at once. `n_share`: slots of one key, and of all callers without a key together; the
    others stay free for the rest.
    """

    name: str
    n_slot: int
    n_share: int
    max_waiting: int
    max_wait_s: float
    slots: asyncio.Semaphore = field(init=False)
    waiting: Counter[str] = field(init=False, default_factory=Counter)
    _shares: LRUCache[str, asyncio.Semaphore] = field(init=False, default_factory=lambda: LRUCache(maxsize=1024))
    _interval_s: float = field(init=False, default=0.0)
    _last_release_s: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.n_slot)

    def is_full(self, caller: str) -> bool:
        """Return whether no slot is free for a caller and the queue has no place."""
        if not (self.slots.locked() or self._share(caller).locked()):
            return False
        n_place = self._n_place()
        return self.waiting.total() >= n_place or self.waiting[caller] >= max(1, int(CALLER_SHARE * n_place))

    @asynccontextmanager
    async def slot(self, caller: str, departure: asyncio.Future[None]) -> AsyncIterator[None]:
        """Hold a slot, after waiting for it up to the limit.

        Raises `RefusedError` if there was none; `AbandonedError` if the client left meanwhile.
        """
        if self.is_full(caller):
            own, total = self.waiting[caller], self.waiting.total()
            raise self._refuse(f"{own} of your requests wait already, and {total} of all callers")
        share, has_share, has_slot = self._share(caller), False, False
        self.waiting[caller] += 1
        try:
            try:
                with move_on_after(self.max_wait_s) as patience:
                    departure.add_done_callback(lambda _: patience.cancel())
                    has_share = await share.acquire()
                    has_slot = await self.slots.acquire()
            finally:
                self.waiting -= Counter([caller])
            if departure.done():
                SHED.labels(self.name, "left").inc()
                raise AbandonedError
            if not has_slot:
                raise self._refuse(f"no slot was free within {self.max_wait_s:g} seconds")
            yield
        finally:
            if has_share:
                share.release()
            if has_slot:
                self.release()

    def _share(self, caller: str) -> asyncio.Semaphore:
        holder = caller if caller.startswith("key:") else ANONYMOUS
        return self._shares.setdefault(holder, asyncio.Semaphore(self.n_share))

    def _refuse(self, problem: str) -> RefusedError:
        SHED.labels(self.name, "refused").inc()
        return busy_error(problem, SHED_RETRY_AFTER_S)

    def _n_place(self) -> float:
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
    """Lanes of a server process.

    Predictions, expensive requests and those that use the store have slots of their own, so that none of them blocks
    the others. A prediction that names a stack uses the store.

    - `max_running`, `max_expensive`: Slots of one caller for predictions and for expensive requests; the others have
      four times those for predictions. Expensive requests have one more slot, which stays free for another key.
    - `max_waiting`: Most requests that wait in each of the three queues.
    - `max_wait_s`: Longest time in a queue.
    """

    def __init__(self, max_running: int, max_expensive: int, max_waiting: int, max_wait_s: float) -> None:
        limits = max_waiting, max_wait_s
        self._predictions = Lane("predictions", max_running, max_running, *limits)
        self._expensive = Lane("dear", max_expensive + 1, max_expensive, *limits)
        self._others = Lane("others", 4 * max_running, 4 * max_running, *limits)

    def is_busy(self) -> bool:
        """Return whether a prediction or an expensive request waits for a slot."""
        return bool(self._predictions.waiting.total() or self._expensive.waiting.total())

    def lane(self, scope: Scope, body_byte: int, body: bytes = b"") -> Lane | None:
        """Return the lane of a request with a body of this size; None if it never waits: probes, pages, bulk.

        `body`: empty as long as it has not arrived.
        """
        method, path = scope["method"], scope["path"]
        if not path.startswith(API):
            return None
        if method == "POST" and path == PREDICTIONS:
            if bulk_kind(scope):
                return None
            has_stack = _has(STACK, scope, body)
            if body_byte > EXPENSIVE_BYTE or (has_stack and _has(REFERENCES, scope, body)):
                return self._expensive
            return self._others if has_stack else self._predictions
        is_read = method == "GET" and (path.startswith(EXPENSIVE_READS) or path.endswith(COMPARISON))
        return self._expensive if is_read or (method == "POST" and path in EXPENSIVE_PATHS) else self._others

    @asynccontextmanager
    async def slot(self, request: Request, body: bytes = b"") -> AsyncIterator[None]:
        """Hold the slot of a request whose body has arrived; raises as `Lane.slot`.

        A request whose client leaves while it waits is dropped; one that is computed stops at its next
        `stop_if_abandoned`. The slot is free before the response is sent, however slowly the client reads it.
        """
        lane = self.lane(request.scope, len(body), body)
        if lane is None:
            yield
            return
        departure = asyncio.ensure_future(_departure(request.receive))
        try:
            async with lane.slot(request.scope[CALLER], departure):
                token = IS_ABANDONED.set(departure.done)
                try:
                    yield
                finally:
                    IS_ABANDONED.reset(token)
        finally:
            departure.cancel()


class EarlyRefusal:
    """ASGI middleware that answers 503 before anything else is done for a request, if its queue has no place.

    It goes outermost: under overload, time spent on refusing is taken from the requests that are served. It does not
    read the body, so a prediction counts as one that names no stack, unless its query names one. A request whose
    headers do not state the size of its body is never refused here.
    """

    def __init__(self, app: ASGIApp, lanes: Lanes) -> None:
        self.app = app
        self.lanes = lanes
        self._refusal = error_response(busy_error("its queue is too long", SHED_RETRY_AFTER_S))
        self._refusal.headers["x-content-type-options"] = "nosniff"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, or refuse in its place."""
        if scope["type"] == "http" and (n_byte := _stated_byte(scope)) is not None:
            lane = self.lanes.lane(scope, n_byte)
            if lane and lane.is_full(presume_caller(scope)):
                SHED.labels(lane.name, "refused").inc()
                await self._refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _has(name: bytes, scope: Scope, body: bytes) -> bool:
    in_body = b'"' + name in body or b"\\u" in body
    return in_body or name in unquote_to_bytes(scope.get("query_string", b""))


def _stated_byte(scope: Scope) -> int | None:
    headers = dict(scope.get("headers", ()))
    length = headers.get(b"content-length", b"0")
    return int(length[:10]) if b"transfer-encoding" not in headers and length.isdigit() else None


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
