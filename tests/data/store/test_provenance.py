"""Withdrawal, restoration and confirmation of measurements."""

import datetime as dt
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from roofcast.data.errors import InputError, NotAllowedError, UnknownNameError
from roofcast.data.measurements.row_owners import UNPROVEN
from roofcast.data.store import provenance
from roofcast.data.store.claims import settle_claims
from roofcast.data.store.database.tables import MeasurementTables
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.data.store.provenance import Origin
from tests.conditions import wait_until
from tests.data.store.stores import rows, url_of

CI = Origin("ci", is_operator=False, import_id="first")


def listed(store: MeasurementStore, *columns: str) -> list[list[str]]:
    """Return columns of the listing, by load."""
    rows = store.load(provenance=True).sort_values("concurrency")[list(columns)].to_numpy().tolist()
    return [[str(cell) for cell in row] for row in rows]


def states(store: MeasurementStore) -> list[str]:
    return store.load(provenance=True)["state"].tolist()


@pytest.mark.parametrize("selection", [{"import_id": "first"}, {"campaign": "nightly"}, {"key": "ci"}])
def test_a_withdrawn_row_is_listed_and_no_longer_learnt(
    store: MeasurementStore, selection: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    assert store.add(rows(1, 2), origin=CI).import_id == "first"
    store.add(rows(4, campaign="other"), origin=Origin(import_id="second"))
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        assert store.provenance.change("withdrawal", "key:boss", selection).n_row == 2
    (line,) = caplog.messages
    ((name, value),) = selection.items()
    assert line == f"withdrawal caller=key:boss {name}={value} n_row=2"
    assert len(store.load()) == len(store.load_learnable().rows) == 1
    assert listed(store, "import_id", "key", "state", "reason") == [
        ["first", "ci", "withdrawn", "withdrawn by key:boss, an operator"],
        ["first", "ci", "withdrawn", "withdrawn by key:boss, an operator"],
        ["second", "", "accepted", ""],
    ]
    assert store.campaigns() == {"nightly": 0, "other": 1}
    assert store.provenance.change("withdrawal", "key:boss", selection).n_row == 0
    assert store.provenance.change("restoration", "key:boss", selection).n_row == 2
    assert len(store.load()) == 3


def test_a_key_changes_its_own_rows_alone(store: MeasurementStore) -> None:
    store.add(rows(1), origin=CI)
    store.add(rows(2), origin=Origin("other", is_operator=False))
    assert store.provenance.change("withdrawal", "key:ci", {"campaign": "nightly"}, only_of="ci").n_row == 1
    with pytest.raises(NotAllowedError) as refusal:
        store.provenance.change("withdrawal", "key:ci", {"key": "other"}, only_of="ci")
    assert str(refusal.value) == (
        "key: 'other' has no row of the key 'ci', which may withdraw its own rows alone; ask an operator to run "
        "`roofcast measurements withdraw --key other`, or send a key of the scope admin"
    )
    with pytest.raises(UnknownNameError, match="no 'nobody' is known"):
        store.provenance.change("withdrawal", "key:ci", {"key": "nobody"}, only_of="ci")
    assert sorted(states(store)) == ["accepted", "withdrawn"]


@pytest.mark.parametrize("selection", [{}, {"import_id": "first", "key": "ci"}, {"model": "m"}])
def test_a_selection_has_one_name(store: MeasurementStore, selection: dict[str, str]) -> None:
    with pytest.raises(InputError, match="exactly one of import_id, campaign, key"):
        store.provenance.change("withdrawal", "me", selection)


def test_a_withdrawn_row_that_is_imported_again_stays_withdrawn_unless_another_key_imports_it(
    store: MeasurementStore,
) -> None:
    store.add(rows(1), origin=CI)
    store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
    again = store.add(rows(1), origin=CI)
    assert (again.n_new, again.n_known, again.n_withdrawn) == (0, 1, 1)
    assert states(store) == ["withdrawn"]
    other = store.add(rows(1), origin=Origin("other", is_operator=False))
    assert (other.n_new, other.n_known, other.n_withdrawn) == (1, 0, 0)
    assert store.load(provenance=True)[["key", "state"]].to_numpy().tolist() == [["other", "accepted"]]


@pytest.mark.parametrize("origin", [CI, Origin("boss")])
def test_no_import_undoes_the_withdrawal_of_an_operator(store: MeasurementStore, origin: Origin) -> None:
    store.add(rows(1), origin=origin)
    store.provenance.change("withdrawal", "key:boss", {"key": origin.uploader})
    for uploader in ("ci", "other"):
        again = store.add(rows(1, 2), origin=Origin(uploader, is_operator=False))
        assert again.n_withdrawn == 1
        assert listed(store, "key", "state")[0] == [origin.uploader, "withdrawn"]
    assert store.load_learnable().rows["concurrency"].tolist() == [2.0]


def test_a_key_restores_what_it_withdrew_and_nothing_that_an_operator_withdrew(store: MeasurementStore) -> None:
    store.add(rows(1), origin=CI)
    store.add(rows(2), origin=Origin("ci", is_operator=False, import_id="second"))
    store.provenance.change("withdrawal", "key:ci", {"import_id": "first"}, only_of="ci")
    store.provenance.change("withdrawal", "key:boss", {"import_id": "second"})
    assert listed(store, "reason") == [["withdrawn by key:ci"], ["withdrawn by key:boss, an operator"]]
    restored = store.provenance.change("restoration", "key:ci", {"key": "ci"}, only_of="ci")
    assert (restored.n_row, restored.n_refused) == (1, 1)
    assert listed(store, "state") == [["accepted"], ["withdrawn"]]
    with pytest.raises(NotAllowedError) as refusal:
        store.provenance.change("restoration", "key:ci", {"import_id": "second"}, only_of="ci")
    assert str(refusal.value) == (
        "import_id: an operator withdrew the withdrawn row of 'second', and an operator alone restores what one "
        "withdrew; ask an operator to run `roofcast measurements restore --import second`, or send a key of the "
        "scope admin"
    )
    assert store.provenance.change("restoration", "key:ci", {"import_id": "first"}, only_of="ci").n_row == 0
    assert store.provenance.change("restoration", "key:boss", {"key": "ci"}).n_row == 1
    assert listed(store, "state") == [["accepted"], ["accepted"]]


def test_an_operator_withdraws_what_a_key_had_withdrawn_itself(store: MeasurementStore) -> None:
    """Otherwise another key that imports the row would bring it back."""
    store.add(rows(1), origin=CI)
    store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
    assert store.provenance.change("withdrawal", "key:boss", {"campaign": "nightly"}).n_row == 1
    assert store.provenance.change("withdrawal", "key:boss", {"campaign": "nightly"}).n_row == 0
    with pytest.raises(NotAllowedError, match="an operator withdrew the withdrawn row of 'ci'"):
        store.provenance.change("restoration", "key:ci", {"key": "ci"}, only_of="ci")
    assert store.add(rows(1), origin=Origin("other", is_operator=False)).n_withdrawn == 1
    assert store.load_learnable().rows.empty


def test_an_operators_withdrawal_of_any_claim_holds_while_no_claim_is_present(store: MeasurementStore) -> None:
    store.add(rows(1), origin=CI)
    store.add(rows(1), origin=Origin("other", is_operator=False))
    store.provenance.change("withdrawal", "key:boss", {"key": "other"})
    store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
    assert store.add(rows(1), origin=Origin("third", is_operator=False)).n_withdrawn == 1
    assert store.load_learnable().rows.empty


def test_two_changes_of_the_claims_to_a_row_settle_one_after_the_other(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key withdraws the prevailing claim while the other restores its own, which then must prevail."""
    first_settled, may_commit = threading.Event(), threading.Event()

    def settle_and_wait(connection: sa.Connection, tables: MeasurementTables) -> None:
        settle_claims(connection, tables)
        if not first_settled.is_set():
            first_settled.set()
            may_commit.wait(60)

    with MeasurementStore(url_of("postgresql", tmp_path, request)) as store, ThreadPoolExecutor(2) as pool:
        change = store.migrate().provenance.change
        for key in ("ci", "other"):
            store.add(rows(1), origin=Origin(key, is_operator=False))
        change("withdrawal", "key:other", {"key": "other"}, only_of="other")
        monkeypatch.setattr(provenance, "settle_claims", settle_and_wait)
        withdrawal = pool.submit(change, "withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
        assert first_settled.wait(60)
        restoration = pool.submit(change, "restoration", "key:other", {"key": "other"}, only_of="other")
        wait_until(lambda: restoration.done() or n_waiting(store) == 1)
        may_commit.set()
        assert withdrawal.result(60).n_row == restoration.result(60).n_row == 1
        assert listed(store, "key", "state") == [["other", "accepted"]]


def n_waiting(store: MeasurementStore) -> int:
    """Return the number of transactions of a PostgreSQL database that wait for an advisory lock."""
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with store.database.reading() as connection:
        return int(connection.execute(sa.text(query)).scalar_one())


def test_a_row_that_two_keys_imported_is_learnt_until_both_withdraw_it(store: MeasurementStore) -> None:
    store.add(rows(1), origin=CI)
    second = store.add(rows(1), origin=Origin("other", is_operator=False))
    assert (second.n_new, second.n_known) == (0, 1)
    assert listed(store, "key", "state") == [["ci", "accepted"]]
    assert store.provenance.change("withdrawal", "key:ci", {"import_id": "first"}, only_of="ci").n_row == 1
    assert listed(store, "key", "state") == [["other", "accepted"]]
    assert store.provenance.change("withdrawal", "key:other", {"campaign": "nightly"}, only_of="other").n_row == 1
    assert store.load_learnable().rows.empty
    summaries = {one["key"]: (one["n_row"], one["n_withdrawn"]) for one in store.provenance.imports()}
    assert summaries == {"ci": (1, 1), "other": (1, 1)}
    assert store.provenance.change("restoration", "key:boss", {"key": "ci"}).n_row == 1
    assert store.load_learnable().uploaders.tolist() == ["ci"]


def test_a_row_of_a_key_stays_the_keys_though_the_operator_imports_it(store: MeasurementStore) -> None:
    store.add(rows(1, 2), origin=CI)
    store.add(rows(4), origin=Origin("other", is_operator=False))
    again = rows(1, 2, 4, 8)
    for added in (store.compare(again), store.add(again)):
        assert (added.n_new, added.n_known, added.n_claimed, added.n_of_key) == (1, 3, 0, {"ci": 2, "other": 1})
    assert store.load_learnable().uploaders.value_counts().to_dict() == {"ci": 2, "other": 1, "": 1}
    assert store.add(rows(1), origin=Origin("third", is_operator=False)).n_of_key == {}
    store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
    freed = store.add(rows(2))
    assert (freed.n_new, freed.n_of_key) == (1, {})


def test_an_operators_claim_of_the_rows_of_a_key_can_be_undone(store: MeasurementStore) -> None:
    store.add(rows(1), origin=CI)
    for claimed in (store.compare(rows(1), claim_of_keys=True), store.add(rows(1), claim_of_keys=True)):
        assert (claimed.n_new, claimed.n_claimed, claimed.n_of_key) == (0, 1, {"ci": 1})
    assert store.load_learnable().uploaders.tolist() == [""]
    assert store.provenance.change("withdrawal", "the operator", {"import_id": claimed.import_id}).n_row == 1
    assert store.load_learnable().uploaders.tolist() == ["ci"]


def test_an_operator_can_claim_again_what_it_gave_back(store: MeasurementStore) -> None:
    store.add(rows(1), origin=CI)
    for _ in range(2):
        claimed = store.add(rows(1), claim_of_keys=True)
        assert (claimed.n_claimed, claimed.n_of_key) == (1, {"ci": 1})
        assert store.load_learnable().uploaders.tolist() == [""]
        store.provenance.change("withdrawal", "the operator", {"import_id": claimed.import_id})
        assert store.load_learnable().uploaders.tolist() == ["ci"]
    for added in (store.compare(rows(1)), store.add(rows(1))):
        assert (added.n_claimed, added.n_of_key) == (0, {"ci": 1})
    summaries = [(one["key"], one["n_withdrawn"]) for one in store.provenance.imports()]
    assert sorted(summaries) == [("", 1), ("ci", 0)]


def test_a_comparison_has_the_reasons_of_quarantine(store: MeasurementStore) -> None:
    reasons = pd.Series(["far", "", "far", "slow"])
    for added in (store.compare(rows(1, 2, 4, 8), CI, reasons), store.add(rows(1, 2, 4, 8), (), CI, reasons)):
        assert added.n_quarantined == 3
        assert sorted(added.quarantine_reasons) == ["far", "slow"]
    assert store.compare(rows(1, 2, 4, 8), CI, reasons).n_quarantined == 0


def test_a_row_of_a_key_that_the_operator_claims_is_the_operators(store: MeasurementStore) -> None:
    store.add(rows(1, 2), origin=CI, quarantine=pd.Series(["far off", "far off"]))
    store.add(rows(1), origin=Origin(), claim_of_keys=True)
    learnable = store.load_learnable()
    assert learnable.rows["concurrency"].tolist() == [1.0]
    assert learnable.uploaders.tolist() == [""]
    store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
    assert listed(store, "key", "state") == [["", "accepted"], ["ci", "withdrawn"]]


def test_an_import_that_repeats_a_claim_changes_nothing(store: MeasurementStore) -> None:
    other = Origin("other", is_operator=False)
    for origin in (CI, other, other):
        store.add(rows(1), origin=origin)
    store.provenance.change("withdrawal", "key:other", {"key": "other"}, only_of="other")
    assert store.add(rows(1), origin=other).n_new == 0
    store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
    assert states(store) == ["withdrawn"]


def test_a_comparison_counts_as_the_import_does(store: MeasurementStore) -> None:
    store.add(rows(1, 2), origin=CI)
    store.add(rows(4), origin=Origin("boss"))
    store.provenance.change("withdrawal", "key:ci", {"key": "ci"}, only_of="ci")
    store.provenance.change("withdrawal", "key:boss", {"key": "boss"})
    for origin in (CI, Origin("other", is_operator=False)):
        counts = [
            (one.n_new, one.n_known, one.n_withdrawn)
            for one in (store.compare(rows(1, 2, 4, 8), origin), store.add(rows(1, 2, 4, 8), origin=origin))
        ]
        assert counts[0] == counts[1] == ((1, 3, 3) if origin is CI else (2, 2, 1))


def test_a_row_in_quarantine_is_learnt_once_it_is_confirmed(store: MeasurementStore) -> None:
    added = store.add(rows(1, 2), origin=CI, quarantine=pd.Series(["tpot_s is ten times the estimate", ""]))
    assert (added.n_new, added.n_quarantined) == (2, 1)
    assert len(store.load()) == 2
    learnable = store.load_learnable()
    assert learnable.rows["concurrency"].tolist() == [2.0]
    assert learnable.uploaders.tolist() == ["ci"]
    assert listed(store, "state", "reason") == [["quarantined", "tpot_s is ten times the estimate"], ["accepted", ""]]
    (summary,) = store.provenance.imports()
    assert (summary["import_id"], summary["n_row"], summary["n_quarantined"], summary["n_withdrawn"]) == (
        "first",
        2,
        1,
        0,
    )
    assert store.provenance.change("confirmation", "key:ci", {"import_id": "first"}).n_row == 1
    assert sorted(states(store)) == ["accepted", "confirmed"]
    assert len(store.load_learnable().rows) == 2


def test_rows_of_an_operator_have_no_uploader_in_training(store: MeasurementStore) -> None:
    store.add(rows(1))
    store.add(rows(2), origin=Origin("boss"))
    assert store.load_learnable().uploaders.tolist() == ["", ""]


def test_new_rows_of_keys_share_one_owner_in_training(store: MeasurementStore) -> None:
    for i, key in enumerate(["night-1", "night-2"]):
        store.add(rows(i + 1), origin=Origin(key, is_operator=False))
    store.add(rows(4))
    now = dt.datetime.now(dt.UTC)
    of_day = {days: store.load_learnable(now + dt.timedelta(days=days)).owners.tolist() for days in (0, 29, 31)}
    assert sorted(of_day[0]) == sorted(of_day[29]) == ["", UNPROVEN, UNPROVEN]
    assert sorted(of_day[31]) == ["", "night-1", "night-2"]
    digests = [store.learnable_digest(now + dt.timedelta(days=days)) for days in (0, 29, 31)]
    assert digests[0] == digests[1] != digests[2]


def test_rows_of_unknown_origin_have_the_least_weight_until_an_operator_confirms_them(
    store: MeasurementStore,
) -> None:
    store.add(rows(1, campaign="by night"), origin=Origin(import_id=""))  # as after an upgrade
    assert listed(store, "state") == [["unknown origin"]]
    ((reason,),) = listed(store, "reason")
    assert "`roofcast measurements confirm --campaign 'by night'`" in reason
    assert store.load_learnable().owners.tolist() == [UNPROVEN]
    assert store.provenance.change("confirmation", "boss", {"campaign": "by night"}).n_row == 1
    assert listed(store, "state", "reason") == [["confirmed", ""]]
    assert store.load_learnable().owners.tolist() == [""]
