"""Registered models: specs of the user's own models, with the ``config.json`` each was read from."""

import datetime as dt
import logging
from collections.abc import Collection, Iterable
from typing import Any, Final

import sqlalchemy as sa

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import ModelSpec
from roofcast.data.store.claims import LOCK, measurements_seen_by
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.sqlite_listing import current_spec
from roofcast.data.store.database.tables import ALL_TABLES, MODEL, STACK_ROW

audit = logging.getLogger("roofcast.audit")

_ALL: Final = sa.select(MODEL.c.spec, MODEL.c.config).order_by(MODEL.c.id)
_STAMP: Final = sa.select(sa.func.count(), sa.func.max(MODEL.c.added_at))


class RegisteredModels:
    """Registered models of a database; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: tuple[tuple[Any, ...], list[ModelSpec]] = (), []

    def add(self, spec: ModelSpec, config: dict[str, Any]) -> None:
        """Register a model; the same model again changes nothing.

        Raises `InputError` if another architecture is registered under its id.
        """
        with self._database.writing() as connection:
            self.insert(connection, spec, config)

    def insert(self, connection: sa.Connection, spec: ModelSpec, config: dict[str, Any], uploader: str = "") -> None:
        """Register a model within a transaction, for an API key or an operator; see `add`."""
        row = {
            "id": spec.id,
            "spec": spec.model_dump(mode="json"),
            "config": config,
            "added_at": dt.datetime.now(dt.UTC),
            "uploader": uploader,
        }
        query, stored = sa.select(MODEL.c.spec, MODEL.c.config).where(MODEL.c.id == spec.id), None
        while stored is None:  # a removal may commit after the insertion found the model
            connection.execute(self._database.insert_new(MODEL), row)
            stored = connection.execute(query).first()
        if current_spec(*stored) != spec:
            raise InputError("model", f"another architecture is registered as {spec.id!r}; choose another id")

    def hold(
        self,
        connection: sa.Connection,
        added: Iterable[tuple[ModelSpec, dict[str, Any]]],
        registered: Collection[str],
        used: Iterable[object],
        uploader: str,
    ) -> None:
        """Register models within a transaction, and keep those that it uses from removal until its end.

        Raises `InputError` as of `add`, or if a used model of `registered`, which were when the rows were read, is
        not registered any more.
        """
        known = set(registered)
        for spec, config in added:
            self.insert(connection, spec, config, uploader)
            known.add(spec.id)
        ids = known.intersection(used)
        query = sa.select(MODEL.c.id).where(MODEL.c.id.in_(sorted(ids))).order_by(MODEL.c.id)
        held = connection.execute(query.with_for_update(read=True, key_share=True)).scalars()
        removed = sorted(ids.difference(held))
        if removed:
            raise InputError("model", f"{removed[0]!r} was removed meanwhile; send its config.json in `models` again")

    def remove(self, id: str, by: str, only_of: str | None = None, seen_by: str | None = None) -> None:  # noqa: A002
        """Remove a model to which no measurement refers, those that are withdrawn apart. Audited.

        Raises `UnknownNameError` if no model of this id is registered; `InputError` if another key or an operator
        registered it, or measurements or stack profiles refer to it.

        - `by`: Caller, for the audit log.
        - `only_of`: Key that must have registered it; None for an operator, who removes any.
        - `seen_by`: See `claims`: a refusal names only campaigns that the caller sees.
        """
        with self._database.writing() as connection:
            connection.execute(sa.select(MODEL.c.id).where(MODEL.c.id == id).with_for_update())
            self._database.lock(connection, LOCK)
            uploaders = {row.id: row.uploader for row in connection.execute(sa.select(MODEL.c.id, MODEL.c.uploader))}
            if id not in uploaders:
                raise UnknownNameError("model", id, [one for one in uploaders if only_of in {None, uploaders[one]}])
            if only_of is not None and uploaders[id] != only_of:
                raise InputError("model", f"{id!r} was registered by another key or an operator; ask an operator")
            uses = _uses(connection, id, seen_by)
            if uses:
                raise InputError("model", f"{id!r} is in use: {'; '.join(uses)}")
            connection.execute(sa.delete(MODEL).where(MODEL.c.id == id))
        fields = {"action": "model removal", "caller": by, "model": id}
        audit.info("%s caller=%s model=%s", *fields.values(), extra=fields)

    def count_of(self, uploader: str) -> int:
        """Return the number of models that an API key registered first."""
        query = sa.select(sa.func.count()).where(MODEL.c.uploader == uploader)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def load(self) -> list[ModelSpec]:
        """Return the registered models by id, each derived from its ``config.json`` by the reader of this version.

        The result is cached until a model is added or removed; models never change.
        """
        with self._database.reading() as connection:
            stamp = tuple(connection.execute(_STAMP).one())
            if stamp != self._cache[0]:
                self._cache = stamp, [current_spec(spec, config) for spec, config in connection.execute(_ALL)]
        return [*self._cache[1]]

    def uploaders(self) -> dict[str, str]:
        """Return the API key that registered each model first, by id, blank for an operator."""
        with self._database.reading() as connection:
            return {row.id: row.uploader for row in connection.execute(sa.select(MODEL.c.id, MODEL.c.uploader))}


def _uses(connection: sa.Connection, model: str, seen_by: str | None) -> list[str]:
    uses = []
    for tables in ALL_TABLES:
        n_all = _count_by_campaign(connection, tables.measurement, model)
        n_row = _count_by_campaign(connection, measurements_seen_by(tables, seen_by), model)
        if n_row:
            campaigns = ", ".join(sorted(n_row))
            uses.append(f"withdraw its {sum(n_row.values())} measurements of {tables.target} first ({campaigns})")
        elif n_all:
            uses.append(f"other keys have measurements of {tables.target} of it; ask an operator")
    of_model = STACK_ROW.c.cells["model"].as_string() == model
    n_run = connection.execute(sa.select(sa.func.count()).where(of_model)).scalar_one()
    if n_run:
        uses.append(f"remove the stack profiles with its {n_run} runs first")
    return uses


def _count_by_campaign(connection: sa.Connection, measurements: sa.FromClause, model: str) -> dict[str, int]:
    c = measurements.c
    query = sa.select(c.campaign, sa.func.count()).where(c.model == model, c.withdrawn_at.is_(None))
    return {row[0]: row[1] for row in connection.execute(query.group_by(c.campaign))}
