"""Run of a training framework's log: lines matched by a table of patterns, and what they say."""

import functools
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from roofcast.data.errors import SchemaError
from roofcast.data.importers.fact_tables import fact_table

MIN_STEP: Final = 2
"""Logged steps of a run that is measured: the first holds the start-up."""

MAX_LINE: Final = 2**16
"""Longest line of a log, in characters; a configuration in one line has some thousand."""

_NUMBER: Final = r"(\d{1,15}(?:\.\d{1,15})?(?![0-9.]))"
_COUNT: Final = r"(\d{1,9}(?!\d))"

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_BREAKS: Final = re.compile(r"[\r\n]*+")
_LINE: Final = re.compile(rf"[^\r\n]{{1,{MAX_LINE + 1}}}+")
_WINDOW: Final = 2**20
"""Characters that one call looks at, so that other threads wait for milliseconds."""


class Pattern(NamedTuple):
    """Pattern of a line of a log; see ``log_patterns.toml``."""

    mark: str
    regex: re.Pattern[str]
    is_one: bool = False


@functools.cache
def patterns_of(framework: str) -> Mapping[str, Pattern]:
    """Return the patterns of a framework's lines, whose digits are those of ASCII, and of any log's, by name."""
    tables = fact_table("log_patterns")
    return {
        name: Pattern(one["mark"], _compiled(one["regex"]), one.get("is_one", False))
        for name, one in (tables["shared"] | tables[framework]).items()
    }


def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex.replace("<number>", _NUMBER).replace("<count>", _COUNT), re.ASCII)


class Hit(NamedTuple):
    """Match of a pattern: the line it is on, and its groups, empty where one did not take part."""

    line: int
    groups: tuple[str, ...]


Hits = Mapping[str, Sequence[Hit]]
"""Matches by name of the pattern, in the order of the lines."""


@dataclass(frozen=True)
class RunLog:
    """One training run.

    - `cells`: Columns of the training table that the log has.
    - `line`: Line of the last step, for messages.
    - `shape`: Layers and width of the model, by field of `roofcast.data.specs.ModelSpec`; empty where the log has
      none.
    - `rate_per_accelerator`: Tokens per second of one accelerator; None where the log has the time of a step.
    """

    cells: Mapping[str, Any]
    line: int
    shape: Mapping[str, int] = field(default_factory=dict)
    rate_per_accelerator: float | None = None


@dataclass(frozen=True)
class LogFormat:
    """Log of one framework: the names of the patterns that mark it, and the run of their matches."""

    framework: str
    marks: tuple[str, ...]
    read: Callable[[Hits, str], RunLog]

    @property
    def patterns(self) -> Mapping[str, Pattern]:
        """Patterns by name."""
        return patterns_of(self.framework)


class Step(NamedTuple):
    """One logged step."""

    number: int
    line: int
    value: float


def iter_lines(text: str, source: str = "") -> Iterator[tuple[int, str]]:
    """Yield number and content of each line that is not empty, without the colours of a terminal.

    Raises `SchemaError` if a line is longer than `MAX_LINE`.
    """
    line, position = 1, 0
    while position < len(text):
        start = _BREAKS.match(text, position, position + _WINDOW).end()  # type: ignore[union-attr]
        line += text.count("\n", position, start)
        match = _LINE.match(text, start)
        position = start
        if match is None:
            continue
        if len(match[0]) > MAX_LINE:
            raise SchemaError("", f"a line must be at most {MAX_LINE} characters long; cut it", source, line)
        position = match.end()
        yield line, _COLOUR.sub("", match[0]) if "\x1b" in match[0] else match[0]


def find_hits(lines: Iterable[tuple[int, str]], patterns: Mapping[str, Pattern]) -> dict[str, list[Hit]]:
    """Return the matches of each pattern in the lines; empty lists where there are none."""
    hits: dict[str, list[Hit]] = {name: [] for name in patterns}
    for line, content in lines:
        for name, (mark, regex, is_one) in patterns.items():
            if mark in content and not (is_one and hits[name]):
                hits[name] += [Hit(line, match.groups("")) for match in regex.finditer(content)]
    return hits


def first_of(hits: Hits, name: str) -> tuple[str, ...]:
    """Return the groups of a pattern's first match; none if it has no match."""
    return hits[name][0].groups if hits[name] else ()


def exhaustion_line(hits: Hits, steps: Sequence[Step]) -> int:
    """Return the last line of a run whose memory was exhausted before enough steps were logged; 0 of another run."""
    lines = [hit.line for name in ("out_of_memory", "memory_error") for hit in hits[name]]
    return max(lines, default=0) if len({step.number for step in steps}) < MIN_STEP else 0


def median_step(steps: Sequence[Step], interval: str, source: str) -> float:
    """Return the median value of the steps after the first logged one, which holds compilation and allocation.

    Several ranks may log a step. The message names the option that sets the interval of logged steps.

    Raises `SchemaError` if fewer than `MIN_STEP` steps were logged.
    """
    n_step = len({step.number for step in steps})
    if n_step < MIN_STEP:
        problem = f"must log {MIN_STEP} steps or more, for the first holds the start-up, got {n_step}; see {interval}"
        raise SchemaError("", problem, source, steps[-1].line if steps else 0)
    first = min(step.number for step in steps)
    return statistics.median(step.value for step in steps if step.number > first)
