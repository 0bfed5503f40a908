"""Access to the routes: callers, their keys and rates, and the scope that each route declares.

The order is: count by address, authenticate, authorise, count by key. All of it comes before a body is read.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, cast

from cachetools import LRUCache
from fastapi import Security
from fastapi.dependencies.models import Dependant
from fastapi.security import HTTPBearer
from limits import parse_many
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from starlette.datastructures import Headers
from starlette.types import Scope

from roofcast.data.errors import NotReadyError
from roofcast.data.store import api_keys
from roofcast.data.store.api_keys import ApiKey, KeyStore, digest_of
from roofcast.serving.http.problem_details import RefusedError

KEY_CACHE_S: Final = 2.0
"""How long a key is cached, and so how long a revoked key still works."""

STORE_PAUSE_S: Final = 5.0
"""How long a cached key is used without a lookup after the store failed."""


@dataclass(frozen=True, slots=True)
class _CachedKey:
    key: ApiKey
    until: float


class KeyCache:
    """Cache of API keys.

    While the store does not answer, a cached key stays valid: nobody can revoke it in the store then.

    `open_store`: returns the key store; called at each lookup. `cache_s`: how long a key is cached.
    """

    def __init__(self, open_store: Callable[[], KeyStore], cache_s: float = KEY_CACHE_S) -> None:
        self._open_store = open_store
        self._cache_s = cache_s
        self._cache: LRUCache[str, _CachedKey] = LRUCache(maxsize=1024)

    def cached(self, secret: str) -> ApiKey | None:
        """Return the key of a secret as it was at its last lookup; None if it is not cached."""
        cached = self._cache.get(digest_of(secret))
        return cached.key if cached else None

    async def find(self, secret: str) -> ApiKey | None:
        """Return the key of a secret, in whatever state; None if there is none.

        Raises `NotReadyError` if the store does not answer and the key is not cached.
        """
        digest = digest_of(secret)
        cached = self._cache.get(digest)
        if cached and time.monotonic() < cached.until:
            return cached.key
        duration_s = self._cache_s
        try:
            key = await asyncio.to_thread(lambda: self._open_store().find(digest))
        except NotReadyError:
            if cached is None:
                raise
            key, duration_s = cached.key, STORE_PAUSE_S
        if key is not None:
            self._cache[digest] = _CachedKey(key, time.monotonic() + duration_s)
        return key


class Rate(NamedTuple):
    """Result of counting a request: whether it is admitted, and the headers that state the tightest limit."""

    is_admitted: bool
    headers: dict[str, str]


class RateLimits:
    """Sliding-window rate limits, counted in this process.

    `text`: limits such as ``20/second; 10000/day``; all of them apply.
    """

    def __init__(self, text: str) -> None:
        self._limits = parse_many(text)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def hit(self, caller: str) -> Rate:
        """Count a request of a caller."""
        is_admitted = True
        windows = []
        for limit in self._limits:
            is_admitted = await self._limiter.hit(limit, caller) and is_admitted
            window = await self._limiter.get_window_stats(limit, caller)
            windows.append((window.remaining, window.reset_time, limit))
        remaining, reset_time, limit = min(windows, key=lambda window: (window[0], -window[1]))
        headers = {
            "ratelimit-limit": str(limit.amount),
            "ratelimit-remaining": str(remaining if is_admitted else 0),
            "ratelimit-reset": str(max(1, math.ceil(reset_time - time.time()))),
            "ratelimit-policy": f"{limit.amount};w={limit.get_expiry()}",
        }
        return Rate(is_admitted, headers)


CALLER: Final = "roofcast.caller"
"""Key in the ASGI scope of the caller: ``key:NAME``, or an address."""

KEY: Final = "roofcast.key"
"""Key in the ASGI scope of the caller's `ApiKey`; None without one."""

IPV6_PREFIX: Final = 64
"""Bits of an IPv6 address that tell callers apart."""


def name_caller(key: ApiKey | None, scope: Scope) -> str:
    """Return the name of a request's caller."""
    if key:
        return f"key:{key.name}"
    return group_address(scope["client"][0]) if scope.get("client") else "unknown"


def presume_caller(scope: Scope) -> str:
    """Return the caller of a request without a lookup of its key; a blank if only a lookup tells."""
    if not Headers(scope=scope).get("authorization"):
        return name_caller(None, scope)
    secret = secret_of(scope)
    key = scope["app"].state.key_cache.cached(secret) if secret else None
    return name_caller(key, scope) if key and key.state == "valid" else ""


def secret_of(scope: Scope) -> str | None:
    """Return the secret of a request's bearer token; None if it has none."""
    kind, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


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


RequireKey = Literal["write", "all"]

API: Final = "/v1/"
"""Start of the paths whose requests are counted."""

BEARER: Final = HTTPBearer(scheme_name="key", description="Made by `roofcast keys create`.", auto_error=False)

READ: Final = [Security(BEARER, scopes=["read"])]
"""Dependencies of a route that changes nothing; without a key, unless the service requires one of all."""

WRITE: Final = [Security(BEARER, scopes=["write"])]
"""Dependencies of a route that stores, or starts work."""

ADMIN: Final = [Security(BEARER, scopes=["admin"])]
"""Dependencies of a route that affects everyone's answers, or stops the work of others."""

RATE_HEADERS: Final = "roofcast.rate_headers"
"""Key in the ASGI scope of the headers that state the rate limit."""


def declared_scope(dependant: Dependant) -> api_keys.Scope:
    """Return the scope that a route declares."""
    (scope,) = (one for each in dependant.dependencies if each.call is BEARER for one in each.own_oauth_scopes or ())
    return cast("api_keys.Scope", scope)


class Gate:
    """Admits callers to routes.

    `require`: whether only writing needs a key, or all. `rates`: None without a limit.
    """

    def __init__(self, require: RequireKey, rates: RateLimits | None, keys: KeyCache) -> None:
        self._require = require
        self._rates = rates
        self._keys = keys

    async def admit(self, scope: Scope, declared: api_keys.Scope) -> None:
        """Put caller and key into the scope of a request.

        A request whose key is not known yet counts for its address, so guessing keys costs the service no more
        lookups than the limit admits.

        Raises `RefusedError` if the caller lacks the scope, or exceeds its rate; `NotReadyError` if a key is needed
        and cannot be looked up.
        """
        need = None if declared == "read" and self._require == "write" else declared
        is_counted, secret = scope["path"].startswith(API), secret_of(scope)
        scope[CALLER], scope[KEY] = name_caller(None, scope), None
        if (is_counted or secret) and not (secret and self._keys.cached(secret)):
            await self._count(scope)
        if Headers(scope=scope).get("authorization"):
            scope[KEY] = await self._authenticate(secret, need)
        _authorise(scope[KEY], need)
        if scope[KEY]:
            scope[CALLER] = name_caller(scope[KEY], scope)
            if is_counted:
                await self._count(scope)

    async def _count(self, scope: Scope) -> None:
        if self._rates:
            rate = await self._rates.hit(scope[CALLER])
            scope[RATE_HEADERS] = rate.headers
            if not rate.is_admitted:
                wait = rate.headers["ratelimit-reset"]
                limit = rate.headers["ratelimit-limit"]
                detail = f"the limit of {limit} requests is reached; try again in {wait} seconds"
                raise RefusedError("too-many-requests", detail, {"retry-after": wait})

    async def _authenticate(self, secret: str | None, need: api_keys.Scope | None) -> ApiKey | None:
        try:
            key = await self._keys.find(secret) if secret is not None else None
        except NotReadyError:
            if need:
                raise
            return None
        state = key.state if key else "unknown"
        if key is None or state != "valid":
            raise _unauthorised(need or "read", f"this key is {state}")
        return key


def _authorise(key: ApiKey | None, need: api_keys.Scope | None) -> None:
    if need and key is None:
        raise _unauthorised(need)
    if need and key and not key.may(need):
        challenge = f'Bearer realm="roofcast", error="insufficient_scope", scope="{need}"'
        detail = f"the key {key.name!r} has the scope {key.scope}; this needs {need}"
        raise RefusedError("wrong-scope", detail, {"www-authenticate": challenge})


def _unauthorised(need: api_keys.Scope, reason: str = "") -> RefusedError:
    cure = (
        f"this needs a key with the scope {need}: make one on the service's machine by"
        f" `roofcast keys create NAME --scope {need}`, and send it as `Authorization: Bearer KEY`"
    )
    error = f', error="invalid_token", error_description="{reason}"' if reason else ""
    detail = f"{reason}; {cure}" if reason else cure
    return RefusedError("no-key", detail, {"www-authenticate": f'Bearer realm="roofcast"{error}'})


def describe_access(document: dict[str, Any], require: RequireKey) -> dict[str, Any]:
    """Return the OpenAPI document without the scope of operations that are open to all."""
    for operations in document["paths"].values():
        for operation in operations.values():
            if require == "write" and operation.get("security") == [{BEARER.scheme_name: ["read"]}]:
                del operation["security"]
    return document
