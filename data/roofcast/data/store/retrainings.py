"""Retraining records: requests to retrain, their states and reports."""

import datetime as dt
import logging
import uuid
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.tables import RETRAINING

audit = logging.getLogger("roofcast.audit")

State = Literal["queued", "running", "done", "failed", "cancelled"]


MAX_PENDING: Final = dt.timedelta(days=1)
"""Age at which a pending retraining of another state folder holds up no schedule: that folder may be gone."""


@dataclass(frozen=True)
class Retraining:
    """A request to retrain, its progress and its result.

    - `owner`: Id of the state folder whose worker runs it.
    - `target`: What its predictor is about.
    - `stage`: What it computes, or computed last; blank before it starts.
    - `n_step_done`, `n_step`: Steps of the stage that are done, and all of them; 0 if the stage has no steps.
    - `n_interruption`: How often its worker ended before it did, so that it was queued again.
    - `learnable_digest`: `Measurements.learnable_digest` of its target when it started; blank if it is not done.
    """

    id: str
    state: State
    requested_at: dt.datetime
    started_at: dt.datetime | None = None
    finished_at: dt.datetime | None = None
    report: dict[str, Any] | None = None
    error: str = ""
    owner: str = ""
    target: Target = INFERENCE
    stage: str = ""
    n_step_done: int = 0
    n_step: int = 0
    n_interruption: int = 0
    learnable_digest: str = ""


class Retrainings:
    """Retraining records of a database; every method is one transaction.

    Methods with an id raise `UnknownNameError` if there is no such retraining, and `InputError` if its state forbids
    the change: `start` needs a queued one, `advance`, `finish` and `queue_again` a running one, `fail` and `cancel`
    one that has not ended.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, owner: str = "", target: Target = INFERENCE) -> Retraining:
        """Return the owner's queued retraining of a target; a new one if there is none.

        Of several callers at once all get the same.
        """
        c = RETRAINING.c
        query = sa.select(c.id).where(c.owner == owner, c.target == target, c.state == "queued")
        with self._database.writing() as connection:
            self._database.lock(connection, f"retraining of {target}")
            known = connection.execute(query.order_by(c.requested_at).limit(1)).scalar()
            return _find(connection, known) if known else _insert(connection, owner, target)

    def add_if_changed(
        self, owner: str, target: Target, learnable_digest: str, *, is_shared: bool
    ) -> Retraining | None:
        """Return a new retraining, queued; None if one is pending, or the last one that is done learnt the same.

        Of several callers at once one gets a retraining.

        `learnable_digest`: `Measurements.learnable_digest` of the target. `is_shared`: whether retrainings of other
        owners count too: their registry is the same.
        """
        c, since = RETRAINING.c, dt.datetime.now(dt.UTC) - MAX_PENDING
        is_own = c.owner == owner
        is_counted = (c.target == target) & (sa.true() if is_shared else is_own)
        is_pending = c.state.in_(("queued", "running")) & (is_own | (c.requested_at > since))
        last = sa.select(c.learnable_digest).where(is_counted, c.state == "done").order_by(c.started_at.desc())
        with self._database.writing() as connection:
            self._database.lock(connection, f"retraining of {target}")
            if connection.execute(sa.select(c.id).where(is_counted, is_pending).limit(1)).first():
                return None
            if (connection.execute(last.limit(1)).scalar() or "") == learnable_digest:
                return None
            return _insert(connection, owner, target)

    def find(self, id: str) -> Retraining:  # noqa: A002
        """Return one retraining."""
        with self._database.reading() as connection:
            return _find(connection, id)

    def load(self, owner: str | None = None, limit: int | None = None) -> list[Retraining]:
        """Return the retrainings, of all owners or one, the latest request first."""
        query = sa.select(RETRAINING).order_by(RETRAINING.c.requested_at.desc(), RETRAINING.c.id).limit(limit)
        if owner is not None:
            query = query.where(RETRAINING.c.owner == owner)
        with self._database.reading() as connection:
            return [Retraining(**row) for row in connection.execute(query).mappings()]

    def count_by_state(self) -> dict[str, int]:
        """Return the number of retrainings by state, without states that none is in."""
        query = sa.select(RETRAINING.c.state, sa.func.count()).group_by(RETRAINING.c.state)
        with self._database.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def start(self, id: str) -> Retraining:  # noqa: A002
        """Return the retraining as running; of several callers one succeeds."""
        return self._advance(id, ("queued",), state="running", started_at=dt.datetime.now(dt.UTC))

    def advance(self, id: str, stage: str, n_step_done: int, n_step: int) -> Retraining:  # noqa: A002
        """Return the retraining at another stage, or further in the same one."""
        return self._advance(id, ("running",), stage=stage, n_step_done=n_step_done, n_step=n_step)

    def finish(self, id: str, report: dict[str, Any], learnable_digest: str = "") -> Retraining:  # noqa: A002
        """Return the retraining as done, with its report and the digest of what it could learn from."""
        end = {"finished_at": dt.datetime.now(dt.UTC), "report": report, "learnable_digest": learnable_digest}
        return self._advance(id, ("running",), state="done", **end)

    def fail(self, id: str, error: str) -> Retraining:  # noqa: A002
        """Return the retraining as failed, with the reason."""
        now = dt.datetime.now(dt.UTC)
        return self._advance(id, ("queued", "running"), state="failed", finished_at=now, error=error)

    def cancel(self, id: str, by: str, last_stage: str) -> Retraining:  # noqa: A002
        """Return the retraining as cancelled; a running one stops before its next step. Audited."""
        now, before = dt.datetime.now(dt.UTC), RETRAINING.c.stage != last_stage
        changes = {"state": "cancelled", "finished_at": now, "error": f"cancelled by {by}"}
        record = self._advance(id, ("queued", "running"), before, **changes)
        fields = {"action": "cancellation", "caller": by, "retraining": id}
        audit.info("%s caller=%s retraining=%s", *fields.values(), extra=fields)
        return record

    def queue_again(self, id: str) -> Retraining:  # noqa: A002
        """Return the interrupted retraining as queued, with one interruption more."""
        more = {"n_interruption": RETRAINING.c.n_interruption + 1, "stage": "", "n_step_done": 0, "n_step": 0}
        return self._advance(id, ("running",), state="queued", **more)

    def _advance(
        self,
        id: str,  # noqa: A002
        before: tuple[State, ...],
        condition: sa.ColumnElement[bool] | None = None,
        /,
        **changes: object,
    ) -> Retraining:
        is_due = (RETRAINING.c.id == id) & RETRAINING.c.state.in_(before)
        is_due = is_due if condition is None else is_due & condition
        with self._database.writing() as connection:
            result = connection.execute(sa.update(RETRAINING).where(is_due).values(**changes))
            record = _find(connection, id)
        if result.rowcount == 0:
            now = f"in its {record.stage}" if record.state in before else record.state
            raise InputError("retraining", f"must be {' or '.join(before)}, but {id} is {now}")
        return record


def _insert(connection: sa.Connection, owner: str, target: Target) -> Retraining:
    now = dt.datetime.now(dt.UTC)
    record = Retraining(id=uuid.uuid4().hex, state="queued", requested_at=now, owner=owner, target=target)
    connection.execute(sa.insert(RETRAINING), vars(record))
    return record


def _find(connection: sa.Connection, id: str) -> Retraining:  # noqa: A002
    row = connection.execute(sa.select(RETRAINING).where(RETRAINING.c.id == id)).mappings().one_or_none()
    if row is None:
        known = connection.execute(sa.select(RETRAINING.c.id)).scalars().all()
        raise UnknownNameError("retraining", id, known)
    return Retraining(**row)
