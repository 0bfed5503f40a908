"""Counts of a challenger's answers beside a champion's, which server processes add to."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from roofcast.data.store.database.database import Database
from roofcast.data.store.database.tables import SHADOW_COUNT

Key = tuple[str, str, str, int]
"""Kind and name of a group, metric, and bin."""

MAX_PAIR: Final = 20
"""Pairs of champion and challenger, the latest, whose counts are kept."""

_KEY: Final = ("kind", "name", "metric", "bin")


class ShadowCounts:
    """Counts by pair of versions, which are named by the SHA-256 of their bundles; every method is one transaction.

    All raise `NotReadyError` if the database cannot be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, champion: str, challenger: str, counts: Mapping[Key, int]) -> None:
        """Add counts to those of a pair; the counts of pairs before the latest `MAX_PAIR` are deleted."""
        now, c = dt.datetime.now(dt.UTC), SHADOW_COUNT.c
        pair = {"champion": champion, "challenger": challenger}
        rows: list[dict[str, Any]] = [
            {**pair, **dict(zip(_KEY, key, strict=True)), "n": n, "since": now} for key, n in sorted(counts.items())
        ]
        if not rows:
            return
        with self._database.writing() as connection:
            is_known = connection.execute(
                sa.select(c.n).where(c.champion == champion, c.challenger == challenger).limit(1)
            ).first()
            insert = self._database.insert(SHADOW_COUNT)
            total = {"n": c.n + insert.excluded.n}
            connection.execute(insert.on_conflict_do_update(index_elements=[*pair, *_KEY], set_=total), rows)
            if not is_known:
                _delete_old_pairs(connection)

    def load(
        self, champion: str, challenger: str, kind: str | None = None
    ) -> tuple[dict[Key, int], dt.datetime | None]:
        """Return the counts of a pair, of all groups or one kind, and the time of the first; None without any."""
        c = SHADOW_COUNT.c
        query = sa.select(*(c[name] for name in _KEY), c.n, c.since)
        query = query.where(c.champion == champion, c.challenger == challenger)
        query = query if kind is None else query.where(c.kind == kind)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return {row[:4]: row[4] for row in rows}, min((row[5] for row in rows), default=None)


def _delete_old_pairs(connection: sa.Connection) -> None:
    c = SHADOW_COUNT.c
    pairs = sa.select(c.champion, c.challenger).group_by(c.champion, c.challenger)
    for pair in connection.execute(pairs.order_by(sa.func.min(c.since).desc()).offset(MAX_PAIR)).all():
        connection.execute(sa.delete(SHADOW_COUNT).where(c.champion == pair[0], c.challenger == pair[1]))
