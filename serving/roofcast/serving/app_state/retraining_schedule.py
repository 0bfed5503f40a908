"""Times at which the worker retrains where measurements have changed, as a cron expression."""

import datetime as dt
from collections.abc import Callable
from typing import Final

FIELDS: Final = ("minute", "hour", "day", "month", "day_of_week")

CURE: Final = "must be five numeric fields of cron in UTC, such as '30 2 * * *' for 02:30 each day"

N_DAY: Final = 9 * 366
"""Days searched for the next time: leap days are up to eight years apart."""

IsDue = Callable[[dt.datetime], bool]


class RetrainingSchedule:
    """Times of a cron expression: minute, hour, day of the month, month, day of the week; in UTC.

    `expression`: as in cron, but without names, and with a day of the month or a day of the week, not both. Raises
    `ValueError` if the expression is invalid, or names no time.

    Examples
    --------
    >>> schedule = RetrainingSchedule("30 2 * * *")
    >>> print(schedule.next_after(dt.datetime(2026, 3, 1, 2, 30, tzinfo=dt.UTC)))
    2026-03-02 02:30:00+00:00
    """

    def __init__(self, expression: str) -> None:
        from huey import crontab  # noqa: PLC0415  (no command needs the queue)

        parts = expression.split()
        if len(parts) != len(FIELDS):
            raise ValueError(f"{CURE}; it has {len(parts)} fields")
        fields = dict(zip(FIELDS, parts, strict=True))
        if "*" not in (fields["day"], fields["day_of_week"]):
            raise ValueError(f"{CURE}; give a day of the month or a day of the week, not both")
        try:
            self._is_due: IsDue = crontab(**fields, strict=True)
            self._is_due_day: IsDue = crontab(**fields | {"minute": "*", "hour": "*"}, strict=True)
        except ValueError as error:
            raise ValueError(f"{CURE}; {error}") from error
        if self.next_after(dt.datetime.now(dt.UTC)) is None:
            raise ValueError(f"{CURE}; no date has its day and month")

    def next_after(self, moment: dt.datetime) -> dt.datetime | None:
        """Return the first time after a moment, in UTC; None if there is none."""
        start = moment.astimezone(dt.UTC).replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
        midnight = start.replace(hour=0, minute=0)
        for day in (midnight + dt.timedelta(days=i) for i in range(N_DAY)):
            if self._is_due_day(day):
                minutes = (day + dt.timedelta(minutes=i) for i in range(24 * 60))
                found = next((one for one in minutes if one >= start and self._is_due(one)), None)
                if found:
                    return found
        return None


class DueTimes:
    """Whether a time of a schedule has passed since the last check.

    Checks are some 60 s apart, later on a busy machine, and the clock may be set or the machine suspended between two
    of them: no time that passes is missed, and those between two checks count as one.

    `checked_at`: time of the last check, in UTC.
    """

    def __init__(self, schedule: RetrainingSchedule, checked_at: dt.datetime) -> None:
        self._schedule = schedule
        self._checked_at = checked_at

    def is_due(self, now: dt.datetime) -> bool:
        """Return whether a time has passed, up to now; a time without a zone is in UTC."""
        now = now.replace(tzinfo=dt.UTC) if now.tzinfo is None else now
        due_at = self._schedule.next_after(self._checked_at)
        self._checked_at = now
        return due_at is not None and due_at <= now


def next_retraining_at(expression: str, now: dt.datetime) -> dt.datetime | None:
    """Return the next time of a schedule, in UTC; None if it is blank."""
    return RetrainingSchedule(expression).next_after(now) if expression else None
