"""Audit trail of champion and challenger: one JSON line in the state folder for each change."""

import datetime as dt
import logging
import os
from pathlib import Path
from typing import Any, Final, Literal

from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.data.specs import Spec

audit = logging.getLogger("roofcast.audit")
"""Audit log: every change of the champion and the challenger, with its caller."""

logger = logging.getLogger(__name__)

FILE_NAME: Final = "champion_changes.jsonl"

Action = Literal["promotion", "rollback", "shadow", "withdrawal"]


class ChampionChange(Spec):
    """A change of the champion or the challenger.

    - `at`: Time, UTC.
    - `action`: ``promotion`` or ``rollback`` of the champion, ``shadow`` (another challenger) or ``withdrawal`` (of
      it).
    - `caller`: A key (``key:NAME``), an address, ``the command line`` or ``a retraining``.
    - `version_before`, `version`: Champions, or challengers; ``none`` if there was or is none.
    """

    at: dt.datetime
    action: Action
    caller: str
    version_before: str
    version: str
    target: Target = INFERENCE


def record_change(
    home: Path, action: Action, caller: str, version_before: str, version: str, *, target: Target = INFERENCE
) -> None:
    """Log a change and append it to the file of the state folder; a file that cannot be written is logged.

    After a line that a crash cut off, the change starts a new line.
    """
    fields: dict[str, Any] = {"action": action, "caller": caller}
    fields |= {"version_before": version_before, "version": version, "target": target}
    audit.info("%s caller=%s version_before=%s version=%s target=%s", *fields.values(), extra=fields)
    change = ChampionChange(at=dt.datetime.now(dt.UTC).replace(microsecond=0), **fields)
    try:
        with (home / FILE_NAME).open("a+b") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            is_cut = end > 0 and file.read(1) != b"\n"
            file.write(b"\n" * is_cut + change.model_dump_json().encode() + b"\n")
    except OSError as error:
        logger.warning("champion change not recorded, file=%s: %s", home / FILE_NAME, error)


def read_changes(home: Path, limit: int) -> list[ChampionChange]:
    """Return the latest changes, the newest first; lines that a crash cut off are skipped with a warning.

    Examples
    --------
    >>> read_changes(Path("no such folder"), 10)
    []
    """
    try:
        lines = (home / FILE_NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    changes = []
    for line in reversed(lines):
        try:
            changes.append(ChampionChange.model_validate_json(line))
        except ValueError:
            logger.warning("champion change unreadable, file=%s line=%.80r", home / FILE_NAME, line)
    return changes[:limit]
