"""How the command line talks: tables for people, JSON for programs, errors in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from roofcast.data.errors import InputError, RoofcastError

out = Console(soft_wrap=True)
err = Console(stderr=True)

EXIT_INPUT = 2
EXIT_NO_ANSWER = 1


@contextmanager
def reporting() -> Iterator[None]:
    """Turn expected errors into one line on standard error and an exit status."""
    try:
        yield
    except RoofcastError as error:
        err.print(f"error: {error}", markup=False, highlight=False)
        sys.exit(EXIT_INPUT if isinstance(error, InputError) else EXIT_NO_ANSWER)


def show(rows: list[dict[str, Any]], *, as_json: bool, title: str = "") -> None:
    """Print rows as a table, or as JSON."""
    if as_json:
        print(json.dumps(rows, default=str, allow_nan=False))
        return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    out.print(table)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def track(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
    """Yield the items under a progress bar on standard error."""
    with Progress(console=err, transient=True) as progress:
        yield from progress.track(items, total=total, description=label)


@contextmanager
def counting(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that moves a progress bar to ``done`` of ``total`` steps."""
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
