"""The store: measurements in a database, with the registered models and the retrainings beside them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import pandas as pd
import sqlalchemy as sa

from roofcast.data.home import roofcast_home
from roofcast.data.measurements.schema import MEASUREMENT_COLUMNS
from roofcast.data.measurements.validation import row_ids, with_column_types
from roofcast.data.specs import ModelSpec
from roofcast.data.store.database import Database
from roofcast.data.store.registered_models import RegisteredModels
from roofcast.data.store.retrainings import Retrainings
from roofcast.data.store.stack_profiles import StackProfiles
from roofcast.data.store.tables import MEASUREMENT


def default_url() -> str:
    """Return the URL of the SQLite file in the state folder."""
    return f"sqlite:///{roofcast_home() / 'roofcast.sqlite'}"


@dataclass(frozen=True)
class Added:
    """Numbers of rows that were new to the store, and that it had already or the table repeated."""

    n_new: int
    n_known: int


class MeasurementStore:
    """Measurements in a database; `models`, `retrainings` and `stacks` are other tables of the same database.

    Every method is one transaction. Any number of threads and processes may use the same database.
    All raise `NotReadyError` if the database cannot be used.

    Parameters
    ----------
    url
        Database URL, SQLite or PostgreSQL; `default_url` by default.
    """

    def __init__(self, url: str | None = None) -> None:
        self.database = Database(url or default_url())
        self.models = RegisteredModels(self.database)
        self.retrainings = Retrainings(self.database)
        self.stacks = StackProfiles(self.database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    def migrate(self) -> Self:
        """Bring the schema up to date and return the store; several processes may do so at once.

        Raises
        ------
        NotReadyError
            If the database cannot be written, or comes from a newer version of roofcast.
        """
        self.database.migrate()
        return self

    def add(self, table: pd.DataFrame, models: Iterable[tuple[ModelSpec, dict[str, Any]]] = ()) -> Added:
        """Add the rows that are new and the models of these rows: all of them, or none if an error escapes.

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
        rows = _database_rows(table)
        insert = self.database.insert_new(MEASUREMENT).returning(MEASUREMENT.c.id)
        with self.database.writing() as connection:
            for spec, config in models:
                self.models.insert(connection, spec, config)
            n_new = len(connection.execute(insert, rows).all()) if rows else 0
        return Added(n_new, len(table) - n_new)

    def compare(self, table: pd.DataFrame) -> Added:
        """Return how many validated rows `add` would find new and known; writes nothing and needs no migration."""
        ids = set(row_ids(table))
        known: set[str] = set()
        if self.database.schema_state() != "none":
            with self.database.reading() as connection:
                known = ids.intersection(connection.execute(sa.select(MEASUREMENT.c.id)).scalars())
        n_new = len(ids) - len(known)
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
        """Return the measurements of a campaign, model and accelerator, or all, by campaign and row id.

        The order does not depend on the order of import. Rows are not validated again: a row that breaks a newer
        rule still loads.

        Parameters
        ----------
        offset, limit
            Number of rows to skip, and largest number to return.
        """
        columns = [MEASUREMENT.c[name] for name in ("id", *MEASUREMENT_COLUMNS)]
        order = (self.database.by_code_point(MEASUREMENT.c.campaign), MEASUREMENT.c.id)
        query = sa.select(*columns).order_by(*order).offset(offset).limit(limit)
        for name, value in {"campaign": campaign, "model": model, "accelerator": accelerator}.items():
            if value is not None:
                query = query.where(MEASUREMENT.c[name] == value)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        table = pd.DataFrame(rows, columns=["id", *MEASUREMENT_COLUMNS])
        return with_column_types(table.drop(columns="id"))

    def count(self) -> int:
        """Return the number of measurements."""
        with self.database.reading() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(MEASUREMENT)).scalar_one()

    def campaigns(self) -> dict[str, int]:
        """Return the number of measurements by campaign, in order of the names."""
        query = sa.select(MEASUREMENT.c.campaign, sa.func.count()).group_by(MEASUREMENT.c.campaign)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        return {row[0]: row[1] for row in sorted(rows)}


def _database_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows by column name, ordered by id: writers that lock rows in one order never deadlock."""
    added_at = dt.datetime.now(dt.UTC)
    cells = table[list(MEASUREMENT_COLUMNS)].astype(object).where(table.notna(), None)
    by_id = zip(row_ids(table), cells.itertuples(index=False, name=None), strict=True)
    return [
        {"id": row_id, **dict(zip(MEASUREMENT_COLUMNS, row, strict=True)), "added_at": added_at}
        for row_id, row in sorted(by_id, key=lambda pair: pair[0])
    ]
