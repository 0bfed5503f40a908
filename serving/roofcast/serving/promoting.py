"""Another version into service, by whoever may: tried before it is taken, and told of in the log."""

from __future__ import annotations

import logging
from typing import Final

from roofcast.serving.workbench import InService, Workbench
from roofcast.training.registry import Champion

logger = logging.getLogger("roofcast.audit")

COMMAND_LINE: Final = "the command line"


def promote(bench: Workbench, version: str, by: str) -> Champion:
    """Put a version into service and return it; one that cannot be served is refused, and the one in service stays.

    Parameters
    ----------
    bench
        Whose registry.
    version
        In the registry.
    by
        Who asked, for the log.

    Raises
    ------
    UnknownNameError
        If there is no such version.
    InputError
        If its bundle cannot be read, as after an upgrade that changed the columns.
    """
    bench.registry.load(bench.registry.find(version))
    before = bench.registry.champion()
    return _told("promotion", by, before, bench.registry.promote(version))


def roll_back(bench: Workbench, by: str) -> Champion:
    """Put the version before the champion back into service and return it; asked again, the one before that.

    Raises
    ------
    NoAnswerError
        If there is none.
    InputError
        If its bundle cannot be read; the one in service stays.
    """
    bench.registry.load(bench.registry.previous())
    before = bench.registry.champion()
    return _told("rollback", by, before, bench.registry.rollback())


def swap(bench: Workbench) -> InService:
    """Return what is in service here once the champion is; other server processes follow within seconds."""
    bench.refresh()
    return bench.in_service


def _told(what: str, by: str, before: Champion | None, after: Champion) -> Champion:
    was = before.version if before else "none"
    fields = {"action": what, "caller": by, "version_before": was, "version": after.version}
    logger.info("%s by %s: version %s is in service, was %s", what, by, after.version, was, extra=fields)
    return after
