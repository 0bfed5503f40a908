"""The commands that list, shadow and compare the versions of the predictor, and open the pages of its runs."""

from __future__ import annotations

import importlib.metadata
import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.cli.commands.drift_command import MAX_DAYS, show_comparison
from roofcast.serving.cli.console import show, spinner
from roofcast.serving.cli.context import (
    COMMAND_LINE,
    AsJson,
    Server,
    TargetOption,
    load_predictor,
    open_service,
)
from roofcast.serving.cli.remote import ask

if TYPE_CHECKING:
    from roofcast.serving.shadow.version_comparison import VersionComparison


versions = typer.Typer(help="List the versions of the predictor, let one answer unseen, compare it.")

Version = Annotated[str, typer.Argument(help="A version in the registry.")]


@versions.callback(invoke_without_command=True)
def list_versions(context: typer.Context, *, target: TargetOption = INFERENCE, as_json: AsJson = False) -> None:
    """List the versions of the predictor, the newest first: which is in service, and which answers beside it."""
    if context.invoked_subcommand:
        return
    from roofcast.training.lifecycle.gate.challenger_alias import summarize_versions

    with spinner("asking the registry"):
        known = summarize_versions(open_service().champions[target].registry)
    names = {"run_id": "run"}
    rows = [{names.get(name, name): value for name, value in one.model_dump().items()} for one in known]
    if not as_json:
        flags = ("in_service", "is_challenger")
        rows = [row | {name: "yes" if row[name] else "" for name in flags} for row in rows]
    show(rows, as_json=as_json)


@versions.command()
def shadow(version: Version, as_json: AsJson = False) -> None:
    """Let a version answer a sample of the service's requests beside the champion, unseen."""
    with spinner(f"loading version {version}"):
        challenger = open_service().challenger.shadow(version, COMMAND_LINE)
    print(json.dumps(asdict(challenger)) if as_json else f"version {challenger.version} answers beside the champion")


@versions.command()
def withdraw(as_json: AsJson = False) -> None:
    """Withdraw the version that answers beside the champion; it stays in the registry."""
    from roofcast.training.lifecycle.gate.challenger_alias import withdraw_challenger

    with spinner("withdrawing"):
        version = withdraw_challenger(open_service().registry, COMMAND_LINE)
    print(json.dumps(asdict(version)) if as_json else f"version {version.version} no longer answers")


@versions.command()
def compare(
    version: Version,
    *,
    days: Annotated[
        float | None,
        typer.Option(
            help="Compare on measurements imported in so many days; by default ROOFCAST_DRIFT_DAYS.",
            min=1e-6, max=MAX_DAYS,
        ),
    ] = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Compare a version with the champion: its answers beside it, and the errors of both on measurements."""
    with spinner("comparing"):
        comparison = _compute(version, days, server)
    if as_json:
        print(comparison.model_dump_json())
    else:
        show_comparison(comparison)


def _compute(version: str, days: float | None, server: str) -> VersionComparison:
    from roofcast.serving.shadow.version_comparison import VersionComparison, compare_version

    if server:
        with ask(server) as client:
            return VersionComparison.model_validate(client.compare_version(version, days))
    service = load_predictor(open_service())
    service.challenger.refresh()
    models = service.compared_models
    other = service.versions.load(version, models)
    return compare_version(service.store, models, other, days or service.settings.drift_days)


def runs(as_json: AsJson = False) -> None:
    """Say how to open MLflow's pages of the training runs of this state folder."""
    from roofcast.serving.app_state.settings import load_settings

    settings = load_settings()
    if server := settings.mlflow_tracking_uri:
        print(json.dumps({"url": server}) if as_json else f"the training runs are at {server}")
        return
    home = Path(settings.home)
    command = [
        "mlflow", "ui", "--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}",
        "--default-artifact-root", (home / "artifacts").as_uri(), "--port", "5000",
    ]  # fmt: skip
    exists = (home / "mlflow.db").exists()
    installed = any(True for _ in importlib.metadata.distributions(name="mlflow"))  # mlflow-skinny has no pages
    if as_json:
        print(json.dumps({"command": command, "has_runs": exists, "is_installed": installed}))
        return
    if not exists:
        print("there are no training runs yet: `roofcast retrain` makes the first")
    if not installed:
        print("install MLflow's pages with: pip install 'roofcast[ui]'")
    print(f"{shlex.join(command)}\nthen open http://127.0.0.1:5000")
