"""The commands that list the versions of the predictor, and say how to open the pages of its training runs."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import importlib.metadata
import json
import shlex
from pathlib import Path

from roofcast.serving.cli.console import show, spinner
from roofcast.serving.cli.context import AsJson, open_app_state


def versions(as_json: AsJson = False) -> None:
    """List the versions of the predictor, the newest first, and which one is in service."""
    with spinner("asking the registry"):
        registry = open_app_state().registry
        champion, known = registry.champion(), registry.versions()
    rows = [
        {"version": v.version, "in_service": v == champion, "run": v.run_id, "sha256": v.sha256,
         "description": v.description}
        for v in known
    ]  # fmt: skip
    show(
        rows if as_json else [row | {"in_service": "yes" if row["in_service"] else ""} for row in rows],
        as_json=as_json,
    )


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
    exists, installed = (home / "mlflow.db").exists(), _is_installed("mlflow")  # of mlflow-skinny it has no pages
    if as_json:
        print(json.dumps({"command": command, "has_runs": exists, "is_installed": installed}))
        return
    if not exists:
        print("there are no training runs yet: `roofcast retrain` makes the first")
    if not installed:
        print("install MLflow's pages with: pip install 'roofcast[ui]'")
    print(f"{shlex.join(command)}\nthen open http://127.0.0.1:5000")


def _is_installed(distribution: str) -> bool:
    return any(True for _ in importlib.metadata.distributions(name=distribution))
