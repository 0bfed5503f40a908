"""The cache of what takes long to make from a version of the predictor: one for profiles, stacks, bundles, rows."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

V = TypeVar("V")


class KeyedCache(Generic[V]):
    """Values by key, each made once; threads share it, and wait for a value that another thread makes.

    `max_size`: size of all values together, beyond which those used least lately are dropped; the latest always
    stays. `size_of`: size of a value.
    """

    def __init__(self, max_size: float = 1, size_of: Callable[[V], float] = lambda _: 1) -> None:
        self._values: LRUCache[Hashable, V] = LRUCache(max_size, lambda value: min(size_of(value), max_size))
        self._version: Hashable = None
        self._changing = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, version: Hashable, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key, made unless it is cached; values of another version are dropped first.

        What `make` raises escapes, and the next caller makes the value.
        """
        with self._changing:
            if version != self._version:
                self._values.clear()
                self._version = version
            making = self._making.setdefault((version, key), threading.Lock())
        with making:
            with self._changing:
                if version == self._version and key in self._values:
                    return self._values[key]
            try:
                value = make()
                with self._changing:
                    if version == self._version:
                        self._values[key] = value
            finally:
                self._making.pop((version, key), None)
        return value
