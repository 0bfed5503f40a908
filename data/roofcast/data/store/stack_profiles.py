"""Stack profiles: named sets of own runs, apart by the API key that made them."""

import datetime as dt
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import ModelSpec
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.tables import STACK_ROW
from roofcast.data.store.registered_models import RegisteredModels

Cells = Mapping[str, Any]
"""A row: JSON values by column, without the blank ones."""

MAX_ROW: Final = 500
"""Rows of a profile at most: conditioning on them and the errors of each take a time that grows with their square."""

MAX_STACK: Final = 100
"""Profiles of one owner at most."""

SHARED: Final = ""
"""Owner of the profiles that the command line makes; every caller may read them."""


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """Rows of a profile in order of their ids, which change with them; `hides_shared`: a shared one has its name."""

    ids: tuple[str, ...]
    rows: list[dict[str, Any]]
    is_shared: bool
    hides_shared: bool


@dataclass(frozen=True, slots=True)
class StackSummary:
    """A profile without its rows; times are of the first and the latest row."""

    name: str
    n_row: int
    created_at: dt.datetime
    changed_at: dt.datetime
    is_shared: bool


def too_many_rows(n_row: int) -> InputError:
    """Return the error of a profile that would have more rows than `MAX_ROW`."""
    cure = "give the runs that are most like your load, or `roofcast import` all and retrain"
    return InputError("rows", f"a stack has at most {MAX_ROW:,}, this would make {n_row:,}; {cure}")


class StackProfiles:
    """Stack profiles of a database; every method is one transaction.

    All raise `NotReadyError` if the database cannot be used.
    """

    def __init__(self, database: Database, models: RegisteredModels) -> None:
        self._database = database
        self._models = models

    def add(
        self,
        owner: str,
        name: str,
        rows: Sequence[Cells],
        models: Iterable[tuple[ModelSpec, dict[str, Any]]] = (),
        registered: Collection[str] = (),
    ) -> int:
        """Add rows to a profile, which is made if it is new; return the number of rows that it did not have.

        `models`: models of the rows to register, each with the ``config.json`` it was read from. `registered`: ids of
        the models that were registered when the rows were read. Raises `InputError` if the profile would have more
        than `MAX_ROW` rows, the owner more than `MAX_STACK` profiles, another architecture is registered under a
        model's id, or a model of the rows was removed; nothing is added then.
        """
        now = dt.datetime.now(dt.UTC)
        lines = [
            {"id": _row_id(owner, name, cells), "owner": owner, "stack": name, "cells": dict(cells), "added_at": now}
            for cells in rows
        ]
        lines.sort(key=lambda line: str(line["id"]))
        insert = self._database.insert_new(STACK_ROW).returning(STACK_ROW.c.id)
        with self._database.writing() as connection:
            self._database.lock(connection, f"stacks of {owner}")
            self._models.hold(connection, models, registered, (cells.get("model") for cells in rows), owner)
            n_new = len(connection.execute(insert, lines).all()) if lines else 0
            sizes = _sizes(connection, owner)
            if sizes.get(name, 0) > MAX_ROW:
                raise too_many_rows(sizes[name])
            if len(sizes) > MAX_STACK:
                raise InputError("name", f"there are {MAX_STACK} stacks, which is the most; remove one first")
        return n_new

    def load(self, owner: str, name: str) -> StoredProfile:
        """Return the owner's profile of a name, or else the shared one.

        Raises `UnknownNameError` if there is neither.
        """
        query = sa.select(STACK_ROW.c.id, STACK_ROW.c.owner, STACK_ROW.c.cells).order_by(STACK_ROW.c.id)
        with self._database.reading() as connection:
            lines = connection.execute(
                query.where(STACK_ROW.c.stack == name, STACK_ROW.c.owner.in_({owner, SHARED}))
            ).all()
            known = [] if lines else [*_sizes(connection, owner), *_sizes(connection, SHARED)]
        if not lines:
            raise UnknownNameError("stack", name, known)
        owners = {line.owner for line in lines}
        source = owner if owner in owners else SHARED
        lines = [line for line in lines if line.owner == source]
        ids, rows = tuple(line.id for line in lines), [line.cells for line in lines]
        return StoredProfile(ids, rows, source == SHARED, len(owners) > 1)

    def own_rows(self, owner: str, name: str) -> list[dict[str, Any]]:
        """Return the rows of the owner's own profile of a name; none if there is no such profile."""
        query = sa.select(STACK_ROW.c.cells).where(STACK_ROW.c.owner == owner, STACK_ROW.c.stack == name)
        with self._database.reading() as connection:
            return [line.cells for line in connection.execute(query)]

    def summaries(self, owner: str) -> list[StackSummary]:
        """Return the owner's profiles and the shared ones, by name; the owner's hides a shared one of its name."""
        columns = (STACK_ROW.c.owner, STACK_ROW.c.stack)
        moments = (sa.func.min(STACK_ROW.c.added_at), sa.func.max(STACK_ROW.c.added_at))
        query = sa.select(*columns, sa.func.count(), *moments).group_by(*columns)
        with self._database.reading() as connection:
            rows = connection.execute(query.where(STACK_ROW.c.owner.in_({owner, SHARED}))).all()
        ordered = sorted(rows, key=lambda row: (row[1], row[0] == owner))
        found = {row[1]: StackSummary(row[1], row[2], row[3], row[4], row[0] == SHARED) for row in ordered}
        return [*found.values()]

    def remove(self, owner: str, name: str) -> int:
        """Remove the owner's profile and return the number of its rows.

        Raises `UnknownNameError` if the owner has none of this name, nor is there a shared one; `InputError` if the
        profile of this name is a shared one.
        """
        is_profile = (STACK_ROW.c.owner == owner) & (STACK_ROW.c.stack == name)
        with self._database.writing() as connection:
            known = _sizes(connection, owner)
            shared = {} if name in known else _sizes(connection, SHARED)
            connection.execute(sa.delete(STACK_ROW).where(is_profile))
        if name in shared:
            problem = f"{name!r} was made by the command line of the service, which alone removes it"
            raise InputError("stack", f"{problem}: roofcast stacks remove {name}")
        if name not in known:
            raise UnknownNameError("stack", name, known)
        return known[name]


def _sizes(connection: sa.Connection, owner: str) -> dict[str, int]:
    query = sa.select(STACK_ROW.c.stack, sa.func.count()).where(STACK_ROW.c.owner == owner)
    return {row[0]: row[1] for row in connection.execute(query.group_by(STACK_ROW.c.stack))}


def _row_id(owner: str, name: str, cells: Cells) -> str:
    text = json.dumps([owner, name, dict(cells)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
