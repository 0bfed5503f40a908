import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.store import stack_profiles
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.data.store.stack_profiles import SHARED, StackProfiles
from tests.data.store.stores import a_model, url_of


@pytest.fixture(params=["memory", pytest.param("postgresql", marks=pytest.mark.slow)])
def profiles(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StackProfiles]:
    with MeasurementStore(url_of(request.param, tmp_path, request)) as store:
        yield store.migrate().stacks


def rows(*tpot_s: float) -> list[dict[str, Any]]:
    return [{"model": "m", "concurrency": 8, "tpot_s": one} for one in tpot_s]


def test_a_profile_has_each_row_once(profiles: StackProfiles) -> None:
    assert profiles.add("ann", "rack", rows(0.1, 0.2)) == 2
    assert profiles.add("ann", "rack", rows(0.2, 0.3)) == 1
    assert sorted(row["tpot_s"] for row in profiles.load("ann", "rack").rows) == [0.1, 0.2, 0.3]


def test_profiles_of_owners_are_apart_and_shared_ones_are_for_all(profiles: StackProfiles) -> None:
    for owner, value in (("ann", 0.1), ("bob", 0.2), (SHARED, 0.3)):
        profiles.add(owner, "rack", rows(value))
    profiles.add(SHARED, "spare", rows(0.4))
    profiles.add("ann", "secret", rows(0.5))
    assert profiles.load("bob", "rack").rows == rows(0.2)
    assert profiles.load("cid", "rack").rows == rows(0.3)
    assert [(one.name, one.is_shared) for one in profiles.summaries("bob")] == [("rack", False), ("spare", True)]
    with pytest.raises(UnknownNameError, match="no 'secret' is known") as error:
        profiles.load("bob", "secret")
    assert "secret" not in error.value.near


def test_only_the_owner_removes_a_profile(profiles: StackProfiles) -> None:
    profiles.add(SHARED, "rack", rows(0.1, 0.2))
    with pytest.raises(InputError, match="'rack' was made by the command line of the service"):
        profiles.remove("ann", "rack")
    with pytest.raises(UnknownNameError):
        profiles.remove("ann", "cellar")
    assert profiles.remove(SHARED, "rack") == 2
    assert profiles.summaries(SHARED) == []


def test_two_writers_at_once_do_not_exceed_the_bound(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_profiles, "MAX_ROW", 2)
    both, count = threading.Barrier(2), stack_profiles._sizes

    def count_together(connection: Any, owner: str) -> dict[str, int]:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return count(connection, owner)

    with MeasurementStore(url_of("postgresql", tmp_path, request)) as store, ThreadPoolExecutor(2) as pool:
        profiles = store.migrate().stacks
        monkeypatch.setattr(stack_profiles, "_sizes", count_together)
        jobs = [pool.submit(profiles.add, "ann", "rack", rows(first, first + 0.1)) for first in (0.1, 0.5)]
        assert sorted(str(type(job.exception())) for job in jobs) == sorted(map(str, (InputError, type(None))))
        assert len(profiles.load("ann", "rack").rows) == 2


def test_a_model_is_registered_with_its_rows_or_not_at_all(
    profiles: StackProfiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_profiles, "MAX_ROW", 1)
    with pytest.raises(InputError, match="rows: a stack has at most 1"):
        profiles.add("ann", "rack", rows(0.1, 0.2), [(a_model(), {})])
    assert profiles._models.load() == []
    profiles.add("ann", "rack", rows(0.1), [(a_model(), {})])
    assert profiles._models.load() == [a_model()]


def test_rows_and_profiles_are_bounded(profiles: StackProfiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_profiles, "MAX_ROW", 2)
    monkeypatch.setattr(stack_profiles, "MAX_STACK", 1)
    profiles.add("ann", "rack", rows(0.1))
    with pytest.raises(InputError, match="rows: a stack has at most 2, this would make 3"):
        profiles.add("ann", "rack", rows(0.2, 0.3))
    with pytest.raises(InputError, match="name: there are 1 stacks"):
        profiles.add("ann", "other", rows(0.2))
    assert profiles.load("ann", "rack").rows == rows(0.1)
    assert [one.name for one in profiles.summaries("ann")] == ["rack"]
