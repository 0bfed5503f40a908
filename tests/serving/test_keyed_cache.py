import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from roofcast.serving.keyed_cache import KeyedCache


class Maker:
    """Makes the text of a key, and counts."""

    def __init__(self, cache: KeyedCache[str]) -> None:
        self.cache, self.n_made = cache, Counter[str]()

    def get(self, key: str, version: str = "v1") -> str:
        def make() -> str:
            self.n_made[key] += 1
            return key

        return self.cache.get(version, key, make)


def test_values_used_least_lately_make_room_and_the_latest_always_stays() -> None:
    maker = Maker(KeyedCache(4, len))
    for key in ("aa", "bb", "bb", "aa", "cc", "aa", "bb", "too long", "too long"):
        assert maker.get(key) == key
    assert maker.n_made == {"aa": 1, "bb": 2, "cc": 1, "too long": 1}


def test_values_of_another_version_are_dropped() -> None:
    cache = KeyedCache[str](8)
    maker = Maker(cache)
    for version in ("v1", "v1", "v2", "v1"):
        maker.get("a", version)
    assert (maker.n_made["a"], len(cache)) == (3, 1)


def test_threads_wait_for_the_value_that_the_first_makes() -> None:
    cache, is_making, may_end, made = KeyedCache[object](2), threading.Event(), threading.Event(), []

    def make() -> object:
        is_making.set()
        may_end.wait(10)
        made.append(object())
        return made[-1]

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(cache.get, "v1", "slow", make)
        assert is_making.wait(10)
        second = pool.submit(cache.get, "v1", "slow", make)
        assert cache.get("v1", "quick", str) == "", "another key waited"
        may_end.set()
        assert first.result(10) is second.result(10)
    assert len(made) == 1


def test_a_failure_is_not_cached() -> None:
    cache = KeyedCache[int]()
    with pytest.raises(ZeroDivisionError):
        cache.get("v1", "a", lambda: 1 // 0)
    assert cache.get("v1", "a", lambda: 7) == 7


def test_many_threads_may_ask_for_more_keys_than_are_cached() -> None:
    maker, interval = Maker(KeyedCache(1)), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            keys = [str(i % 5) for i in range(2000)]
            assert [*pool.map(maker.get, keys)] == keys
    finally:
        sys.setswitchinterval(interval)
