"""Output of the command line: tables for people, JSON for programs, one line for each error."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console

from roofcast.data.errors import InputError, RoofcastError
from roofcast.serving.cli.text.text_tables import WIDTH, fold, table_text

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
