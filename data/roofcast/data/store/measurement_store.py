"""Where measurements, registered models and retraining records are kept."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import pandas as pd
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.home import roofcast_home
from roofcast.data.measurements.schema import MEASUREMENT_COLUMNS
from roofcast.data.measurements.validation import row_ids, with_column_types
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from roofcast.data.store.database import Database
from roofcast.data.store.tables import MEASUREMENT, MODEL, RETRAINING

State = Literal["queued", "running", "done", "failed"]

_ALL_MODELS: Final = sa.select(MODEL.c.spec, MODEL.c.config).order_by(MODEL.c.id)


def default_url() -> str:
    """Return the URL of the SQLite file in the state folder."""
    return f"sqlite:///{roofcast_home() / 'roofcast.sqlite'}"


@dataclass(frozen=True)
class Added:
    """How many rows of a table were new to the store, and how many it had, or the table repeated."""

    n_new: int
    n_known: int


@dataclass(frozen=True)
class Retraining:
    """One request to retrain, and what came of it; `owner` is the state folder whose worker sees to it."""

    id: str
    state: State
    requested_at: dt.datetime
    started_at: dt.datetime | None = None
    finished_at: dt.datetime | None = None
    report: dict[str, Any] | None = None
    error: str = ""
    owner: str = ""


class MeasurementStore:
    """Measurements, registered models and retraining records in a database.

    Every method is one transaction. Any number of threads and processes may use the same database.
    All raise `NotReadyError` if the database cannot be used.

    Parameters
    ----------
    url
        Database URL, SQLite or PostgreSQL; `default_url` by default.
    """

    def __init__(self, url: str | None = None) -> None:
        self.database = Database(url or default_url())
        self._models: tuple[int | None, list[ModelSpec]] = None, []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    def migrate(self) -> Self:
        """Bring the database's schema up to date and return the store; several processes may do so at once.

        Raises
        ------
        NotReadyError
            If the database cannot be written, or comes from a newer version of roofcast.
        """
        self.database.migrate()
        return self

    def add(self, table: pd.DataFrame, models: Iterable[tuple[ModelSpec, dict[str, Any]]] = ()) -> Added:
        """Add the rows that are new and the models they bring: all of them, or none if an error escapes.

        Parameters
        ----------
        table
            Rows that `validate_measurements` returned.
        models
            Specs, each with the ``config.json`` it was read from.

        Raises
        ------
        InputError
            If another architecture is registered under a model's id.
        """
        rows = _rows(table)
        insert = _insert_new(self.database, MEASUREMENT).returning(MEASUREMENT.c.id)
        with self.database.writing() as connection:
            for spec, config in models:
                _keep_model(self.database, connection, spec, config)
            n_new = len(connection.execute(insert, rows).all()) if rows else 0
        return Added(n_new, len(table) - n_new)

    def compare(self, table: pd.DataFrame) -> Added:
        """Return how many validated rows `add` would find new and known; writes nothing, and migrates no database."""
        wanted = set(row_ids(table))
        known: set[str] = set()
        if self.database.schema_state() != "none":
            with self.database.reading() as connection:
                known = wanted.intersection(connection.execute(sa.select(MEASUREMENT.c.id)).scalars())
        n_new = len(wanted) - len(known)
        return Added(n_new, len(table) - n_new)

    def load(
        self,
        campaign: str | None = None,
        offset: int = 0,
        limit: int | None = None,
        *,
        model: str | None = None,
        accelerator: str | None = None,
    ) -> pd.DataFrame:
        """Return the measurements, ordered by campaign and row id, so that the order of import leaves no trace.

        They were checked when they were added, and are not again: a rule that came later shuts nobody out.

        Parameters
        ----------
        campaign, model, accelerator
            Only those of this one; no rows if there is none.
        offset, limit
            How many to pass over, and the most that are returned.
        """
        columns = [MEASUREMENT.c[name] for name in ("id", *MEASUREMENT_COLUMNS)]
        order = (_by_code_point(self.database, MEASUREMENT.c.campaign), MEASUREMENT.c.id)
        query = sa.select(*columns).order_by(*order).offset(offset).limit(limit)
        for name, wanted in {"campaign": campaign, "model": model, "accelerator": accelerator}.items():
            if wanted is not None:
                query = query.where(MEASUREMENT.c[name] == wanted)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        table = pd.DataFrame(rows, columns=["id", *MEASUREMENT_COLUMNS])
        return with_column_types(table.drop(columns="id"))

    def count(self) -> int:
        """Return the number of measurements."""
        with self.database.reading() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(MEASUREMENT)).scalar_one()

    def campaigns(self) -> dict[str, int]:
        """Return the number of measurements of each campaign, by name."""
        query = sa.select(MEASUREMENT.c.campaign, sa.func.count()).group_by(MEASUREMENT.c.campaign)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        return {row[0]: row[1] for row in sorted(rows)}

    def add_model(self, spec: ModelSpec, config: dict[str, Any]) -> None:
        """Register a model; nothing happens if the same is registered already.

        Parameters
        ----------
        spec
            Its architecture, as `models` gives it back.
        config
            The ``config.json`` that it was read from.

        Raises
        ------
        InputError
            If another architecture is registered under its id.
        """
        with self.database.writing() as connection:
            _keep_model(self.database, connection, spec, config)

    def models(self) -> list[ModelSpec]:
        """Return the registered models, by id, as this version reads their configurations.

        They are read anew only after a change, where the database tells of changes.
        """
        version = self.database.version()
        if version is None or version != self._models[0]:
            with self.database.reading() as connection:
                rows = connection.execute(_ALL_MODELS).all()
            self._models = version, [_as_read_now(spec, config) for spec, config in rows]
        return [*self._models[1]]

    def add_retraining(self, owner: str = "") -> Retraining:
        """Keep a request to retrain and return it, queued."""
        record = Retraining(id=uuid.uuid4().hex, state="queued", requested_at=_now(), owner=owner)
        with self.database.writing() as connection:
            connection.execute(sa.insert(RETRAINING), vars(record))
        return record

    def retraining(self, id: str) -> Retraining:  # noqa: A002
        """Return one retraining.

        Raises
        ------
        UnknownNameError
            If there is no such retraining.
        """
        with self.database.reading() as connection:
            return _retraining(connection, id)

    def retrainings(self, owner: str | None = None, limit: int | None = None) -> list[Retraining]:
        """Return the retrainings, the latest request first.

        Parameters
        ----------
        owner
            Only those of this owner.
        limit
            Most that are returned.
        """
        query = sa.select(RETRAINING).order_by(RETRAINING.c.requested_at.desc(), RETRAINING.c.id).limit(limit)
        if owner is not None:
            query = query.where(RETRAINING.c.owner == owner)
        with self.database.reading() as connection:
            return [Retraining(**row) for row in connection.execute(query).mappings()]

    def retraining_states(self) -> dict[str, int]:
        """Return the number of retrainings in each state that any is in."""
        query = sa.select(RETRAINING.c.state, sa.func.count()).group_by(RETRAINING.c.state)
        with self.database.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def start_retraining(self, id: str) -> Retraining:  # noqa: A002
        """Return the retraining as running; of several that start it, one succeeds.

        Raises
        ------
        UnknownNameError
            If there is no such retraining.
        InputError
            If it is not queued.
        """
        return self._advance(id, ("queued",), state="running", started_at=_now())

    def finish_retraining(self, id: str, report: dict[str, Any]) -> Retraining:  # noqa: A002
        """Return the retraining as done, with its report.

        Raises
        ------
        UnknownNameError
            If there is no such retraining.
        InputError
            If it is not running.
        """
        return self._advance(id, ("running",), state="done", finished_at=_now(), report=report)

    def fail_retraining(self, id: str, error: str) -> Retraining:  # noqa: A002
        """Return the retraining as failed, with the reason.

        Raises
        ------
        UnknownNameError
            If there is no such retraining.
        InputError
            If it has ended already.
        """
        return self._advance(id, ("queued", "running"), state="failed", finished_at=_now(), error=error)

    def _advance(self, id: str, before: tuple[State, ...], **changes: object) -> Retraining:  # noqa: A002
        is_due = (RETRAINING.c.id == id) & RETRAINING.c.state.in_(before)
        with self.database.writing() as connection:
            result = connection.execute(sa.update(RETRAINING).where(is_due).values(**changes))
            record = _retraining(connection, id)
        if result.rowcount == 0:
            raise InputError("retraining", f"must be {' or '.join(before)}, but {id} is {record.state}")
        return record


def _retraining(connection: sa.Connection, id: str) -> Retraining:  # noqa: A002
    row = connection.execute(sa.select(RETRAINING).where(RETRAINING.c.id == id)).mappings().one_or_none()
    if row is None:
        known = connection.execute(sa.select(RETRAINING.c.id)).scalars().all()
        raise UnknownNameError("retraining", id, known)
    return Retraining(**row)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows by column name, ordered by id: two writers that lock rows in one order never deadlock."""
    added_at = _now()
    cells = table[list(MEASUREMENT_COLUMNS)].astype(object).where(table.notna(), None)
    keyed = zip(row_ids(table), cells.itertuples(index=False, name=None), strict=True)
    return [
        {"id": id_, **dict(zip(MEASUREMENT_COLUMNS, row, strict=True)), "added_at": added_at}
        for id_, row in sorted(keyed, key=lambda pair: pair[0])
    ]


def _keep_model(database: Database, connection: sa.Connection, spec: ModelSpec, config: dict[str, Any]) -> None:
    row = {"id": spec.id, "spec": spec.model_dump(mode="json"), "config": config, "added_at": _now()}
    connection.execute(_insert_new(database, MODEL), row)
    kept = connection.execute(sa.select(MODEL.c.spec, MODEL.c.config).where(MODEL.c.id == spec.id)).one()
    if _as_read_now(*kept) != spec:
        raise InputError("model", f"another architecture is registered as {spec.id!r}; choose another id")


def _as_read_now(kept: dict[str, Any], config: dict[str, Any]) -> ModelSpec:
    """Return a model as this version reads its configuration, or as it was kept if it cannot read it."""
    spec = ModelSpec.parse(kept)
    try:
        read = model_from_config(config, spec.id)
    except InputError:
        return spec
    return read.model_copy(update={"lineage": spec.lineage, "fold_group": spec.fold_group})


def _insert_new(database: Database, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """Return the statement that inserts the rows whose key is new, in the database's own words."""
    if database.engine.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing(index_elements=["id"])
    return sqlite.insert(table).on_conflict_do_nothing(index_elements=["id"])


def _by_code_point(database: Database, column: sa.Column[str]) -> sa.ColumnElement[str]:
    """Return the column in the order of code points, which is SQLite's own; PostgreSQL's is that of a language."""
    return column.collate("C") if database.engine.dialect.name == "postgresql" else column


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
