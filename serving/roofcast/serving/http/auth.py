"""Authentication by API keys, authorisation by scope, and rate limits per caller.

A request that does not only read or predict needs the scope `write`, so a new route is closed until it is listed.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
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
from roofcast.serving.http.errors import error_response, problem_response
from roofcast.serving.http.rate_limits import RateLimits

RequireKey = Literal["write", "all"]

API: Final = "/v1/"
GUARDED: Final = (API, "/metrics")
"""Paths that may require a key to read; probes and pages never do."""

READING_POSTS: Final = frozenset(
    f"/v1/{name}"
    for name in ("predictions", "recommendations", "explanations", "training/predictions", "training/recommendations")
)
"""Routes whose POST changes nothing."""

ADMIN_ROUTES: Final = frozenset({"/v1/predictor", "/v1/predictor/rollback", "/v1/predictor/challenger"})
"""Routes whose changes affect everyone's answers, or which version may give them next."""

CANCELLATION: Final = "/cancellation"
"""End of the paths that stop the work of others."""

KEY_CACHE_S: Final = 2.0
"""How long a key is cached, and so how long a revoked key still works."""

STORE_PAUSE_S: Final = 5.0
"""How long a cached key is used without a lookup after the store failed."""

CALLER: Final = "roofcast.caller"
"""Key in the ASGI scope of the caller: ``key:NAME``, or an address."""

KEY: Final = "roofcast.key"
"""Key in the ASGI scope of the caller's `ApiKey`; None without one."""

IPV6_PREFIX: Final = 64
"""Bits of an IPv6 address that tell callers apart."""

SCHEME: Final = "key"


def needed_scope(method: str, path: str, require: RequireKey) -> api_keys.Scope | None:
    """Return the scope that a request needs; None if it is open to all.

    Examples
    --------
    >>> needed_scope("POST", "/v1/measurements", "write")
    'write'
    >>> needed_scope("POST", "/v1/retrainings/8a6b/cancellation", "write")
    'admin'
    >>> needed_scope("POST", "/v1/predictions", "all")
    'read'
    >>> needed_scope("GET", "/healthz", "all") is None
    True
    """
    if method in {"GET", "HEAD", "OPTIONS"} or (method == "POST" and path in READING_POSTS):
        return "read" if require == "all" and path.startswith(GUARDED) else None
    return "admin" if path in ADMIN_ROUTES or path.endswith(CANCELLATION) else "write"


@dataclass(frozen=True, slots=True)
class _CachedKey:
    key: ApiKey
    until: float


class KeyRing:
    """Cache of API keys.

    While the store does not answer, a cached key stays valid: nobody can revoke it in the store then.

    Parameters
    ----------
    open_store
        Returns the key store; called at each lookup.
    """

    def __init__(self, open_store: Callable[[], KeyStore]) -> None:
        self._open_store = open_store
        self._cache: LRUCache[str, _CachedKey] = LRUCache(maxsize=1024)

    def cached(self, secret: str) -> ApiKey | None:
        """Return the key of a secret as it was at its last lookup; None if it is not cached."""
        cached = self._cache.get(digest_of(secret))
        return cached.key if cached else None

    async def find(self, secret: str) -> ApiKey | None:
        """Return the key of a secret, in whatever state; None if there is none.

        Raises
        ------
        NotReadyError
            If the store does not answer and the key is not cached.
        """
        digest = digest_of(secret)
        cached = self._cache.get(digest)
        if cached and time.monotonic() < cached.until:
            return cached.key
        duration_s = KEY_CACHE_S
        try:
            key = await asyncio.to_thread(lambda: self._open_store().find(digest))
        except NotReadyError:
            if cached is None:
                raise
            key, duration_s = cached.key, STORE_PAUSE_S
        if key is not None:
            self._cache[digest] = _CachedKey(key, time.monotonic() + duration_s)
        return key


class Admission:
    """ASGI middleware that answers 401, 403 and 429 before a body is read.

    Callers without a valid key are counted by address. An address over its limit is counted before an unknown key is
    looked up, so guessing keys costs the service no more than the limit admits.
    """

    def __init__(self, app: ASGIApp, require: RequireKey, rates: RateLimits | None) -> None:
        self.app = app
        self.require = require
        self.rates = rates
        self._is_over_limit: LRUCache[str, bool] = LRUCache(maxsize=4096)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, or answer in its place."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        need = needed_scope(scope["method"], scope["path"], self.require)
        address, is_guess = _address(scope), self._is_guess(scope, need)
        count_first = self.rates and is_guess and self._is_over_limit.get(address)
        rate = await self.rates.hit(address) if self.rates and count_first else None
        key, refusal = (None, None) if rate and not rate.is_admitted else await self._authorise(scope, need)
        scope[CALLER], scope[KEY] = _name_caller(key, scope), key
        is_counted = scope["path"].startswith(API) or (is_guess and not key)
        if self.rates and is_counted and (key or not rate):
            rate = await self.rates.hit(scope[CALLER])
        if rate:
            send = _with_headers(send, rate.headers)
            if not rate.is_admitted:
                refusal = _too_many_requests(rate.headers)
            if not key:
                self._is_over_limit[address] = not rate.is_admitted
        await (refusal or self.app)(scope, receive, send)

    def _is_guess(self, scope: Scope, need: api_keys.Scope | None) -> bool:
        """Return whether a request brings a key that has to be looked up and is not cached."""
        secret = _secret(scope)
        is_looked_up = need is not None or scope["path"].startswith(GUARDED)
        return is_looked_up and secret is not None and scope["app"].state.key_ring.cached(secret) is None

    async def _authorise(self, scope: Scope, need: api_keys.Scope | None) -> tuple[ApiKey | None, Response | None]:
        """Return the valid key of a request, if it has one, and the refusal, if it is refused."""
        if need is None and not scope["path"].startswith(GUARDED):
            return None, None
        if not Headers(scope=scope).get("authorization"):
            return None, _unauthorised(need) if need else None
        key, secret = None, _secret(scope)
        if secret is not None:
            try:
                key = await scope["app"].state.key_ring.find(secret)
            except NotReadyError as error:
                return None, error_response(error) if need else None
        state = key.state if key else "unknown"
        if key is None or state != "valid":
            return None, _unauthorised(need or "read", f"this key is {state}")
        return key, _forbidden(key, need) if need and not key.may(need) else None


def _unauthorised(need: api_keys.Scope, reason: str = "") -> Response:
    cure = (
        f"this needs a key with the scope {need}: make one on the service's machine by"
        f" `roofcast keys create NAME --scope {need}`, and send it as `Authorization: Bearer KEY`"
    )
    challenge = 'Bearer realm="roofcast"' + (
        f', error="invalid_token", error_description="{reason}"' if reason else ""
    )
    detail = f"{reason}; {cure}" if reason else cure
    return problem_response(HTTPStatus.UNAUTHORIZED, "no-key", detail, headers={"www-authenticate": challenge})


def _forbidden(key: ApiKey, need: api_keys.Scope) -> Response:
    challenge = f'Bearer realm="roofcast", error="insufficient_scope", scope="{need}"'
    detail = f"the key {key.name!r} has the scope {key.scope}; this needs {need}"
    return problem_response(HTTPStatus.FORBIDDEN, "wrong-scope", detail, headers={"www-authenticate": challenge})


def _too_many_requests(headers: Mapping[str, str]) -> Response:
    wait = headers["ratelimit-reset"]
    detail = f"the limit of {headers['ratelimit-limit']} requests is reached; try again in {wait} seconds"
    return problem_response(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers={"retry-after": wait})


def _secret(scope: Scope) -> str | None:
    """Return the secret of a request's bearer token; None if it has none."""
    kind, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


def presume_caller(scope: Scope) -> str:
    """Return the caller that `Admission` will find, without a lookup; a blank if only a lookup tells."""
    if not Headers(scope=scope).get("authorization"):
        return _address(scope)
    secret = _secret(scope)
    key = scope["app"].state.key_ring.cached(secret) if secret else None
    return _name_caller(key, scope) if key and key.state == "valid" else ""


def _name_caller(key: ApiKey | None, scope: Scope) -> str:
    return f"key:{key.name}" if key else _address(scope)


def _address(scope: Scope) -> str:
    return group_address(scope["client"][0]) if scope.get("client") else "unknown"


@functools.lru_cache(maxsize=4096)
def group_address(text: str) -> str:
    """Return the address that counts as one caller: an IPv6 host has 2^64 addresses of its own.

    Examples
    --------
    >>> group_address("2001:db8::1"), group_address("2001:db8::ffff:2"), group_address("::ffff:10.0.0.1")
    ('2001:db8::/64', '2001:db8::/64', '10.0.0.1')
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # the path of a socket file, or a name
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return text
    return str(address.ipv4_mapped or ipaddress.ip_network((address.packed, IPV6_PREFIX), strict=False))


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return send_with_headers


def describe_access(document: dict[str, Any], require: RequireKey) -> dict[str, Any]:
    """Return the OpenAPI document with the scope that each operation needs."""
    document.setdefault("components", {})["securitySchemes"] = {
        SCHEME: {"type": "http", "scheme": "bearer", "description": "Made by `roofcast keys create`."}
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            need = needed_scope(method.upper(), path, require)
            if need:
                operation["security"] = [{SCHEME: [need]}]
    return document
