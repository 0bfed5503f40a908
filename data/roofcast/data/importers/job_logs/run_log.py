"""What a log of a training run tells: cells of the training table, and the shape of the model."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from roofcast.data.errors import SchemaError

MIN_STEP: Final = 2
"""Logged steps of a run that is measured: the first holds the start-up."""

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_DAY: Final = re.compile(r"(?<![0-9])(20[0-9]{2}-[01][0-9]-[0-3][0-9])[ T:]")
_OUT_OF_MEMORY: Final = re.compile(r"OutOfMemoryError|CUDA out of memory|HIP out of memory")


@dataclass(frozen=True)
class RunLog:
    """One training run.

    Parameters
    ----------
    cells
        Columns of the training table that the log tells.
    line
        Line of the last step, for messages.
    shape
        Layers and width of the model, by field of `roofcast.data.specs.ModelSpec`; empty where the log tells none.
    rate_per_accelerator
        Tokens per second of one accelerator; None where the log tells the time of a step.
    """

    cells: Mapping[str, Any]
    line: int
    shape: Mapping[str, int] = field(default_factory=dict)
    rate_per_accelerator: float | None = None

    def with_cells(self, cells: Mapping[str, Any]) -> RunLog:
        """Return the run with other cells."""
        return replace(self, cells=cells)


@dataclass(frozen=True)
class Step:
    """One logged step: its number, line, and value, of which a run has the median."""

    number: int
    line: int
    value: float


def clean_lines(text: str) -> list[str]:
    """Return the lines of a log without the colours of a terminal."""
    return _COLOUR.sub("", text).splitlines()


def median_step(steps: Sequence[Step], interval: str, source: str) -> float:
    """Return the median value of the steps after the first logged one, which holds compilation and allocation.

    Several ranks may log a step.

    Parameters
    ----------
    interval
        The option that sets how often steps are logged, for the message.

    Raises
    ------
    SchemaError
        If fewer than `MIN_STEP` steps were logged.
    """
    n_step = len({step.number for step in steps})
    if n_step < MIN_STEP:
        problem = f"must log {MIN_STEP} steps or more, for the first holds the start-up, got {n_step}; see {interval}"
        raise SchemaError("", problem, source, steps[-1].line if steps else 0)
    first = min(step.number for step in steps)
    return statistics.median(step.value for step in steps if step.number > first)


def is_out_of_memory(lines: Iterable[str]) -> bool:
    """Return whether the run ended because memory was exhausted."""
    return any(_OUT_OF_MEMORY.search(line) for line in lines)


def first_day(lines: Iterable[str]) -> str:
    """Return the first date of a log, ``YYYY-MM-DD``; empty if there is none."""
    return next((match[1] for line in lines if (match := _DAY.search(line))), "")
