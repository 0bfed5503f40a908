"""The commands that list and cancel the retrainings of the service, and show their schedule."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofcast.serving.cli.console import show, step
from roofcast.serving.cli.context import COMMAND_LINE, AsJson, Server, open_service
from roofcast.serving.cli.remote import ask

if TYPE_CHECKING:
    from roofcast.data.store.retrainings import Retraining

retrainings = typer.Typer(help="List the retrainings of the service, cancel one, show when it retrains by itself.")


@retrainings.callback(invoke_without_command=True)
def list_retrainings(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(help="Maximum number of retrainings.", min=1, max=1000)] = 20,
    as_json: AsJson = False,
) -> None:
    """List the retrainings that the service was asked for, the latest first, with their stages and results."""
    if not context.invoked_subcommand:
        records = [_row(one) for one in open_service().store.retrainings.load(limit=limit)]
        show(records, as_json=as_json)
        if not records:
            step("no retraining was asked for; `roofcast retrain` retrains at once")


@retrainings.command()
def cancel(id_: Annotated[str, typer.Argument(metavar="ID", help="A retraining.")], as_json: AsJson = False) -> None:
    """Cancel a retraining: one that waits does not start, one that runs stops after the folds that it fits."""
    from roofcast.serving.app_state.retraining_stages import REGISTRATION

    cancelled = open_service().store.retrainings.cancel(id_, COMMAND_LINE, REGISTRATION)
    show([_row(cancelled)], as_json=as_json)


@retrainings.command()
def schedule(server: Server = "", as_json: AsJson = False) -> None:
    """Show ROOFCAST_RETRAIN_AT: when the service retrains if measurements were accepted or withdrawn, in UTC."""
    if server:
        with ask(server) as client:
            row = dict(client.retraining_schedule())
    else:
        import datetime as dt

        from roofcast.serving.app_state.retraining_schedule import next_retraining_at
        from roofcast.serving.app_state.settings import load_settings

        expression = load_settings().retrain_at
        next_at = next_retraining_at(expression, dt.datetime.now(dt.UTC))
        row = {"retrain_at": expression, "next_at": next_at.isoformat() if next_at else None}
    show([row], as_json=as_json)


def _row(record: Retraining) -> dict[str, Any]:
    report = record.report or {}
    counts = ("stage", "n_step_done", "n_step", "n_interruption")
    moments = ("requested_at", "started_at", "finished_at")
    shown = asdict(record)
    return (
        {name: shown[name] for name in ("id", "target", "state", *counts)}
        | {name: shown[name].isoformat(timespec="seconds") if shown[name] else "" for name in moments}
        | {"version": report.get("version", ""), "reason": report.get("reason", "") or record.error}
    )
