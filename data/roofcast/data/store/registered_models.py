"""Registered models: specs of the user's own models, with the ``config.json`` each was read from."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import sqlalchemy as sa

from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.sqlite_listing import current_spec
from roofcast.data.store.database.tables import MODEL

_ALL: Final = sa.select(MODEL.c.spec, MODEL.c.config).order_by(MODEL.c.id)
_STAMP: Final = sa.select(sa.func.count(), sa.func.max(MODEL.c.added_at))


class RegisteredModels:
    """Registered models of a database; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._version: int | None = None
        self._cache: tuple[tuple[Any, ...], list[ModelSpec]] = (), []

    def add(self, spec: ModelSpec, config: dict[str, Any]) -> None:
        """Register a model; the same model again changes nothing.

        Raises
        ------
        InputError
            If another architecture is registered under its id.
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
        connection.execute(self._database.insert_new(MODEL), row)
        stored = connection.execute(sa.select(MODEL.c.spec, MODEL.c.config).where(MODEL.c.id == spec.id)).one()
        if current_spec(*stored) != spec:
            raise InputError("model", f"another architecture is registered as {spec.id!r}; choose another id")

    def count_of(self, uploader: str) -> int:
        """Return the number of models that an API key registered first."""
        query = sa.select(sa.func.count()).where(MODEL.c.uploader == uploader)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def load(self) -> list[ModelSpec]:
        """Return the registered models by id, each derived from its ``config.json`` by the reader of this version.

        The result is cached until a model is added; models never change. Where the
        database has a change counter, it is queried only after the counter has changed.
        """
        version = self._database.version()
        if version is None or version != self._version:
            with self._database.reading() as connection:
                stamp = tuple(connection.execute(_STAMP).one())
                if stamp != self._cache[0]:
                    rows = connection.execute(_ALL).all()
                    self._cache = stamp, [current_spec(spec, config) for spec, config in rows]
            self._version = version
        return [*self._cache[1]]
