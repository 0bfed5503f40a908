"""Measurements with their imports: those of one import, the earlier ones of its caller, the latest of all."""

import datetime as dt
from collections.abc import Collection
from typing import Final

import pandas as pd
import sqlalchemy as sa

from roofcast.data.store.claims import id_parts, is_seen_by, is_sound, measurements_seen_by
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.tables import CLAIM_COLUMNS, MeasurementTables

IMPORT_COLUMNS: Final = ("id", "import_id", "uploader", "added_at")
NAME_COLUMNS: Final = ("id", "model", "accelerator", "engine", "engine_version")


class ImportedMeasurements:
    """Queries of the measurements of one target; every method is one transaction.

    All raise `NotReadyError` if the database cannot be used. Tables have the columns of measurements and
    `IMPORT_COLUMNS`; `uploader` is blank for rows of an operator.
    """

    def __init__(self, database: Database, tables: MeasurementTables) -> None:
        self._database = database
        self._tables = tables
        self._both = (tables.measurement, tables.claim)
        self._names = [column.name for column in tables.measurement.c]

    def count(self, import_id: str, seen_by: str | None = None) -> int:
        """Return the number of claims of an import: the rows that were new, and those of others; 0 if not seen."""
        queries = [
            sa.select(sa.func.count()).where(table.c.import_id == import_id, is_seen_by(table, seen_by))
            for table in self._both
        ]
        with self._database.reading() as connection:
            return sum(connection.execute(query).scalar_one() for query in queries)

    def load_import(self, import_id: str, limit: int) -> pd.DataFrame:
        """Return the rows that an import claims, those with the least ids, whosever claim prevails.

        Rows in quarantine and withdrawn ones are among them.
        """
        parts = [
            self._of_claims(table).where(table.c.import_id == import_id).order_by(table.c.id).limit(limit)
            for table in self._both
        ]
        return self._load(parts).sort_values("id", ignore_index=True)[:limit]

    def load_others(self, import_id: str, uploader: str, models: Collection[str], limit: int) -> pd.DataFrame:
        """Return the latest rows of some models that a key, or any operator if blank, claims by other imports.

        Rows in quarantine and withdrawn ones are not among them.

        `limit`: rows in all; each model has an equal part of them.
        """
        part = max(1, limit // max(1, len(models)))
        queries = []
        for table in self._both:
            c = table.c
            is_own = c.uploader == uploader if uploader else c.is_operator == sa.true()
            is_usable = c.withdrawn_at.is_(None) & is_sound(table) & (c.import_id != import_id)
            usable = self._of_claims(table).where(is_own, is_usable)
            latest = usable.order_by(c.added_at.desc()).limit(part)
            queries += [latest.where(self._tables.measurement.c.model == model) for model in sorted(models)]
        return self._load(queries)

    def load_latest(self, limit: int, since: dt.datetime | None = None, seen_by: str | None = None) -> pd.DataFrame:
        """Return the latest rows that a key sees, by the claims that prevail; none in quarantine or withdrawn."""
        seen = measurements_seen_by(self._tables, seen_by)
        c = seen.c
        query = sa.select(*(c[name] for name in self._names)).where(c.withdrawn_at.is_(None), is_sound(seen))
        query = query if since is None else query.where(c.added_at >= since)
        return self._load([query.order_by(c.added_at.desc(), c.id).limit(limit)])

    def load_names(self, ids: Collection[str]) -> pd.DataFrame:
        """Return `NAME_COLUMNS` of the stored measurements among some ids."""
        measurement = self._tables.measurement
        query: sa.Select[tuple[object, ...]] = sa.select(*(measurement.c[name] for name in NAME_COLUMNS))
        with self._database.reading() as connection:
            parts = [query.where(measurement.c.id.in_(part)) for part in id_parts(ids)]
            lines = [line for part in parts for line in connection.execute(part)]
        return pd.DataFrame(lines, columns=list(NAME_COLUMNS), dtype=object)

    def _load(self, queries: list[sa.Select[tuple[object, ...]]]) -> pd.DataFrame:
        with self._database.reading() as connection:
            lines = [tuple(line) for query in queries for line in connection.execute(query)]
        names, schema = self._names, self._tables.schema
        cells = dict(zip(names, zip(*lines, strict=True), strict=True)) if lines else dict.fromkeys(names, ())
        columns = {name: pd.Series(cells[name], dtype=column.kind) for name, column in schema.items()}
        uploader = pd.Series(cells["uploader"], dtype=object).mask(pd.Series(cells["is_operator"], dtype=bool), "")
        imports = {"uploader": uploader, "added_at": pd.to_datetime(pd.Series(cells["added_at"]), utc=True)}
        texts = {name: pd.Series(cells[name], dtype=object) for name in ("id", "import_id")}
        return pd.DataFrame(columns | {name: (imports | texts)[name] for name in IMPORT_COLUMNS})

    def _of_claims(self, table: sa.Table) -> sa.Select[tuple[object, ...]]:
        measurement, claim = self._both
        columns = [(table if name in CLAIM_COLUMNS else measurement).c[name] for name in self._names]
        query = sa.select(*columns)
        return query if table is measurement else query.join_from(claim, measurement, claim.c.id == measurement.c.id)
