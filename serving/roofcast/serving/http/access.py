"""Access to the routes: each declares the scope that it needs, as a security requirement of FastAPI.

The order is: count by address, authenticate, authorise, count by key. All of it comes before a body is read.
"""

from typing import Any, Final, Literal, cast

from fastapi import Security
from fastapi.dependencies.models import Dependant
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import Scope

from roofcast.data.errors import NotReadyError
from roofcast.data.store import api_keys
from roofcast.data.store.api_keys import ApiKey
from roofcast.serving.http.callers import CALLER, KEY, name_caller, secret_of
from roofcast.serving.http.key_cache import KeyCache
from roofcast.serving.http.rate_limits import RateLimits
from roofcast.serving.http.refusals import RefusedError

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
