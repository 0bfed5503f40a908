"""Callers: names of API keys, or addresses."""

from __future__ import annotations

import functools
import ipaddress
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.types import Scope

if TYPE_CHECKING:
    from roofcast.data.store.api_keys import ApiKey

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
