"""Measurements that a key sees: its own and those of operators, each by the claim that precedes among these."""

import random

import pandas as pd
import pytest
import sqlalchemy as sa

from roofcast.data.errors import InputError, NotAllowedError, UnknownNameError
from roofcast.data.store.claims import _precedence
from roofcast.data.store.database.tables import INFERENCE_TABLES
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.data.store.provenance import Action, Origin
from tests.data.store.stores import rows

OWNERS = {"a": False, "b": False, "boss": True, "": True}
"""Uploaders, and whether each is an operator."""


def origin(uploader: str) -> Origin:
    return Origin(uploader, OWNERS[uploader])


def seen(store: MeasurementStore, key: str | None) -> list[tuple[int, str, str]]:
    """Return load, key and state of the rows that a key sees."""
    table = store.load(provenance=True, seen_by=key).sort_values("concurrency")
    return [*zip(table["concurrency"].astype(int), table["key"], table["state"], strict=True)]


def test_a_key_sees_its_rows_and_those_of_operators_and_none_sees_all(store: MeasurementStore) -> None:
    ids = {name: store.add(rows(i), origin=origin(name)).import_id for i, name in enumerate(OWNERS, 1)}
    house = [(3, "boss", "accepted"), (4, "", "accepted")]
    assert seen(store, "a") == [(1, "a", "accepted"), *house]
    assert seen(store, "b") == [(2, "b", "accepted"), *house]
    assert seen(store, "") == seen(store, "nobody") == house
    assert len(seen(store, None)) == 4
    assert [store.campaigns(key) for key in ("a", "", None)] == [{"nightly": n} for n in (3, 2, 4)]
    assert {one["import_id"] for one in store.provenance.imports("b")} == {ids["b"], ids["boss"], ids[""]}
    assert [store.imported.count(ids["a"], key) for key in ("a", "b", "", None)] == [1, 0, 0, 1]
    latest = store.imported.load_latest(10, seen_by="b")
    assert set(latest["import_id"]) == {ids["b"], ids["boss"], ids[""]}


def test_a_row_of_two_keys_is_to_each_its_own(store: MeasurementStore) -> None:
    store.add(rows(1), origin=origin("a"))
    store.add(rows(1), origin=origin("b"))
    assert (seen(store, "a"), seen(store, None)) == ([(1, "a", "accepted")],) * 2
    assert seen(store, "b") == [(1, "b", "accepted")]
    store.provenance.change("withdrawal", "key:b", {"key": "b"}, "b")
    assert seen(store, "b") == [(1, "b", "withdrawn")]
    assert store.load(seen_by="b").empty
    assert store.campaigns("b") == {"nightly": 0}
    assert seen(store, "a") == [(1, "a", "accepted")]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 5))])
def test_the_claim_that_is_shown_precedes_among_those_that_are_seen(store: MeasurementStore, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - no secret
    actions: tuple[Action, ...] = ("withdrawal", "restoration", "confirmation")
    for _ in range(25):
        uploader = draw.choice([*OWNERS])
        if draw.random() < 0.6:
            table = rows(*draw.sample(range(1, 6), 3))
            quarantine = pd.Series([draw.choice(["", "far"]) for _ in range(3)])
            store.add(table, (), origin(uploader), quarantine, claim_of_keys=draw.random() < 0.5)
            continue
        try:
            only_of = None if OWNERS[uploader] else uploader
            store.provenance.change(draw.choice(actions), uploader, {"key": draw.choice([*OWNERS])}, only_of)
        except InputError:
            pass  # nothing of it is the caller's, or stored yet
    with store.database.reading() as connection:
        tables = (INFERENCE_TABLES.measurement, INFERENCE_TABLES.claim)
        claims = [dict(row) for table in tables for row in connection.execute(sa.select(table)).mappings()]
    for key in OWNERS:
        visible = [claim for claim in claims if claim["is_operator"] or claim["uploader"] == key]
        expected: dict[str, str] = {}
        for claim in sorted(
            visible, key=lambda claim: (*(not part for part in _precedence(claim)), claim["added_at"])
        ):
            expected.setdefault(claim["id"], claim["import_id"])
        shown = store.load(provenance=True, seen_by=key)["import_id"]
        assert sorted(shown) == sorted(expected.values())


@pytest.mark.parametrize("name", ["import_id", "campaign", "key"])
def test_a_change_of_rows_that_are_not_seen_is_of_an_unknown_name(store: MeasurementStore, name: str) -> None:
    first = store.add(rows(1, campaign="plan-b"), origin=origin("a"))
    house = store.add(rows(2, campaign="house"), origin=origin("boss"))
    hidden = {"import_id": first.import_id, "campaign": "plan-b", "key": "a"}
    listed = {"import_id": house.import_id, "campaign": "house", "key": "boss"}
    with pytest.raises(UnknownNameError) as error:
        store.provenance.change("withdrawal", "key:b", {name: hidden[name]}, "b", seen_by="b")
    assert error.value.near == []
    with pytest.raises(NotAllowedError):
        store.provenance.change("withdrawal", "key:b", {name: listed[name]}, "b", seen_by="b")
    with pytest.raises(NotAllowedError):
        store.provenance.change("withdrawal", "key:b", {name: hidden[name]}, "b")
