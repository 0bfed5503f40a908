"""Stages of a retraining, as its progress callback sees them."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from roofcast.data.errors import InputError, RoofcastError

logger = logging.getLogger(__name__)

LINEAGES = "held-out lineages"

LOADING = "loading the measurements"
"""Stage before the first round."""

REGISTRATION: Final = "registration"
"""Last stage: the candidate is registered, and may be promoted, so that the retraining can be neither cancelled nor
repeated."""


class CancelledRetrainingError(Exception):
    """The retraining was cancelled, so it stops."""


Advance = Callable[[str, int, int], object]
"""Receives the stage, the number of its steps that are done, and that of all."""


def name_stages() -> Callable[[str], str]:
    """Return the function that names each round over held-out groups by what is fitted and what is held out.

    Rounds come in order: the candidate's lineages, its stacks if there are enough, then the lineages of the champion.
    A label that names whose round it is stays as it is.

    Examples
    --------
    >>> stage = name_stages()
    >>> [stage(label) for label in ("held-out lineages", "held-out stacks", "held-out lineages")]
    ['candidate, held-out lineages', 'candidate, held-out stacks', 'champion, held-out lineages']
    """
    n_round = 0

    def name(label: str) -> str:
        nonlocal n_round
        if ", " in label or label == REGISTRATION:
            return label
        n_round += label == LINEAGES
        return f"{'candidate' if n_round <= 1 else 'champion'}, {label}"

    return name


def record_stages(retraining_id: str, advance: Advance) -> Callable[[Iterable[Any], int, str], Iterator[Any]]:
    """Return the progress callback of a retraining that logs each step and records it.

    A step that cannot be recorded is logged; the retraining goes on. Nothing is recorded once it registers its
    candidate. The callback raises `CancelledRetrainingError` if the record is no longer that of a running retraining.
    """
    stage_of, is_registered = name_stages(), False

    def record(stage: str, n_done: int, n_step: int) -> None:
        nonlocal is_registered
        logger.info("retraining id=%s stage=%r done=%d total=%d", retraining_id, stage, n_done, n_step)
        if is_registered:
            return
        is_registered = stage == REGISTRATION
        try:
            advance(stage, n_done, n_step)
        except InputError as error:
            raise CancelledRetrainingError from error
        except RoofcastError as error:
            logger.warning("stage not recorded, retraining id=%s: %s", retraining_id, error)

    def progress(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        stage = stage_of(label)
        for n_done, item in enumerate(items, start=1):
            record(stage, n_done, total)
            yield item

    record(LOADING, 0, 0)
    return progress
