"""Messages for errors of SQLite and PostgreSQL: the problem of the database, and its cure."""

import re
import tomllib
from pathlib import Path
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


PROBLEMS: Final = tuple(
    Problem(one["text"], one["cure"], tuple(one.get("states", ())), one.get("words", ""))
    for one in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["problem"]
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
