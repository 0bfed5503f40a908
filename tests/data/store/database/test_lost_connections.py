"""PostgreSQL connections that are lost at any step of an upload: the caller may try again, and nothing is doubled."""

from collections.abc import Callable, Iterator

import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa

from roofcast.data.errors import NotReadyError
from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.data.store.provenance import Origin
from tests.conditions import wait_until
from tests.data.row_builders import many_rows
from tests.data.store.stores import a_model
from tests.postgres import new_database

N_ROW = 4
N_KNOWN = 2
"""Rows that another key has stored before, so that the upload claims them."""


def terminate(connection: sa.Connection, url: str) -> None:
    """End the server's process of a connection, and wait until it has ended."""
    pid = connection.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", [pid])
        wait_until(lambda: not admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone())


class Interruption:
    """Calls a function at one step of an engine's transactions: before a statement, or before a commit."""

    def __init__(self, engine: sa.Engine, act: Callable[[sa.Connection], None]) -> None:
        self.n_step, self.at = 0, -1
        self._act = act
        sa.event.listen(engine, "before_cursor_execute", self._step)
        sa.event.listen(engine, "commit", self._step)

    def _step(self, connection: sa.Connection, *_: object) -> None:
        self.n_step += 1
        if self.n_step == self.at:
            self._act(connection)

    def run(self, at: int, work: Callable[[], object]) -> int:
        """Run work with an interruption at a step, counted from 1; return the number of steps that began."""
        self.n_step, self.at = 0, at
        try:
            work()
        finally:
            self.at = -1
        return self.n_step


def upload(store: MeasurementStore, rows: pd.DataFrame, key: str) -> int:
    return store.add(rows, [(a_model(id=f"ours/{key}"), {})], Origin(key, is_operator=False)).n_new


def batch(number: int) -> pd.DataFrame:
    return many_rows(N_ROW).assign(campaign=f"batch {number}")


@pytest.fixture
def store(postgres_server: str) -> Iterator[MeasurementStore]:
    with MeasurementStore(new_database(postgres_server)) as store:
        yield store.migrate()


def check_stored_once(store: MeasurementStore, number: int) -> None:
    assert len(store.load(f"batch {number}")) == N_ROW
    with store.database.reading() as connection:
        claims = connection.execute(sa.select(sa.func.count()).select_from(store.tables.claim)).scalar_one()
    assert claims == N_KNOWN * (number + 1)


def test_a_connection_lost_at_any_step_of_an_upload_is_not_ready_and_a_retry_completes_it(
    store: MeasurementStore,
) -> None:
    def prepare(number: int) -> Callable[[], int]:
        store.add(batch(number).iloc[:N_KNOWN], origin=Origin("first", is_operator=False))
        return lambda: upload(store, batch(number), "second")

    url = store.database.url.render_as_string(hide_password=False)
    interruption = Interruption(store.database.engine, lambda connection: terminate(connection, url))
    n_step = interruption.run(-1, prepare(0))
    assert n_step > 5
    check_stored_once(store, 0)
    for step in range(1, n_step + 1):
        work = prepare(step)
        with pytest.raises(NotReadyError, match=r"does not answer"):
            interruption.run(step, work)
        assert len(store.load(f"batch {step}")) == N_KNOWN
        assert work() == N_ROW - N_KNOWN
        check_stored_once(store, step)
