"""Who may do what: API keys over HTTP, and how often one caller may ask.

Everything that is not plainly reading or asking takes a key that may write, so that a new route is shut until someone
says otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal

from cachetools import LRUCache
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.data.errors import NotReadyError
from roofcast.data.store import api_keys
from roofcast.data.store.api_keys import ApiKey, KeyStore, digest_of
from roofcast.serving.http.errors import problem, problem_of
from roofcast.serving.http.rate_limits import RateLimits

RequireKey = Literal["write", "all"]

API: Final = "/v1/"
GUARDED: Final = (API, "/metrics")
"""What may take a key to read; probes and pages never do."""

QUESTIONS: Final = frozenset({"/v1/predictions", "/v1/recommendations", "/v1/explanations"})
"""Posts that change nothing."""

FOR_ADMINS: Final = frozenset({"/v1/predictor", "/v1/predictor/rollback"})
"""Changes that take effect on everyone's answers at once."""

KEY_CACHE_S: Final = 2.0
"""How long a key is taken for what it was: a revoked one opens nothing after it."""

STORE_PAUSE_S: Final = 5.0
"""How long a store that did not answer is not asked again for a key that it knew."""

CONSUMER: Final = "roofcast.consumer"
"""Where in the scope the log finds who asked."""

SCHEME: Final = "key"


def needed_scope(method: str, path: str, require: RequireKey) -> api_keys.Scope | None:
    """Return the scope that a request takes, or None if it is open to all.

    Examples
    --------
    >>> needed_scope("POST", "/v1/measurements", "write")
    'write'
    >>> needed_scope("POST", "/v1/predictions", "all")
    'read'
    >>> needed_scope("GET", "/healthz", "all") is None
    True
    """
    if method in {"GET", "HEAD", "OPTIONS"} or (method == "POST" and path in QUESTIONS):
        return "read" if require == "all" and path.startswith(GUARDED) else None
    return "admin" if path in FOR_ADMINS else "write"


@dataclass(frozen=True, slots=True)
class _Seen:
    key: ApiKey
    until: float


class KeyRing:
    """The keys that this process has seen lately; others are looked up.

    While the store does not answer, a key that was seen goes on as it was: nobody can revoke one there then.

    Parameters
    ----------
    store
        Opens where keys are kept, if that is not open yet.
    """

    def __init__(self, store: Callable[[], KeyStore]) -> None:
        self._store = store
        self._seen: LRUCache[str, _Seen] = LRUCache(maxsize=1024)

    def has_seen(self, secret: str) -> bool:
        """Return whether a key of this secret was found before."""
        return digest_of(secret) in self._seen

    async def find(self, secret: str) -> ApiKey | None:
        """Return the key of a secret, in whatever state; None if there is none.

        Raises
        ------
        NotReadyError
            If the store does not answer and the key has not been seen.
        """
        digest = digest_of(secret)
        seen = self._seen.get(digest)
        if seen and time.monotonic() < seen.until:
            return seen.key
        pause_s = KEY_CACHE_S
        try:
            key = await asyncio.to_thread(lambda: self._store().find(digest))
        except NotReadyError:
            if seen is None:
                raise
            key, pause_s = seen.key, STORE_PAUSE_S
        if key is not None:
            self._seen[digest] = _Seen(key, time.monotonic() + pause_s)
        return key


class Admission:
    """ASGI middleware that lets in who may: 401, 403 and 429 are answered before a body is read.

    Who brings no valid key is counted by address. Where that was over its limit the address is counted before a key
    that was never seen is looked up, so that guesses cost no more than the limit admits.
    """

    def __init__(self, app: ASGIApp, require: RequireKey, rates: RateLimits | None) -> None:
        self.app = app
        self.require = require
        self.rates = rates
        self._over: LRUCache[str, bool] = LRUCache(maxsize=4096)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        need = needed_scope(scope["method"], scope["path"], self.require)
        address, is_guess = _address(scope), self._is_guess(scope, need)
        told = await self.rates.hit(address) if self.rates and is_guess and self._over.get(address) else None
        key, refusal = (None, None) if told and not told[0] else await self._judge(scope, need)
        scope[CONSUMER] = f"key:{key.name}" if key else address
        is_counted = scope["path"].startswith(API) or (is_guess and not key)
        if self.rates and is_counted and (key or not told):
            told = await self.rates.hit(scope[CONSUMER])
        if told:
            is_admitted, headers = told
            send = _with_headers(send, headers)
            if not is_admitted:
                refusal = _too_many(headers)
            if not key:
                self._over[address] = not is_admitted
        await (refusal or self.app)(scope, receive, send)

    def _is_guess(self, scope: Scope, need: api_keys.Scope | None) -> bool:
        """Return whether a request brings a key that has to be looked up and was never found."""
        secret = _secret(scope)
        is_looked_up = need is not None or scope["path"].startswith(GUARDED)
        return is_looked_up and secret is not None and not scope["app"].state.key_ring.has_seen(secret)

    async def _judge(self, scope: Scope, need: api_keys.Scope | None) -> tuple[ApiKey | None, Response | None]:
        """Return the key that opens the way, if one came along, or the answer to who may not."""
        if need is None and not scope["path"].startswith(GUARDED):
            return None, None
        if not Headers(scope=scope).get("authorization"):
            return None, _unauthorised(need) if need else None
        key, secret = None, _secret(scope)
        if secret is not None:
            try:
                key = await scope["app"].state.key_ring.find(secret)
            except NotReadyError as error:
                return None, problem_of(error) if need else None
        state = key.state if key else "unknown"
        if key is None or state != "valid":
            return None, _unauthorised(need or "read", f"this key is {state}")
        return key, _forbidden(key, need) if need and not key.may(need) else None


def _unauthorised(need: api_keys.Scope, reason: str = "") -> Response:
    cure = (
        f"this takes a key that may {need}: make one on the service's machine by"
        f" `roofcast keys create NAME --scope {need}`, and send it as `Authorization: Bearer KEY`"
    )
    challenge = 'Bearer realm="roofcast"' + (
        f', error="invalid_token", error_description="{reason}"' if reason else ""
    )
    detail = f"{reason}; {cure}" if reason else cure
    return problem(HTTPStatus.UNAUTHORIZED, "no-key", detail, headers={"www-authenticate": challenge})


def _forbidden(key: ApiKey, need: api_keys.Scope) -> Response:
    challenge = f'Bearer realm="roofcast", error="insufficient_scope", scope="{need}"'
    detail = f"the key {key.name!r} has the scope {key.scope}; this takes {need}"
    return problem(HTTPStatus.FORBIDDEN, "wrong-scope", detail, headers={"www-authenticate": challenge})


def _too_many(headers: Mapping[str, str]) -> Response:
    wait = headers["ratelimit-reset"]
    detail = f"more requests than {headers['ratelimit-limit']} in their time; ask again in {wait} seconds"
    return problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers={"retry-after": wait})


def _secret(scope: Scope) -> str | None:
    """Return the secret of the key that a request brings; None if it brings none, or something else."""
    kind, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else "unknown"


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return sending


def describe_access(document: dict[str, Any], require: RequireKey) -> dict[str, Any]:
    """Return the OpenAPI document with what takes a key."""
    document.setdefault("components", {})["securitySchemes"] = {
        SCHEME: {"type": "http", "scheme": "bearer", "description": "Made by `roofcast keys create`."}
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            need = needed_scope(method.upper(), path, require)
            if need:
                operation["security"] = [{SCHEME: [need]}]
    return document
