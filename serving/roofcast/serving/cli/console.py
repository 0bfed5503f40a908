"""Output of the command line: tables for people, JSON for programs, one line for each error."""

import datetime as dt
import itertools
import json
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console

from roofcast.data.errors import InputError, RoofcastError

WIDTH: Final = 80
INDENT: Final = "   "
_GAP: Final = 2
NO_BREAK: Final = "\u00a0"

Cells = Mapping[str, str]


def table_text(rows: Sequence[Mapping[str, Any]], width: int = WIDTH, group_by: Sequence[str] = ()) -> str:
    """Return rows as a table, in lines of up to `width` characters where words allow it.

    Cells that a row lacks are blank. A table that is too wide becomes a table for each group of consecutive rows of
    equal `group_by`, loses its blank columns, and columns of one value become a line above it. If it is still too
    wide, each row is a paragraph of names and values.

    Examples
    --------
    >>> print(table_text([{"name": "a", "n": 1}, {"name": "b", "n": 20}]))
    name  n
    a     1
    b     20
    >>> print(table_text([{"name": "a"}, {"n": 20}]))
    name  n
    a
          20
    >>> rows = [{"name": "a", "first": 1, "second": n, "third": "", "fourth": n + 1} for n in (1, 20)]
    >>> print(table_text(rows, 29))
    the same in each row: name a,
       first 1
    second  fourth
    1       2
    20      21
    """
    head = list(dict.fromkeys(name for row in rows for name in row))
    cells: list[Cells] = [{str(name): cell_text(row.get(name)) for name in head} for row in rows]
    if not cells or _width(cells) <= width:
        return _columns(cells)
    if group_by:
        groups = itertools.groupby(rows, lambda row: [row.get(name) for name in group_by])
        return "\n\n".join(table_text([*group], width) for _, group in groups)
    names = [name for name in cells[0] if any(row[name] for row in cells)]
    equal = [name for name in names if len(cells) > 1 and len({row[name] for row in cells}) == 1]
    heading = ""
    if equal and len(equal) < len(names):
        heading = (
            fold(f"the same in each row: {_listed({name: cells[0][name] for name in equal})}", width=width) + "\n"
        )
        names = [name for name in names if name not in equal]
    cells = [{name: row[name] for name in names} for row in cells]
    if _width(cells) <= width:
        return heading + _columns(cells)
    return heading + "\n".join(fold(_listed(row), width=width) for row in cells)


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell; None is blank."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    return f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).splitlines())


def fold(text: str, indent: str = "", width: int = WIDTH) -> str:
    """Return a paragraph in lines of up to `width` characters, after the line breaks that the text starts with.

    Lines after the first are indented by `INDENT`, or all by `indent`.
    """
    breaks = "\n" * (len(text) - len(text.lstrip("\n")))
    folded = textwrap.fill(
        text.lstrip("\n"), width, initial_indent=indent, subsequent_indent=indent or INDENT,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    return breaks + folded.replace(NO_BREAK, " ")


def counts_text(reasons: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """Return each text of the reasons with its number, in the order of `texts`.

    Examples
    --------
    >>> counts_text(["slow", "dear", "late"], {"dear": "over the budget", "slow": "too slow", "late": "too slow"})
    ['1 over the budget', '2 too slow']
    """
    counts = Counter(texts[reason] for reason in reasons)
    return [f"{counts[text]} {text}" for text in dict.fromkeys(texts.values()) if counts[text]]


def _listed(row: Cells) -> str:
    return ", ".join(f"{name}{NO_BREAK}{cell}" for name, cell in row.items() if cell)


def _width(rows: Sequence[Cells]) -> int:
    return sum(_widths(rows)) + _GAP * (len(rows[0]) - 1)


def _widths(rows: Sequence[Cells]) -> list[int]:
    return [max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]]


def _columns(rows: Sequence[Cells]) -> str:
    if not rows:
        return ""
    widths, gap = _widths(rows), " " * _GAP
    lines = [[*rows[0]], *([*row.values()] for row in rows)]
    return "\n".join(
        gap.join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


out = Console()
err = Console(stderr=True)

MAX_PROBLEM: Final = 30
"""Problems of a command that are printed, in a line each."""

EXIT_INPUT = 2
EXIT_NO_ANSWER = 1


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an expected error on standard error, one line for each problem, and exit with its status."""
    try:
        yield
    except RoofcastError as error:
        problems = [one.message for one in error.all] if isinstance(error, InputError) else [str(error)]
        for problem in problems[:MAX_PROBLEM]:
            step(f"error: {problem}")
        if (n_more := len(problems) - MAX_PROBLEM) > 0:
            step(f"error: {n_more} more problem{'s' * (n_more > 1)}")
        sys.exit(EXIT_INPUT if isinstance(error, InputError) else EXIT_NO_ANSWER)
    finally:
        _flush()


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more


def show(rows: list[dict[str, Any]], *, as_json: bool, title: str = "", group_by: Sequence[str] = ()) -> None:
    """Print rows as a table as wide as the terminal, `WIDTH` characters without one, or as JSON.

    A table that is too wide has a part for each group of rows that follow each other with the same `group_by`.
    """
    if as_json:
        print(json.dumps(rows, default=str, allow_nan=False))
        return
    width = out.width if out.is_terminal else WIDTH
    lines = [table_text(rows, width, group_by)]
    if title:
        lines.insert(0, fold(title, width=min(width, WIDTH)))
    out.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    step(f"warning: {text}")


def note(text: str) -> None:
    """Print a remark on standard error."""
    step(f"note: {text}")


def step(text: str) -> None:
    """Print a line on standard error."""
    err.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def spinner(label: str) -> Iterator[None]:
    """Show a spinner with a label on standard error while the block runs, if that is a terminal."""
    if not err.is_terminal:
        yield
        return
    with err.status(label):
        yield


def track(items: Iterable[Any], total: int | None = None, label: str = "reading") -> Iterator[Any]:
    """Yield the items under a progress bar, if standard error is a terminal."""
    from rich.progress import Progress

    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        yield from progress.track(items, total=total, description=label)


def track_retraining() -> Callable[[Iterable[Any], int, str], Iterator[Any]]:
    """Return the progress callback of a retraining: a bar by stage on a terminal, elsewhere a line for each step.

    It is called once for each round over held-out lineages or stacks; what follows a round has no steps of its own.
    """
    from roofcast.serving.app_state.retraining_stages import name_stages

    stage_of = name_stages()

    def progress(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        stage = stage_of(label)
        for i, item in enumerate(track(items, total, stage), 1):
            yield item
            if not err.is_terminal:
                step(f"{stage}: {i} of {total}")
        step(f"{stage}: done")

    step("loading the measurements")
    return progress


@contextmanager
def count_steps(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """Give a callback (description, steps done, steps in all) of a progress bar."""
    from rich.progress import Progress

    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(label, total=None)
        yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
