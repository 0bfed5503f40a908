"""How the command line talks: tables for people, JSON for programs, errors in one line."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from roofcast.data.errors import InputError, RoofcastError

FILE_WIDTH = 200
"""Characters of a line where the output is no terminal."""

out = Console(soft_wrap=True, width=None if sys.stdout.isatty() else FILE_WIDTH)
err = Console(stderr=True)

EXIT_INPUT = 2
EXIT_NO_ANSWER = 1


@contextmanager
def reporting() -> Iterator[None]:
    """Turn expected errors into one line on standard error and an exit status."""
    try:
        yield
    except RoofcastError as error:
        err.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(EXIT_INPUT if isinstance(error, InputError) else EXIT_NO_ANSWER)
    finally:
        _flush()


def _flush() -> None:
    """Write what is left of the output; that its reader has gone, as `head` does, is no fault to tell of."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter tells of it at its end


def show(rows: list[dict[str, Any]], *, as_json: bool, title: str = "") -> None:
    """Print rows as a table, or as JSON."""
    if as_json:
        print(json.dumps(rows, default=str, allow_nan=False))
        return
    table = Table(title=Text(title) if title else None, title_justify="left", box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row.values()))
    out.print(table)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_recommendation(response: dict[str, Any]) -> None:
    """Print a recommendation as tables: what does, what it could cost, and what does not and why."""
    entries = [
        {
            **_part(entry),
            "USD/Mtoken in": entry["cost_usd_per_million_input_token"],
            "USD/Mtoken out": entry["cost_usd_per_million_output_token"],
            "each serves": _served(entry),
        }
        for entry in response["entries"]
    ]
    title = f"{response['model']}: least cost first, limits met with probability {response['confidence']:g}"
    show(entries, as_json=False, title=title)
    if response["fleet"]:
        why = "cheaper than the first" if entries else "no kind of instance alone will do"
        total = sum(part["cost_usd_per_h"] for part in response["fleet"])
        show(
            [_part(part) for part in response["fleet"]],
            as_json=False,
            title=f"\n{why}: a mixture for {total:.4g} USD/h",
        )
    costs = [{"P(limits met)": cost["confidence"], "USD/h": cost["cost_usd_per_h"]} for cost in _costs(response)]
    show(costs, as_json=False, title="\nwhat certainty costs")
    columns = ("accelerator", "engine", "tensor_parallel", "reason", "detail")
    families = [{name: family[name] for name in columns} for family in response["families"]]
    title = (
        f"\n{len(families)} accelerators in no entry: the nearest of their {response['n_configuration']} ways to run"
    )
    show(families, as_json=False, title=title)


def _part(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "USD/h": entry["cost_usd_per_h"],
        "instance": _instance(entry),
        "replica": _replica(entry),
        "in flight": f"{entry['load_per_replica']:.4g} of {entry['in_flight_per_replica']:.4g}",
        "P(limits met)": f"{entry['p_limits_met']:.2f}",
        **{
            f"{metric['metric']}:{metric['statistic']}": _interval(metric)
            for metric in entry["predictions"]
            if metric["limit"] is not None
        },
        "outside": "yes" if entry["outside"] else "",
    }


def _costs(response: dict[str, Any]) -> list[dict[str, Any]]:
    return [cost for cost in response["cost_of_confidence"] if cost["cost_usd_per_h"] is not None]


def _instance(entry: dict[str, Any]) -> str:
    return f"{entry['n_instance']} x {entry['provider']} {entry['instance_type']} {entry['region']}"


def _replica(entry: dict[str, Any]) -> str:
    """Return how many of what accelerator, split how, run which engine."""
    names = {"tp": "tensor", "pp": "pipeline", "dp": "data", "ep": "expert"}
    degrees = {short: entry[f"{name}_parallel"] for short, name in names.items()}
    split = " ".join(f"{short}{n}" for short, n in degrees.items() if n > 1 or short == "tp")
    return f"{entry['n_replica']} x {entry['accelerator']} {split} {entry['engine']} {entry['weight_precision']}"


def _served(entry: dict[str, Any]) -> str:
    """Return what one replica serves at most, in the unit of the demand."""
    users = entry["users_per_replica"]
    return f"{entry['request_rate_per_replica']:.4g} requests/s" if users is None else f"{users:.4g} users"


def _interval(metric: dict[str, Any]) -> str:
    return f"{metric['value']:.3g} ({metric['low']:.2g}-{metric['high']:.2g})"


def warn(text: str) -> None:
    """Print a warning on standard error."""
    err.print(f"warning: {text}", markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Print on standard error what is good to know and nothing is wrong with."""
    err.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)


def step(text: str) -> None:
    """Print on standard error what is done now."""
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def track(items: Iterable[Any], total: int | None = None, label: str = "reading") -> Iterator[Any]:
    """Yield the items, one at a time as they come, under a progress bar if standard error is a terminal."""
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        yield from progress.track(items, total=total, description=label)


def track_retraining() -> Callable[[Iterable[Any], int, str], Iterator[Any]]:
    """Return what shows how far a retraining is: a bar on a terminal, elsewhere a line for each part that is done.

    It is called once a round over the held-out lineages: for the candidate, then for the champion it is judged by.
    """
    rounds = chain([("candidate", "fitting the candidate to everything")], repeat(("champion", "judging")))

    def shown(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        who, then = next(rounds)
        for i, item in enumerate(track(items, total, f"{who}, {label}"), 1):
            yield item
            if not err.is_terminal:
                step(f"{who}, {label}: {i} of {total}")
        step(then)

    step("gathering the measurements")
    return shown


@contextmanager
def counting(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that moves a progress bar to ``done`` of ``total`` steps."""
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(label, total=None)
        yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
