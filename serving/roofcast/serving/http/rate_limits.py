"""Rate limits per caller."""

import math
import time
from typing import NamedTuple

from limits import parse_many
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter


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
