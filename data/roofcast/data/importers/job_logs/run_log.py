"""Run of a training framework's log: lines matched by a table of patterns, and what they say."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from roofcast.data.errors import SchemaError

MIN_STEP: Final = 2
"""Logged steps of a run that is measured: the first holds the start-up."""

MAX_LINE: Final = 2**16
"""Longest line of a log, in characters; a configuration in one line has some thousand."""

NUMBER: Final = r"(\d{1,15}(?:\.\d{1,15})?(?![0-9.]))"
COUNT: Final = r"(\d{1,9}(?!\d))"

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_LINE: Final = re.compile(r"[^\r\n]+")


class Pattern(NamedTuple):
    """Pattern of a line.

    Its repetitions are bounded and it starts with a literal, so that its cost is linear in the line.

    Parameters
    ----------
    mark
        Text that a line has if it matches: other lines are not searched.
    regex
        What to search.
    """

    mark: str
    regex: re.Pattern[str]

    @classmethod
    def of(cls, mark: str, regex: str) -> Pattern:
        """Return a pattern whose digits are those of ASCII."""
        return cls(mark, re.compile(regex, re.ASCII))


SHARED: Final = {
    "day": Pattern.of("-", r"(?<![0-9])(20[0-9]{2}-[01][0-9]-[0-3][0-9])[ T:]"),
    "out_of_memory": Pattern.of("emory", r"OutOfMemoryError|CUDA out of memory|HIP out of memory"),
}
"""Patterns of every framework's log."""


class Hit(NamedTuple):
    """Match of a pattern: the line it is on, and its groups, empty where one did not take part."""

    line: int
    groups: tuple[str, ...]


Hits = Mapping[str, Sequence[Hit]]
"""Matches by name of the pattern, in the order of the lines."""


@dataclass(frozen=True)
class RunLog:
    """One training run.

    Parameters
    ----------
    cells
        Columns of the training table that the log has.
    line
        Line of the last step, for messages.
    shape
        Layers and width of the model, by field of `roofcast.data.specs.ModelSpec`; empty where the log has none.
    rate_per_accelerator
        Tokens per second of one accelerator; None where the log has the time of a step.
    """

    cells: Mapping[str, Any]
    line: int
    shape: Mapping[str, int] = field(default_factory=dict)
    rate_per_accelerator: float | None = None


@dataclass(frozen=True)
class LogFormat:
    """Log of one framework.

    Parameters
    ----------
    patterns
        Patterns of its lines by name, beside `SHARED`.
    marks
        Names of patterns one of which matches in every log of the framework.
    read
        Returns the run of the matches in the named file.
    """

    patterns: Mapping[str, Pattern]
    marks: tuple[str, ...]
    read: Callable[[Hits, str], RunLog]


class Step(NamedTuple):
    """One logged step."""

    number: int
    line: int
    value: float


def iter_lines(text: str, source: str = "") -> Iterator[tuple[int, str]]:
    """Yield number and content of each line that is not empty, without the colours of a terminal.

    Raises
    ------
    SchemaError
        If a line is longer than `MAX_LINE`.
    """
    line, end = 1, 0
    for match in _LINE.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        if match.end() - end > MAX_LINE:
            raise SchemaError("", f"a line must be at most {MAX_LINE} characters long; cut it", source, line)
        content = match[0]
        yield line, _COLOUR.sub("", content) if "\x1b" in content else content


def find_hits(lines: Iterable[tuple[int, str]], patterns: Mapping[str, Pattern]) -> dict[str, list[Hit]]:
    """Return the matches of each pattern in the lines; empty lists where there are none."""
    hits: dict[str, list[Hit]] = {name: [] for name in patterns}
    for line, content in lines:
        for name, (mark, regex) in patterns.items():
            if mark in content:
                hits[name] += [Hit(line, match.groups("")) for match in regex.finditer(content)]
    return hits


def first_of(hits: Hits, name: str) -> tuple[str, ...]:
    """Return the groups of a pattern's first match; none if it has no match."""
    return hits[name][0].groups if hits[name] else ()


def has_exhausted_memory(hits: Hits, steps: Sequence[Step]) -> bool:
    """Return whether memory was exhausted before enough steps were logged."""
    return bool(hits["out_of_memory"]) and len({step.number for step in steps}) < MIN_STEP


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
