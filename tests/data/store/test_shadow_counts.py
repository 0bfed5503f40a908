"""Counts of a challenger's answers: processes add to them, and old pairs are deleted."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from roofcast.data.store import shadow_counts
from roofcast.data.store.measurement_store import MeasurementStore

ONE = ("all", "", "ttft_s", 0)
OTHER = ("engine", "vllm", "ttft_s", -3)


def test_counts_of_several_processes_add_up(store: MeasurementStore) -> None:
    others = [MeasurementStore(store.database.url.render_as_string(hide_password=False)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: [one.shadow_counts.add("a", "b", {ONE: 2, OTHER: 1}) for _ in range(5)], others))
    for other in others:
        other.close()
    counts, since = store.shadow_counts.load("a", "b")
    assert counts == {ONE: 40, OTHER: 20}
    assert since is not None
    assert store.shadow_counts.load("a", "b", kind="all")[0] == {ONE: 40}
    assert store.shadow_counts.load("b", "a") == ({}, None)


def test_the_latest_pairs_are_kept(store: MeasurementStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_counts, "MAX_PAIR", 2)
    for challenger in ("1", "2", "3"):
        store.shadow_counts.add("a", challenger, {ONE: 1})
    store.shadow_counts.add("a", "3", {})
    kept = [challenger for challenger in ("1", "2", "3") if store.shadow_counts.load("a", challenger)[0]]
    assert kept == ["2", "3"]
