"""Claims: several callers may import the same row; each has a claim to it, and can withdraw its own claim only.

The table of measurements holds the claim that prevails, that of claims the others. Claims that training may use
precede others, then those that are not withdrawn, then those that an operator withdrew, then those of an operator,
then the earlier ones. An operator claims rows of a key by an explicit choice alone, because they then teach as the
operator's own.

Where rows are apart, a key sees the claims of operators and its own, and a measurement by the claim that precedes
among these. In this package `seen_by` is the key that reads: blank for a caller without a key, None for one that sees
all claims.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from roofcast.data.store.database.tables import CLAIM_COLUMNS, MeasurementTables

MAX_ID: Final = 10_000
"""Ids of one statement: SQLite admits 32,766 parameters, PostgreSQL 65,535."""

_OWNER: Final = ("uploader", "is_operator")

LOCK: Final = "claims"
"""Lock of transactions that change claims: each settles them by all that the others have committed."""


def all_claims(tables: MeasurementTables) -> sa.Subquery:
    """Return all claims with the campaign of their measurement."""
    measurement, claim = tables.measurement, tables.claim
    return sa.union_all(
        sa.select(*(measurement.c[name] for name in ("id", "campaign", *CLAIM_COLUMNS))),
        sa.select(claim.c.id, measurement.c.campaign, *(claim.c[name] for name in CLAIM_COLUMNS)).join_from(
            claim, measurement, claim.c.id == measurement.c.id
        ),
    ).subquery()


def is_seen_by(claims: sa.FromClause, key: str | None) -> sa.ColumnElement[bool]:
    """Return whether a key sees each claim: those of operators and its own; None sees all."""
    return sa.true() if key is None else claims.c.is_operator | (claims.c.uploader == key)


def measurements_seen_by(tables: MeasurementTables, key: str | None) -> sa.FromClause:
    """Return the measurements that a key sees, each with the claim that precedes among those that it sees."""
    measurement, claim = tables.measurement, tables.claim
    if key is None:
        return measurement
    order = [part.desc() for part in _precedence_columns(claim)]
    rank = sa.func.row_number().over(partition_by=claim.c.id, order_by=[*order, claim.c.added_at])
    ranked = sa.select(claim, rank.label("rank")).where(is_seen_by(claim, key)).subquery()
    columns = [(ranked if column.name in CLAIM_COLUMNS else measurement).c[column.name] for column in measurement.c]
    second = sa.select(*columns).join_from(ranked, measurement, ranked.c.id == measurement.c.id)
    first = sa.select(measurement).where(is_seen_by(measurement, key))
    return sa.union_all(first, second.where(ranked.c.rank == 1, ~is_seen_by(measurement, key))).subquery()


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Ids of the rows of an import that the store has already.

    - `all`: All of them.
    - `claimed`: Those to which the import adds a claim.
    - `freed`: Those of `claimed` that their own keys alone had withdrawn: they count as new.
    - `withdrawn`: Those that were withdrawn and stay so.
    - `n_of_key`: Numbers of the rows of an operator's import that keys own, by key; `claimed` if the operator wants
      so.
    """

    all: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    freed: frozenset[str] = frozenset()
    withdrawn: frozenset[str] = frozenset()
    n_of_key: Mapping[str, int] = field(default_factory=dict)


def find_known(
    connection: sa.Connection,
    tables: MeasurementTables,
    ids: Collection[str],
    owner: tuple[str, bool],
    *,
    claim_of_keys: bool = False,
) -> KnownRows:
    """Return which rows are known.

    Nobody claims what an operator withdrew: it stays so until an operator restores it.

    `owner`: uploader of the import, and whether it is an operator. `claim_of_keys`: whether an operator claims rows
    that keys own, also again after withdrawing such a claim; those that their keys have withdrawn are free for all.
    """
    measurement, claim = tables.measurement, tables.claim
    columns = [measurement.c[name] for name in ("id", *_OWNER, "withdrawn_at", "is_withdrawn_by_operator")]
    query = sa.select(*columns).order_by(measurement.c.id)
    stored = [row for part in id_parts(ids) for row in connection.execute(query.where(measurement.c.id.in_(part)))]
    own_claims = sa.select(claim.c.id, claim.c.withdrawn_at)
    own_claims = own_claims.where(claim.c.uploader == owner[0], claim.c.is_operator == owner[1])
    own = {
        row.id: row.withdrawn_at is not None
        for part in id_parts(ids)
        for row in connection.execute(own_claims.where(claim.c.id.in_(part)))
    }
    lapsed = {id_ for id_, is_withdrawn in own.items() if is_withdrawn}
    withdrawn = {row.id for row in stored if row.withdrawn_at is not None}
    by_operator = {row.id for row in stored if row.is_withdrawn_by_operator}
    of_others = {row.id for row in stored if (row.uploader, row.is_operator) != owner}
    others = of_others - by_operator - (own.keys() - lapsed)
    claimable = others - lapsed
    freed = frozenset(claimable & withdrawn)
    owned = others - withdrawn if owner[1] else frozenset()
    key_of = {row.id: row.uploader for row in stored if row.id in owned and not row.is_operator}
    claimed = frozenset(claimable | key_of.keys() if claim_of_keys else claimable - key_of.keys())
    n_of_key = dict(sorted(Counter(key_of.values()).items()))
    known = frozenset(row.id for row in stored)
    return KnownRows(known, claimed, freed, frozenset(withdrawn - freed), n_of_key)


def add_claims(connection: sa.Connection, tables: MeasurementTables, rows: Collection[Mapping[str, Any]]) -> None:
    """Add claims to stored measurements, under `LOCK`; other columns of the rows are ignored.

    A claim of the same owner that was withdrawn is replaced.
    """
    if rows:
        lines = [{name: row[name] for name in ("id", *CLAIM_COLUMNS)} for row in rows]
        same = [tables.claim.c[name] == sa.bindparam(f"of_{name}") for name in ("id", *_OWNER)]
        owners = [{f"of_{name}": line[name] for name in ("id", *_OWNER)} for line in lines]
        connection.execute(sa.delete(tables.claim).where(*same), owners)
        connection.execute(sa.insert(tables.claim), lines)
        settle_claims(connection, tables, [line["id"] for line in lines])


def settle_claims(connection: sa.Connection, tables: MeasurementTables, ids: Collection[str] | None = None) -> None:
    """Exchange claims where another than the prevailing one has precedence, among some measurements or all.

    The transaction holds `LOCK`.
    """
    names, measurement, claims = ("id", *CLAIM_COLUMNS), tables.measurement, tables.claim
    query = sa.select(
        *(measurement.c[name].label(f"now_{name}") for name in names), *(claims.c[name] for name in names)
    ).join_from(claims, measurement, claims.c.id == measurement.c.id)
    queries = [query] if ids is None else [query.where(claims.c.id.in_(part)) for part in id_parts(ids)]
    best: dict[str, Mapping[str, Any]] = {}
    for statement in queries:
        for row in connection.execute(statement.order_by(claims.c.added_at)).mappings():
            pair: Mapping[str, Any] = dict(row)
            rival = best.get(pair["id"]) or {name: pair[f"now_{name}"] for name in names}
            if _precedence(pair) > _precedence(rival):
                best[pair["id"]] = pair
    for id_ in sorted(best):
        claim = best[id_]
        is_claim = sa.and_(*(claims.c[name] == claim[name] for name in ("id", *_OWNER)))
        connection.execute(sa.delete(claims).where(is_claim))
        connection.execute(sa.insert(claims), {name: claim[f"now_{name}"] for name in names})
        values = {name: claim[name] for name in CLAIM_COLUMNS}
        connection.execute(sa.update(measurement).where(measurement.c.id == id_).values(**values))


def is_sound(claims: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return whether each claim was never in quarantine, or is confirmed."""
    return (claims.c.quarantine == "") | (claims.c.confirmed_by != "")


def _precedence(claim: Mapping[str, Any]) -> tuple[bool, ...]:
    is_present = claim["withdrawn_at"] is None
    is_sound = not claim["quarantine"] or bool(claim["confirmed_by"])
    operator = bool(claim["is_withdrawn_by_operator"]), bool(claim["is_operator"])
    return is_present and is_sound, is_present, *operator


def _precedence_columns(claims: sa.FromClause) -> list[sa.ColumnElement[bool]]:
    is_present = claims.c.withdrawn_at.is_(None)
    return [is_present & is_sound(claims), is_present, claims.c.is_withdrawn_by_operator, claims.c.is_operator]


def id_parts(ids: Collection[str]) -> Iterator[list[str]]:
    """Yield the ids in order, up to `MAX_ID` at a time."""
    ordered = sorted(ids)
    return (ordered[i : i + MAX_ID] for i in range(0, len(ordered), MAX_ID))
