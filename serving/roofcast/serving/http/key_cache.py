"""Cache of API keys."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from roofcast.data.errors import NotReadyError
from roofcast.data.store.api_keys import ApiKey, KeyStore, digest_of

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
