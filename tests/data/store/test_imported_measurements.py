"""Measurements by import, by key and by time."""

from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sa

from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.data.store.provenance import Origin
from tests.data.store.stores import rows

NOBODY = "of no import"
MODEL = "meta-llama/Llama-2-7b-hf"


def add(store: MeasurementStore, uploader: str, *loads: int) -> str:
    origin = Origin(uploader, is_operator=uploader in {"", "boss"})
    return store.add(rows(*loads), origin=origin, claim_of_keys=True).import_id


def loads(table: pd.DataFrame) -> set[float]:
    return set(table["concurrency"])


def test_an_import_has_the_rows_that_it_claims_whosever_claim_prevails(store: MeasurementStore) -> None:
    first, second, third = add(store, "a", 1, 2), add(store, "b", 2, 4), add(store, "", 4)
    assert [store.imported.count(one) for one in (first, second, third, NOBODY)] == [2, 2, 1, 0]
    of_second = store.imported.load_import(second, 10)
    assert loads(of_second) == {2.0, 4.0}
    assert of_second[["import_id", "uploader"]].drop_duplicates().to_numpy().tolist() == [[second, "b"]]
    assert len(store.imported.load_import(second, 1)) == 1
    store.provenance.change("withdrawal", "key:b", {"key": "b"}, only_of="b")
    assert loads(store.imported.load_import(second, 10)) == {2.0, 4.0}


def test_the_earlier_rows_are_those_of_the_key_alone_or_of_all_operators(store: MeasurementStore) -> None:
    add(store, "a", 1, 2)
    add(store, "b", 2, 4)
    add(store, "", 4)
    operators = add(store, "boss", 8)
    earlier = {name: store.imported.load_others(NOBODY, name, {MODEL}, 10) for name in ("a", "b", "")}
    assert {name: loads(table) for name, table in earlier.items()} == {"a": {1, 2}, "b": {2, 4}, "": {4, 8}}
    assert loads(store.imported.load_others(operators, "", {MODEL}, 10)) == {4.0}
    assert store.imported.load_others(NOBODY, "b", {"another"}, 10).empty
    store.provenance.change("withdrawal", "key:b", {"key": "b"}, only_of="b")
    assert store.imported.load_others(NOBODY, "b", {MODEL}, 10).empty


def test_the_latest_rows_come_first(store: MeasurementStore) -> None:
    for load in (1, 2, 4):
        add(store, "a", load)
    assert store.imported.load_others(NOBODY, "a", {MODEL}, 2)["concurrency"].tolist() == [4.0, 2.0]
    assert store.imported.load_latest(2)["concurrency"].tolist() == [4.0, 2.0]
    assert store.imported.load_names(store.imported.load_latest(2)["id"])["model"].tolist() == [MODEL] * 2


def test_earlier_rows_are_found_by_an_index(tmp_path: Path) -> None:
    plans = []

    def explain(connection: sa.Connection, cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if statement.startswith("SELECT") and "ORDER BY" in statement:
            plan = connection.connection.cursor().execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.append(" ".join(line[3] for line in plan))

    with MeasurementStore(f"sqlite:///{tmp_path / 'state.sqlite'}") as store:
        add(store.migrate(), "a", 1)
        sa.event.listen(store.database.engine, "before_cursor_execute", explain)
        for uploader in ("a", ""):
            store.imported.load_others(NOBODY, uploader, {MODEL}, 10)
    of_key, claims_of_key, of_operator, claims_of_operator = plans
    assert "INDEX measurement_of_key (model=? AND uploader=?)" in of_key
    assert "INDEX measurement_of_operator (model=? AND is_operator=?)" in of_operator
    assert "INDEX claim_of_key (uploader=?)" in claims_of_key
    assert "INDEX claim_of_operator (is_operator=?)" in claims_of_operator
    assert not any("SCAN" in plan for plan in plans)
    assert "TEMP B-TREE" not in of_key + of_operator
