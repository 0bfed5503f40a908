"""Provenance of measurements: who imported them, which are in quarantine, confirmed or withdrawn.

No row is deleted. A withdrawn row stays listed and teaches nothing; a row in quarantine does not either, until the
key that imported it or an operator confirms it. What several callers imported is withdrawn when each of them has.
What an operator withdrew, an operator alone restores.
Training gives new rows of keys, and rows of unknown origin, the least weight: see `row_owners`.
"""

import datetime as dt
import logging
import shlex
import uuid
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pandas as pd
import sqlalchemy as sa

from roofcast.data.errors import InputError, NotAllowedError, UnknownNameError
from roofcast.data.measurements.row_owners import is_of_unknown_origin
from roofcast.data.measurements.target import Target
from roofcast.data.store.claims import LOCK, all_claims, is_seen_by, settle_claims
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.tables import ALL_TABLES, MeasurementTables

audit = logging.getLogger("roofcast.audit")

SELECTORS: Final = {"import_id": "import_id", "campaign": "campaign", "key": "uploader"}
"""Columns of `all_claims` by which measurements are selected, by the name of the choice."""

Action = Literal["withdrawal", "restoration", "confirmation"]

PROVENANCE_COLUMNS: Final = ("import_id", "key", "state", "reason")


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of an import.

    - `uploader`: Name of the API key; blank for the command line.
    - `is_operator`: Whether an operator imports: the command line, or a key of the scope admin. Rows of an operator
      are about the service's own stack; those of other keys are about a stack of the key.
    - `import_id`: Identity of the import.
    """

    uploader: str = ""
    is_operator: bool = True
    import_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def limited_key(self) -> str:
        """Name of the API key whose imports are limited; blank for an operator's."""
        return "" if self.is_operator else self.uploader


@dataclass(frozen=True, slots=True)
class Changed:
    """Numbers of claims that changed, and that stay withdrawn because an operator withdrew them."""

    n_row: int
    n_refused: int = 0


class Provenance:
    """Changes of the provenance of measurements in a database; every method is one transaction.

    All raise `NotReadyError` if the database cannot be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def change(
        self,
        action: Action,
        by: str,
        selection: dict[str, str],
        only_of: str | None = None,
        target: Target | None = None,
        *,
        seen_by: str | None = None,
    ) -> Changed:
        """Withdraw, restore or confirm the selected claims to measurements; return the number of those that changed.

        Raises `InputError` if the selection is not exactly one of `SELECTORS`; or without a target, if a campaign, or
        what is to be confirmed, is of several. Raises `UnknownNameError` if no row is selected. Raises
        `NotAllowedError` if the selected rows are not the key's, or it restores rows all of which an operator
        withdrew.

        - `by`: Caller, stored with the rows and written to the audit log.
        - `selection`: One name of `SELECTORS` and its value.
        - `only_of`: Key whose rows alone may change; None for an operator, who may change any. An operator's
          withdrawal of rows that their key had withdrawn replaces it.
        - `target`: What the measurements are about; None for any.
        - `seen_by`: See `claims`: rows that the caller does not see are unknown.
        """
        if len(selection) != 1 or not selection.keys() <= SELECTORS.keys():
            raise InputError("import_id", f"give exactly one of {', '.join(SELECTORS)}")
        ((name, value),) = selection.items()
        n_row, n_refused, chosen = 0, 0, [tables for tables in ALL_TABLES if target in {tables.target, None}]
        with self._database.writing() as connection:
            self._database.lock(connection, LOCK)
            column = SELECTORS[name]
            known = {tables.target: _known(connection, tables, column, only_of, seen_by) for tables in chosen}
            matched = [one for one, values in known.items() if value in values]
            if not matched:
                if any(value in _known(connection, tables, column, None, seen_by) for tables in chosen):
                    raise _of_others(action, name, value, str(only_of))
                raise UnknownNameError(name, value, [one for values in known.values() for one in values])
            if len(matched) > 1 and (name == "campaign" or action == "confirmation"):
                problem = f"{name} {value!r} holds measurements of {' and '.join(matched)}; name the target"
                raise InputError("target", problem)
            for tables in chosen:
                measurement = tables.measurement
                of_campaign = sa.select(measurement.c.id).where(measurement.c.campaign == value)
                for table in (measurement, tables.claim):
                    is_of = table.c.id.in_(of_campaign) if name == "campaign" else table.c[column] == value
                    is_due, values = _change(action, by, table, is_operator=only_of is None)
                    selected = _is_own(table, only_of) & is_of
                    n_row += connection.execute(sa.update(table).where(selected & is_due).values(**values)).rowcount
                    if action == "restoration" and only_of is not None:
                        stays = selected & table.c.is_withdrawn_by_operator
                        count = sa.select(sa.func.count()).select_from(table).where(stays)
                        n_refused += connection.execute(count).scalar_one()
                settle_claims(connection, tables)
            if n_refused and not n_row:
                raise _withdrawn_by_operator(name, value, n_refused)
        fields = {"action": action, "caller": by, "selector": name, "selected": value, "n_row": n_row}
        audit.info("%s caller=%s %s=%s n_row=%d", *fields.values(), extra=fields)
        return Changed(n_row, n_refused)

    def imports(self, seen_by: str | None = None) -> list[dict[str, Any]]:
        """Return each import that a key sees with its target, key, time and numbers of rows, the latest first."""
        queries = [_imports(tables, seen_by) for tables in ALL_TABLES]
        with self._database.reading() as connection:
            found = [dict(row) for query in queries for row in connection.execute(query).mappings()]
        return sorted(found, key=lambda summary: summary["added_at"], reverse=True)


OPTIONS: Final = {"import_id": "--import", "campaign": "--campaign", "key": "--key"}
"""Options of ``roofcast measurements`` by the name of the choice."""

_VERBS: Final[dict[Action, str]] = {"withdrawal": "withdraw", "restoration": "restore", "confirmation": "confirm"}


def _of_others(action: Action, name: str, value: str, key: str) -> NotAllowedError:
    verb = _VERBS[action]
    return NotAllowedError(
        name,
        f"{value!r} has no row of the key {key!r}, which may {verb} its own rows alone; "
        f"{_ask_operator(verb, name, value)}",
    )


def _withdrawn_by_operator(name: str, value: str, n_row: int) -> NotAllowedError:
    rows = f"the {n_row} withdrawn rows" if n_row > 1 else "the withdrawn row"
    return NotAllowedError(
        name,
        f"an operator withdrew {rows} of {value!r}, and an operator alone restores what one withdrew; "
        f"{_ask_operator('restore', name, value)}",
    )


def _ask_operator(verb: str, name: str, value: str) -> str:
    command = f"roofcast measurements {verb} {OPTIONS[name]} {shlex.quote(value)}"
    return f"ask an operator to run `{command}`, or send a key of the scope admin"


def _imports(tables: MeasurementTables, seen_by: str | None) -> sa.Select[Any]:
    claims = all_claims(tables)
    count, claim = sa.func.count(), claims.c
    is_held = claim.withdrawn_at.is_(None) & (claim.quarantine != "") & (claim.confirmed_by == "")
    columns = (
        claim.import_id.label("import_id"),
        sa.literal(tables.target).label("target"),
        claim.uploader.label("key"),
        sa.func.min(claim.added_at, type_=claim.added_at.type).label("added_at"),
        count.label("n_row"),
        sa.func.sum(sa.case((is_held, 1), else_=0)).label("n_quarantined"),
        sa.func.sum(sa.case((claim.withdrawn_at.is_not(None), 1), else_=0)).label("n_withdrawn"),
    )
    return sa.select(*columns).where(is_seen_by(claims, seen_by)).group_by(claim.import_id, claim.uploader)


def _known(
    connection: sa.Connection, tables: MeasurementTables, column: str, only_of: str | None, seen_by: str | None
) -> list[str]:
    claims = all_claims(tables)
    query = sa.select(claims.c[column]).where(_is_own(claims, only_of), is_seen_by(claims, seen_by)).distinct()
    return [*connection.execute(query).scalars()]


def _is_own(claims: sa.FromClause, only_of: str | None) -> sa.ColumnElement[bool]:
    return sa.true() if only_of is None else claims.c.uploader == only_of


def _change(
    action: Action, by: str, claims: sa.FromClause, *, is_operator: bool
) -> tuple[sa.ColumnElement[bool], dict[str, Any]]:
    if action == "confirmation":
        is_doubtful = (claims.c.quarantine != "") | (claims.c.import_id == "")
        return is_doubtful & (claims.c.confirmed_by == ""), {"confirmed_by": by}
    is_withdrawn, is_final = claims.c.withdrawn_at.is_not(None), claims.c.is_withdrawn_by_operator
    if action == "withdrawal":
        values = {
            "withdrawn_at": dt.datetime.now(dt.UTC),
            "withdrawn_by": by,
            "is_withdrawn_by_operator": is_operator,
        }
        return ~is_final if is_operator else ~is_withdrawn, values
    values = {"withdrawn_at": None, "withdrawn_by": "", "is_withdrawn_by_operator": False}
    return is_withdrawn if is_operator else is_withdrawn & ~is_final, values


def with_provenance(table: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """Return measurements with `PROVENANCE_COLUMNS` from the stored columns of the same rows."""
    is_unknown = is_of_unknown_origin(stored)
    state = pd.Series("accepted", index=stored.index).mask(is_unknown, "unknown origin")
    state = state.mask(stored["quarantine"] != "", "quarantined")
    state = state.mask(stored["confirmed_by"] != "", "confirmed").mask(stored["withdrawn_at"].notna(), "withdrawn")
    is_final = stored["is_withdrawn_by_operator"].astype(bool)
    by = stored["withdrawn_by"].astype(object)
    confirm = "roofcast measurements confirm --campaign " + table["campaign"].map(shlex.quote)
    why = "stored before imports were recorded; it has the weight of a new key's rows until an operator runs `"
    reason = stored["quarantine"].mask(state == "unknown origin", why + confirm + "`")
    reason = reason.mask(state == "withdrawn", "withdrawn by " + by.mask(is_final, by + ", an operator"))
    columns = (stored["import_id"], stored["uploader"], state, reason)
    return table.assign(**dict(zip(PROVENANCE_COLUMNS, columns, strict=True)))
