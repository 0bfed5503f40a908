"""The store: measurements of inference and training in a database, with the registered models and retrainings."""

import datetime as dt
import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

import pandas as pd
import sqlalchemy as sa

from roofcast.data.home import roofcast_home
from roofcast.data.measurements.job_validation import training_row_ids
from roofcast.data.measurements.row_owners import training_owners
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.data.measurements.validation import row_ids, with_column_types
from roofcast.data.specs import ModelSpec
from roofcast.data.store.claims import LOCK, KnownRows, add_claims, find_known, is_sound, measurements_seen_by
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.sqlite_listing import STACKS
from roofcast.data.store.database.tables import INFERENCE_TABLES, TRAINING_TABLES, MeasurementTables
from roofcast.data.store.imported_measurements import ImportedMeasurements
from roofcast.data.store.provenance import Origin, Provenance, with_provenance
from roofcast.data.store.registered_models import RegisteredModels
from roofcast.data.store.retrainings import Retrainings
from roofcast.data.store.shadow_counts import ShadowCounts
from roofcast.data.store.stack_profiles import StackProfiles


def default_url() -> str:
    """Return the URL of the SQLite file in the state folder."""
    return f"sqlite:///{roofcast_home() / 'roofcast.sqlite'}"


@dataclass(frozen=True)
class Added:
    """Numbers of rows that were new to the store, and that it had already or the table repeated.

    - `n_quarantined`, `quarantine_reasons`: Number of the new rows that teach nothing until they are confirmed, and
      reasons of up to `MAX_REASON` of them.
    - `n_withdrawn`: Number of the known rows that were withdrawn and stay so.
    - `n_claimed`: Number of the known rows that others own and of which the import has a claim too.
    - `n_of_key`: Numbers of the known rows that API keys own, by key, if an operator imports: `n_claimed` counts them
      if the operator claims them.
    """

    n_new: int
    n_known: int
    n_quarantined: int = field(default=0, compare=False)
    n_withdrawn: int = field(default=0, compare=False)
    n_claimed: int = field(default=0, compare=False)
    import_id: str = field(default="", compare=False)
    n_of_key: Mapping[str, int] = field(default_factory=dict, compare=False)
    quarantine_reasons: tuple[str, ...] = field(default=(), compare=False)


MAX_REASON: Final = 3
"""Different reasons of quarantine that the answer to an import has."""


@dataclass(frozen=True)
class LearnableRows:
    """Measurements that training may use, the key that imported each, blank for an operator, and its owner there.

    Owners are those of `training_owners`.
    """

    rows: pd.DataFrame
    uploaders: pd.Series
    owners: pd.Series


class Measurements:
    """Measurements of one target in a database; every method is one transaction.

    All raise `NotReadyError` if the database cannot be used.
    """

    def __init__(self, database: Database, models: RegisteredModels, tables: MeasurementTables) -> None:
        self.database = database
        self.models = models
        self.tables = tables
        self.imported = ImportedMeasurements(database, tables)
        self._table = tables.measurement
        self._row_ids = row_ids if tables.target == INFERENCE else training_row_ids

    def add(
        self,
        table: pd.DataFrame,
        models: Iterable[tuple[ModelSpec, dict[str, Any]]] = (),
        origin: Origin | None = None,
        quarantine: pd.Series | None = None,
        *,
        claim_of_keys: bool = False,
        registered: Collection[str] = (),
    ) -> Added:
        """Add the rows that are new and the models of these rows: all of them, or none if an error escapes.

        A row that others had imported gets a claim of this import too, see `claims`; it counts as new if they had
        withdrawn it. What an operator withdrew stays so until an operator restores it.

        Raises `InputError` if another architecture is registered under a model's id, or a model of the rows was
        removed since.

        - `table`: Rows that `validate_measurements` returned.
        - `models`: Specs, each with the ``config.json`` it was read from.
        - `origin`: None for an import by the operator.
        - `quarantine`: shape (n_row,). Why each row needs a confirmation before training uses it; blank, or None for
          all, if it does not.
        - `claim_of_keys`: Whether an operator's import claims rows that API keys own: they are the operator's from
          then on.
        - `registered`: Ids of the models that were registered when the rows were read.
        """
        origin = origin or Origin()
        rows = {row["id"]: row for row in self._database_rows(table, origin, quarantine)}
        insert = self.database.insert_new(self._table).returning(self._table.c.id)
        with self.database.writing() as connection:
            self.models.hold(connection, models, registered, table["model"], origin.limited_key)
            new = set(connection.execute(insert, [*rows.values()]).scalars()) if rows else set()
            stored = {id_: rows[id_] for id_ in rows.keys() - new}
            known = self._claim(connection, stored, origin, claim_of_keys=claim_of_keys)
        reasons = {id_: str(row["quarantine"]) for id_, row in rows.items()}
        return _added(len(table), new | known.freed, known, reasons, origin.import_id)

    def _claim(
        self, connection: sa.Connection, rows: dict[str, dict[str, Any]], origin: Origin, *, claim_of_keys: bool
    ) -> KnownRows:
        if not rows:
            return KnownRows()
        # the lock comes after the rows that the transaction inserted
        self.database.lock(connection, LOCK)
        owner = (origin.uploader, origin.is_operator)
        known = find_known(connection, self.tables, rows.keys(), owner, claim_of_keys=claim_of_keys)
        add_claims(connection, self.tables, [rows[id_] for id_ in sorted(known.claimed)])
        return known

    def compare(
        self,
        table: pd.DataFrame,
        origin: Origin | None = None,
        quarantine: pd.Series | None = None,
        *,
        claim_of_keys: bool = False,
    ) -> Added:
        """Return what `add` would of validated rows; nothing is written, nor needs the database a schema."""
        origin = origin or Origin()
        all_reasons = [""] * len(table) if quarantine is None else quarantine.tolist()
        reasons = dict(zip(self._row_ids(table), all_reasons, strict=True))
        ids, known = set(reasons), KnownRows()
        if self.database.has_schema():
            owner = (origin.uploader, origin.is_operator)
            with self.database.reading() as connection:
                known = find_known(connection, self.tables, ids, owner, claim_of_keys=claim_of_keys)
        return _added(len(table), (ids - known.all) | known.freed, known, reasons)

    def load(
        self,
        campaign: str | None = None,
        offset: int = 0,
        limit: int | None = None,
        *,
        model: str | None = None,
        accelerator: str | None = None,
        provenance: bool = False,
        seen_by: str | None = None,
    ) -> pd.DataFrame:
        """Return the measurements of a campaign, model and accelerator, or all, by campaign and row id.

        The order does not depend on the order of import. Rows are not validated again: a row that breaks a newer
        rule still loads.

        - `offset`, `limit`: Number of rows to skip, and largest number to return.
        - `provenance`: Whether to add `PROVENANCE_COLUMNS`, and the withdrawn rows, which are left out otherwise.
        - `seen_by`: See `claims`.
        """
        seen = measurements_seen_by(self.tables, seen_by)
        conditions = [
            seen.c[name] == value
            for name, value in {"campaign": campaign, "model": model, "accelerator": accelerator}.items()
            if value is not None
        ]
        if not provenance:
            conditions.append(seen.c.withdrawn_at.is_(None))
        rows = self._select(seen, *conditions, offset=offset, limit=limit)
        table = with_column_types(rows, self.tables.schema)
        return with_provenance(table, rows) if provenance else table

    def load_learnable(self, now: dt.datetime | None = None) -> LearnableRows:
        """Return the measurements that are neither withdrawn nor in quarantine, ordered as by `load`.

        `now`: time by which rows of keys are new; None for the present.
        """
        rows = self._select(self._table, self._table.c.withdrawn_at.is_(None), is_sound(self._table))
        is_operator = rows["is_operator"].astype(bool)
        uploaders = rows["uploader"].astype(object).mask(is_operator, "")
        owners = training_owners(rows, now or dt.datetime.now(dt.UTC))
        return LearnableRows(with_column_types(rows, self.tables.schema), uploaders, owners)

    def learnable_digest(self, now: dt.datetime | None = None) -> str:
        """Return a digest of the ids and owners of `load_learnable`; blank if there are none."""
        names = ("id", "uploader", "is_operator", "import_id", "confirmed_by", "added_at")
        query = sa.select(*(self._table.c[name] for name in names)).order_by(self._table.c.id)
        with self.database.reading() as connection:
            learnable = query.where(self._table.c.withdrawn_at.is_(None), is_sound(self._table))
            rows = pd.DataFrame(connection.execute(learnable).all(), columns=names)
        owners = training_owners(rows, now or dt.datetime.now(dt.UTC))
        lines = "".join(f"{id_} {owner}\n" for id_, owner in zip(rows["id"], owners, strict=True))
        return hashlib.blake2b(lines.encode(), digest_size=16).hexdigest() if lines else ""

    def _select(
        self, table: sa.FromClause, *conditions: sa.ColumnElement[bool], offset: int = 0, limit: int | None = None
    ) -> pd.DataFrame:
        order = (self.database.by_code_point(table.c.campaign), table.c.id)
        query = sa.select(table).where(*conditions).order_by(*order).offset(offset).limit(limit)
        with self.database.reading() as connection:
            return pd.DataFrame(connection.execute(query).all(), columns=[column.name for column in table.c])

    def count(self) -> int:
        """Return the number of measurements."""
        with self.database.reading() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(self._table)).scalar_one()

    def campaigns(self, seen_by: str | None = None) -> dict[str, int]:
        """Return the number of measurements by campaign, in order of the names; withdrawn ones do not count."""
        c = measurements_seen_by(self.tables, seen_by).c
        n_row = sa.func.sum(sa.case((c.withdrawn_at.is_(None), 1), else_=0))
        query = sa.select(c.campaign, n_row).group_by(c.campaign)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        return {row[0]: int(row[1]) for row in sorted(rows)}

    def _database_rows(
        self, table: pd.DataFrame, origin: Origin, quarantine: pd.Series | None
    ) -> list[dict[str, Any]]:
        # ordered by id: writers that lock rows in one order never deadlock; a column without a value is left out, as
        # most are, because each cell costs as much as another
        columns = {name: _cells(table[name]) for name in self.tables.schema}
        names = [name for name, cells in columns.items() if any(cell is not None for cell in cells)]
        reasons = [""] * len(table) if quarantine is None else quarantine.tolist()
        values = zip(*(columns[name] for name in names), strict=True)
        rows = zip(self._row_ids(table), reasons, values, strict=True)
        common = {**asdict(origin), "confirmed_by": "", "withdrawn_by": "", "withdrawn_at": None}
        common |= {"is_withdrawn_by_operator": False, "added_at": dt.datetime.now(dt.UTC)}
        return [
            {"id": row_id, **dict(zip(names, row, strict=True)), "quarantine": reason, **common}
            for row_id, reason, row in sorted(rows, key=lambda line: line[0])
        ]


class MeasurementStore(Measurements):
    """Measurements of inference in a database; `training` has those of training jobs.

    `models`, `retrainings` and `stacks` are other tables of the same database, `provenance` is that of both.

    Every method is one transaction. Any number of threads and processes may use the same database.
    All raise `NotReadyError` if the database cannot be used.

    `url`: database URL, SQLite or PostgreSQL; `default_url` by default.
    """

    def __init__(self, url: str | None = None) -> None:
        database = Database(url or default_url())
        super().__init__(database, RegisteredModels(database), INFERENCE_TABLES)
        self.training = Measurements(database, self.models, TRAINING_TABLES)
        self.retrainings = Retrainings(self.database)
        self.stacks = StackProfiles(self.database, self.models)
        self.provenance = Provenance(self.database)
        self.shadow_counts = ShadowCounts(self.database)

    def measured_stacks(self) -> list[tuple[Any, ...]]:
        """Return the rows of `STACKS`."""
        with self.database.reading() as connection:
            return [tuple(row) for row in connection.execute(sa.text(STACKS))]

    def of(self, target: Target) -> Measurements:
        """Return the measurements of a target."""
        return self if target == INFERENCE else self.training

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    def migrate(self) -> Self:
        """Bring the schema up to date and return the store; several processes may do so at once.

        Raises `NotReadyError` if the database cannot be written, or comes from a newer version of roofcast.
        """
        self.database.migrate()
        return self


def _added(
    n_row: int, new: Collection[str], known: KnownRows, reasons: Mapping[str, str], import_id: str = ""
) -> Added:
    quarantined = [reasons[id_] for id_ in sorted(new) if reasons[id_]]
    return Added(
        len(new),
        n_row - len(new),
        n_quarantined=len(quarantined),
        n_withdrawn=len(known.withdrawn),
        n_claimed=len(known.claimed - known.freed),
        import_id=import_id,
        n_of_key=known.n_of_key,
        quarantine_reasons=tuple(dict.fromkeys(quarantined))[:MAX_REASON],
    )


def _cells(column: pd.Series) -> list[Any]:
    return [None if value != value else value for value in column.tolist()]  # noqa: PLR0124  (NaN alone differs)
