"""Versions are listed with the one in service, and MLflow's pages are opened on the state folder."""

from pathlib import Path

import pytest

from roofcast.serving import composition
from roofcast.training.lifecycle.registry.registry import Champion, ShippedPredictor
from tests.serving.http_client import Run


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Champion:
    """Put a version without a file, which no test loads, in the place of the shipped predictor."""
    champion = Champion("shipped-00000000", "", "0" * 64)
    predictor = ShippedPredictor(champion, tmp_path / "predictor.roofcast")
    monkeypatch.setattr(composition, "shipped_predictor", lambda *_: predictor)
    return champion


@pytest.mark.usefixtures("home")
def test_the_version_in_service_is_marked(run: Run, shipped: Champion) -> None:
    rows = run.json("versions")
    assert [row["version"] for row in rows if row["in_service"]] == ["1"]
    assert rows[-1]["version"] == shipped.version
    assert all(len(row["sha256"]) == 64 for row in rows)


def test_without_a_run_there_is_the_shipped_version(run: Run, shipped: Champion) -> None:
    (row,) = run.json("versions")
    assert row["version"] == shipped.version
    assert row["in_service"]
    assert run.json("runs")["has_runs"] is False
    assert "no training runs yet" in run("runs")[1]


def test_the_pages_of_the_runs_are_opened_on_the_state_folder(run: Run, home: Path) -> None:
    _, out, _ = run("runs")
    assert f"--backend-store-uri sqlite:///{home / 'mlflow.db'}" in out
    assert run.json("runs")["has_runs"] is True


def test_a_tracking_server_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example")
    assert run("runs")[1] == "the training runs are at http://mlflow.example\n"
