import datetime as dt
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from roofcast.data.errors import InputError, NotReadyError, SchemaError, UnknownNameError
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.data.measurements.validation import row_ids, validate_measurements
from roofcast.data.store.database.tables import INFERENCE_TABLES, UtcDateTime
from roofcast.data.store.measurement_store import Added, MeasurementStore, default_url
from tests.conditions import wait_until
from tests.data.row_builders import PROCESSES, many_rows
from tests.data.store.stores import a_model, url_of


@pytest.fixture(params=["file", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path, request)


@pytest.fixture(params=["file", "memory", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MeasurementStore]:
    with MeasurementStore(url_of(request.param, tmp_path, request)) as store:
        yield store.migrate()


def add_rows(url: str, first: int, n_row: int) -> int:
    with MeasurementStore(url) as store:
        rows = many_rows(first + n_row).iloc[first:]
        return sum(store.add(rows.iloc[i : i + 50]).n_new for i in range(0, n_row, 50))


def import_until_killed(url: str, moment: str) -> None:
    """Import 3,000 rows and be killed after a statement, before the commit, or after it."""
    store = MeasurementStore(url)
    n_insert = 0

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal n_insert
        n_insert += statement.startswith("INSERT INTO measurement")
        if moment == str(n_insert):
            die()

    sa.event.listen(store.database.engine, "after_cursor_execute", count)
    if moment == "before commit":
        sa.event.listen(store.database.engine, "commit", die)
    store.add(many_rows(3_000))
    die()


def test_rows_survive_a_round_trip(store: MeasurementStore) -> None:
    table = validate_measurements(many_rows(500).assign(flash_attention=[True, False] * 250, note="Größe 模"))
    assert store.add(table) == Added(n_new=500, n_known=0)
    loaded = store.load()
    ids = row_ids(table)
    expected = table.iloc[sorted(range(500), key=ids.__getitem__)].reset_index(drop=True)
    pd.testing.assert_frame_equal(loaded, expected)
    assert row_ids(loaded) == sorted(ids)


def test_columns_that_are_blank_in_every_row_cost_nothing(store: MeasurementStore) -> None:
    table = many_rows(3)
    blank = [name for name in table if table[name].isna().all()]
    statements: list[str] = []

    @sa.event.listens_for(store.database.engine, "before_cursor_execute")
    def listen(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    store.add(table)
    (insert,) = (text for text in statements if text.startswith("INSERT INTO measurement"))
    columns = insert.partition("(")[2].partition(")")[0].split(", ")
    assert blank
    assert not set(blank) & set(columns)
    assert store.load()[blank].isna().all(axis=None)


def test_adding_again_adds_nothing(store: MeasurementStore) -> None:
    table = many_rows(100)
    store.add(table)
    assert store.add(table) == Added(n_new=0, n_known=100)
    assert store.add(pd.concat([table, many_rows(110), many_rows(110)])) == Added(n_new=10, n_known=310)
    assert store.count() == 110


def test_an_empty_table_adds_nothing(store: MeasurementStore) -> None:
    assert store.add(many_rows(1).head(0)) == Added(0, 0)
    assert store.count() == 0
    assert len(store.load()) == 0


def test_rows_that_violate_a_newer_rule_are_loaded(store: MeasurementStore) -> None:
    store.add(many_rows(2))
    with store.database.writing() as connection:
        connection.execute(sa.update(INFERENCE_TABLES.measurement).values(output_throughput_token_per_s=80.0))
    loaded = store.load()
    assert set(loaded["output_throughput_token_per_s"]) == {80.0}
    assert loaded.dtypes.equals(validate_measurements(many_rows(2)).dtypes)
    with pytest.raises(SchemaError, match="output_throughput_token_per_s: belongs only in the row of statistic mean"):
        validate_measurements(loaded)


def test_rows_are_loaded_by_model_or_accelerator(store: MeasurementStore) -> None:
    store.add(many_rows(3).assign(model="a"))
    store.add(many_rows(2).assign(model="b", accelerator="x"))
    assert store.load(model="b")["accelerator"].tolist() == ["x"] * 2
    assert len(store.load(accelerator="x", model="a")) == 0
    assert len(store.load(model="a", limit=2)) == 2


def test_a_comparison_counts_and_writes_nothing(store: MeasurementStore) -> None:
    store.add(many_rows(3))
    twice = pd.concat([many_rows(5), many_rows(5)], ignore_index=True)
    assert (store.compare(twice), store.count()) == (Added(2, 8), 3)
    assert store.add(twice) == Added(2, 8)


def test_a_page_is_a_slice_of_all(store: MeasurementStore) -> None:
    for campaign in ("b", "B", "é", "a_1", "a-1"):
        store.add(many_rows(2, campaign))
    everything = store.load()
    assert everything["campaign"].tolist() == sorted(everything["campaign"])
    pages = [store.load(offset=offset, limit=3) for offset in range(0, 12, 3)]
    assert [len(page) for page in pages] == [3, 3, 3, 1]
    pd.testing.assert_frame_equal(pd.concat(pages, ignore_index=True), everything)
    pd.testing.assert_frame_equal(store.load("é", offset=1), store.load("é").iloc[1:].reset_index(drop=True))


def test_retrainings_are_listed_by_owner_and_up_to_a_limit(store: MeasurementStore) -> None:
    asked: tuple[tuple[str, Target], ...] = (("a", INFERENCE), ("b", INFERENCE), ("a", TRAINING))
    first, second, third = (store.retrainings.add(*one) for one in asked)
    assert store.retrainings.load("a") == [third, first]
    assert store.retrainings.load(limit=2) == [third, second]


@pytest.mark.slow  # three processes, each with its imports; threads share a store in the next test
def test_concurrent_processes_lose_nothing(url: str) -> None:
    MeasurementStore(url).migrate().close()
    jobs = [(url, first, 400) for first in (0, 200, 400, 600)]
    with PROCESSES.Pool(3) as pool:
        n_new = pool.starmap(add_rows, jobs)
    with MeasurementStore(url) as store:
        assert store.count() == sum(n_new) == 1000
        assert sorted(row_ids(store.load())) == sorted(row_ids(validate_measurements(many_rows(1000))))


def test_threads_share_a_store(url: str) -> None:
    with MeasurementStore(url).migrate() as store:
        table = validate_measurements(many_rows(400))
        counts: list[int] = []
        parts = [table.iloc[i * 50 : i * 50 + 100] for i in range(7)]
        threads = [threading.Thread(target=lambda p: counts.append(store.add(p).n_new), args=(p,)) for p in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(counts) == store.count() == 400


@pytest.mark.parametrize(
    ("moment", "n_row"),
    [
        pytest.param("1", 0, marks=pytest.mark.slow),
        pytest.param("3", 0, marks=pytest.mark.slow),
        ("before commit", 0),
        ("after commit", 3000),
    ],
)
def test_a_killed_import_leaves_all_or_nothing(url: str, moment: str, n_row: int) -> None:
    MeasurementStore(url).migrate().close()
    importer = PROCESSES.Process(target=import_until_killed, args=(url, moment))
    importer.start()
    importer.join()
    assert importer.exitcode == -signal.SIGKILL
    with MeasurementStore(url).migrate() as store:
        assert store.count() == n_row
        assert store.add(many_rows(3000)) == Added(3000 - n_row, n_row)


def test_a_store_that_was_not_migrated_is_not_ready(url: str) -> None:
    with MeasurementStore(url) as store:
        for call in (store.load, store.count, store.models.load, store.retrainings.load, store.campaigns):
            with pytest.raises(NotReadyError, match="has no schema yet"):
                call()
        with pytest.raises(NotReadyError, match="has no schema yet"):
            store.add(many_rows(1))


def test_the_state_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFCAST_HOME", str(tmp_path))
    assert default_url() == f"sqlite:///{tmp_path}/roofcast.sqlite"
    with MeasurementStore().migrate() as store:
        assert store.add(many_rows(1)).n_new == 1
    assert (tmp_path / "roofcast.sqlite").is_file()


def add_models(url: str, *names: str) -> None:
    with MeasurementStore(url) as store:
        for name in names:
            store.models.add(a_model(id=name), {})


def test_models_registered_by_another_process_are_loaded(url: str) -> None:
    with MeasurementStore(url).migrate() as store:
        assert store.models.load() == []
        for n in (1, 2):
            process = PROCESSES.Process(target=add_models, args=(url, f"ours/{n}"))
            process.start()
            process.join()
            assert [spec.id for spec in store.models.load()] == ["ours/1", "ours/2"][:n]


def test_models_are_parsed_again_only_after_a_change(tmp_path: Path) -> None:
    with MeasurementStore(f"sqlite:///{tmp_path / 'state.sqlite'}").migrate() as store:
        store.models.add(a_model(), {})
        (first,) = store.models.load()
        assert store.models.load()[0] is first
        store.models.add(a_model(id="ours/z"), {})
        assert [spec.id for spec in store.models.load()] == ["ours/tiny", "ours/z"]


def test_another_model_of_the_same_id_is_refused(store: MeasurementStore) -> None:
    store.models.add(a_model(), {})
    with pytest.raises(InputError, match="another architecture is registered as 'ours/tiny'"):
        store.models.add(a_model(n_layer=3), {})
    assert store.models.load() == [a_model()]


def test_a_retraining_is_queued_runs_and_ends(store: MeasurementStore) -> None:
    queued = store.retrainings.add()
    assert queued.state == "queued"
    assert queued.requested_at.tzinfo is dt.UTC
    assert store.retrainings.find(queued.id) == queued
    running = store.retrainings.start(queued.id)
    assert running.started_at is not None
    assert running.started_at >= queued.requested_at
    done = store.retrainings.finish(queued.id, {"gate": {"passed": True}, "names": ["模"]})
    assert (done.state, done.report, done.error) == ("done", {"gate": {"passed": True}, "names": ["模"]}, "")
    assert done.finished_at is not None
    assert store.retrainings.load() == [done]


def test_a_retraining_fails_before_or_while_it_runs(store: MeasurementStore) -> None:
    first, second = store.retrainings.add(), store.retrainings.add(target=TRAINING)
    store.retrainings.start(second.id)
    for record in (first, second):
        failed = store.retrainings.fail(record.id, "no rows")
        assert (failed.state, failed.error, failed.report) == ("failed", "no rows", None)
    assert [record.id for record in store.retrainings.load()] == [second.id, first.id]


def test_a_retraining_never_returns_to_an_earlier_state(store: MeasurementStore) -> None:
    record = store.retrainings.add()
    with pytest.raises(InputError, match=f"must be running, but {record.id} is queued"):
        store.retrainings.finish(record.id, {})
    store.retrainings.start(record.id)
    with pytest.raises(InputError, match=r"must be queued, but .* is running"):
        store.retrainings.start(record.id)
    store.retrainings.finish(record.id, {})
    with pytest.raises(InputError, match=r"must be queued or running, but .* is done"):
        store.retrainings.fail(record.id, "late")
    assert store.retrainings.find(record.id).error == ""


def test_an_unknown_retraining_is_refused(store: MeasurementStore) -> None:
    for call in (
        store.retrainings.find,
        store.retrainings.start,
        lambda id_: store.retrainings.finish(id_, {}),
        lambda id_: store.retrainings.fail(id_, ""),
    ):
        with pytest.raises(UnknownNameError, match="retraining: no 'abc' is known"):
            call("abc")


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="must carry its zone"):
        UtcDateTime().process_bind_param(dt.datetime(2025, 1, 1), None)  # type: ignore[arg-type]


def test_a_model_is_removed_once_nothing_refers_to_it(store: MeasurementStore) -> None:
    """A stack profile, measurements of inference and withdrawn ones, in this order."""
    store.stacks.add("key", "rack", [{"model": "ours/tiny", "tpot_s": 0.1}], [(a_model(), {})])
    added = store.add(many_rows(2).assign(model="ours/tiny"))
    with pytest.raises(InputError, match=r"withdraw its 2 measurements .* \(ours\); remove the stack profiles .* 1 "):
        store.models.remove("ours/tiny", "me")
    with pytest.raises(InputError, match="was registered by another key or an operator"):
        store.models.remove("ours/tiny", "other", "other")
    store.stacks.remove("key", "rack")
    store.provenance.change("withdrawal", "me", {"import_id": added.import_id})
    store.models.remove("ours/tiny", "key", "key")
    assert store.models.load() == []
    with pytest.raises(UnknownNameError):
        store.models.remove("ours/tiny", "me")


def test_rows_of_a_model_that_was_removed_meanwhile_are_refused(store: MeasurementStore) -> None:
    """It was registered when the rows were read: they would refer to a model that nobody knows."""
    store.models.add(a_model(), {})
    store.models.remove("ours/tiny", "me")
    rows = many_rows(2).assign(model="ours/tiny")
    problem = "'ours/tiny' was removed meanwhile; send its config.json"
    with pytest.raises(InputError, match=problem):
        store.add(rows, registered=["ours/tiny", "another"])
    with pytest.raises(InputError, match=problem):
        store.stacks.add("key", "rack", [{"model": "ours/tiny", "tpot_s": 0.1}], registered=["ours/tiny"])
    assert (store.count(), store.stacks.summaries("key")) == (0, [])
    assert store.add(rows, [(a_model(), {})], registered=["ours/tiny"]).n_new == 2


def test_a_removal_waits_for_an_import_that_refers_to_the_model(url: str) -> None:
    with MeasurementStore(url).migrate() as store, MeasurementStore(url) as other:
        store.models.add(a_model(), {})
        refused: list[str] = []

        def remove() -> None:
            with pytest.raises(InputError) as caught:
                other.models.remove("ours/tiny", "me")
            refused.append(str(caught.value))

        removal = threading.Thread(target=remove)

        def is_waiting() -> bool:
            if store.database.engine.dialect.name != "postgresql":
                return True
            with other.database.reading() as connection:
                return bool(connection.scalar(sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")))

        def start_removal(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if statement.startswith("INSERT INTO measurement") and not removal.ident:
                removal.start()
                wait_until(lambda: is_waiting() or not removal.is_alive())

        sa.event.listen(store.database.engine, "after_cursor_execute", start_removal)
        store.add(many_rows(2).assign(model="ours/tiny"), registered=["ours/tiny"])
        removal.join()
    assert "withdraw its 2 measurements" in refused[0]


def test_of_several_schedules_one_adds_a_retraining(url: str) -> None:
    with MeasurementStore(url).migrate() as store:
        assert store.learnable_digest() == ""
        added = store.add(many_rows(3))
        digest = store.learnable_digest()
        found: list[object] = []

        def add(owner: str) -> None:
            found.append(store.retrainings.add_if_changed(owner, "inference", digest, is_shared=True))

        threads = [threading.Thread(target=add, args=(owner,)) for owner in "abcdefgh"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len([record for record in found if record]) == 1
        (record,) = store.retrainings.load()
        store.retrainings.start(record.id)
        store.retrainings.finish(record.id, {}, digest)
        assert store.retrainings.add_if_changed("a", "inference", digest, is_shared=True) is None
        store.provenance.change("withdrawal", "me", {"import_id": added.import_id})
        assert store.learnable_digest() == ""
        assert store.retrainings.add_if_changed("a", "inference", "", is_shared=True)
