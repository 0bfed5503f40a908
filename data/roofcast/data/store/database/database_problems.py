"""Messages for errors of SQLite and PostgreSQL: the problem of the database, and its cure."""

import re
from typing import Final, NamedTuple

import sqlalchemy as sa

LOCKED: Final = "is locked by another process"


class Problem(NamedTuple):
    """A problem of a database and its cure.

    It is recognised by `states`, PostgreSQL's error codes, or by `words`, a pattern for errors without a code: those
    of SQLite and of failed connections.
    """

    text: str
    cure: str
    states: tuple[str, ...] = ()
    words: str = ""


PROBLEMS: Final = (
    Problem("has no schema yet", "bring it up to date with migrate() first", ("42P01",), "no such table"),
    Problem(
        "has an older schema",
        "bring it up to date with migrate() first",
        ("42703",),
        "no such column|has no column named",
    ),
    Problem(LOCKED, "try again when that process has finished", ("55P03",), "is locked"),
    Problem(
        "is no database or a damaged one",
        "restore it from a copy, or name another file",
        words="not a database|malformed|is encrypted",
    ),
    Problem("has no room left", "free space on its disk", ("53100",), "disk is full"),
    Problem(
        "may not be written",
        "give this user write permission, for a file also on its folder",
        ("25006", "42501"),
        "readonly database",
    ),
    Problem(
        "cannot be opened",
        "check that its folder is there and that this user may read and write in it",
        words="unable to open",
    ),
    Problem(
        "refuses the user or the password",
        "correct them in the URL",
        ("28000", "28P01"),
        'password authentication failed|no password supplied|role "[^"]*" does not exist|no pg_hba.conf entry',
    ),
    Problem(
        "is not on its server",
        "create it, or correct its name in the URL",
        ("3D000",),
        'database "[^"]*" does not exist',
    ),
    Problem(
        "has no connection free",
        "try again, or raise its limit of connections",
        ("53300",),
        "too many clients|connection slots|QueuePool limit",
    ),
    Problem("was changed by another process at the same moment", "try again", ("40001", "40P01")),
    Problem(
        "lost a prepared statement",
        "connect to the server itself, or to a pooler in session mode",
        ("26000", "42P05"),
    ),
    Problem(
        "does not answer",
        "check host and port in the URL, and that the server runs",
        ("57P01", "57P03", "08000", "08003", "08006"),
        "connection refused|failed to resolve|could not translate|time(d )?out|unreachable|no route to host"
        "|starting up|closed the connection|connection is bad|connection timeout",
    ),
)
"""The first match counts."""

_OURS: Final = (sa.exc.IntegrityError, sa.exc.DataError, sa.exc.NotSupportedError)
_UNKNOWN: Final = Problem("cannot be used", "check that it is there, reachable and writable")


DAMAGED: Final = (
    "is a damaged one (SQLite's message about it is no text); restore it from a copy, or name another file"
)
"""Problem of a file with damaged names: Python decodes SQLite's message, which quotes them, and fails."""


def problem_of(error: sa.exc.SQLAlchemyError) -> str:
    """Return the problem of the database and its cure; empty for an error in our own statement.

    Examples
    --------
    >>> problem_of(sa.exc.OperationalError("", None, Exception("database is locked")))
    'is locked by another process (database is locked); try again when that process has finished'
    """
    if isinstance(error, _OURS):
        return ""
    cause = getattr(error, "orig", error)
    state, text = getattr(cause, "sqlstate", None), " ".join(str(cause).split())
    for problem in PROBLEMS:
        if state in problem.states if state else problem.words and re.search(problem.words, text, re.IGNORECASE):
            return _sentence(problem, text)
    return "" if isinstance(error, sa.exc.ProgrammingError) else _sentence(_UNKNOWN, text)


def _sentence(problem: Problem, text: str) -> str:
    return f"{problem.text} ({text}); {problem.cure}"
