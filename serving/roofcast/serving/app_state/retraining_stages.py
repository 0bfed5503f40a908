"""Stages of a retraining, as its progress callback sees them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

logger = logging.getLogger(__name__)

LINEAGES = "held-out lineages"


def name_stages() -> Callable[[str], str]:
    """Return the function that names each round over held-out groups by what is fitted and what is held out.

    Rounds come in order: the candidate's lineages, its stacks if there are enough, then the lineages of the champion.

    Examples
    --------
    >>> stage = name_stages()
    >>> [stage(label) for label in ("held-out lineages", "held-out stacks", "held-out lineages")]
    ['candidate, held-out lineages', 'candidate, held-out stacks', 'champion, held-out lineages']
    """
    n_round = 0

    def name(label: str) -> str:
        nonlocal n_round
        n_round += label == LINEAGES
        return f"{'candidate' if n_round <= 1 else 'champion'}, {label}"

    return name


def log_stages(retraining_id: str) -> Callable[[Iterable[Any], int, str], Iterator[Any]]:
    """Return the progress callback of a retraining that logs each step."""
    stage_of = name_stages()

    def progress(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        stage = stage_of(label)
        for done, item in enumerate(items, start=1):
            logger.info("retraining id=%s stage=%r done=%d total=%d", retraining_id, stage, done, total)
            yield item

    return progress
