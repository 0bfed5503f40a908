"""Versions put into service and taken back over HTTP."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from roofcast.client import Client as RoofcastClient
from roofcast.client import NoAnswerError
from roofcast.data.errors import RoofcastError
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.promotion import roll_back
from roofcast.serving.app_state.published_figures import FILE_NAME, read_figures, store_figures
from roofcast.serving.app_state.settings import Settings
from roofcast.training.lifecycle.bundle import ModelBundle
from roofcast.training.lifecycle.registry import MODEL_NAME, Champion, Registry
from tests.conftest import QUICK
from tests.serving.client.test_client import Wire
from tests.serving.http.test_app import register_copy, version_of
from tests.serving.http_client import Client, Run, a_question, problem_of

PREDICTOR, ROLLBACK, BOARD = "/v1/predictor", "/v1/predictor/rollback", "/v1/scoreboard"
FIGURES: dict[str, Any] = {"P1": {"roofcast": {"success": 0.9, "overspend": None}}}


def promote(client: Client, version: str) -> Any:
    return client.send("PUT", PREDICTOR, f'{{"version": "{version}"}}', {"content-type": "application/json"})


def champion_of(client: Client) -> str:
    champion = client.bench.registry.champion()
    assert champion is not None
    return champion.version


def test_a_rollback_is_served_at_once_and_the_next_goes_further_back(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    second, third = register_copy(client.bench), register_copy(client.bench)
    for version in (second, third):
        assert promote(client, version).json()["version"] == version
    client.use_key(client.make_key("admin", name="the-operator"))
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        for version in (second, "1"):
            told = client.send("POST", ROLLBACK)
            assert (told.status_code, told.json()["version"]) == (200, version)
            answered = client.post("/v1/predictions", {"rows": [a_question()]}).json()
            assert answered["predictor_version"] == version
    assert f"rollback caller=key:the-operator version_before={second} version=1" in caplog.text
    problem = problem_of(client.send("POST", ROLLBACK), 409)
    assert "no earlier champion to go back to; `roofcast promote VERSION`" in problem["detail"]
    assert version_of(client) == champion_of(client) == "1"


def test_only_admins_may(client: Client) -> None:
    for scope, status in (("write", 403), ("read", 403)):
        client.use_key(client.make_key(scope))  # type: ignore[arg-type]
        problem_of(client.send("POST", ROLLBACK), status)
    client.use_key(None)
    problem_of(client.send("POST", ROLLBACK), 401)


def break_version(client: Client) -> str:
    """Register a version whose bundle is not what its checksum says."""
    registry, champion = client.bench.registry, client.bench.active_model.champion
    source = registry._client.get_model_version_download_uri(MODEL_NAME, champion.version)
    return registry.register(source, champion.run_id, "0" * 64)


def lose_version(client: Client, folder: Path) -> str:
    """Register a version whose files are gone."""
    registry, champion = client.bench.registry, client.bench.active_model.champion
    return registry.register((folder / "gone").as_uri(), champion.run_id, "1" * 64)


@pytest.fixture
def settings(home: Path) -> Settings:
    """Return settings of a service that does not look for another champion while one is promoted."""
    return Settings(home=home, training=QUICK, poll_s=3600)


@pytest.fixture
def loads(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the versions whose bundles were loaded, in order."""
    seen: list[str] = []
    load = client.bench.registry.load

    def noted(champion: Champion) -> ModelBundle:
        seen.append(champion.version)
        return load(champion)

    monkeypatch.setattr(client.bench.registry, "load", noted)
    return seen


def test_a_bundle_is_loaded_once_to_be_tried_and_served(client: Client, loads: list[str]) -> None:
    second = register_copy(client.bench)
    assert promote(client, second).json()["version"] == second
    assert client.send("POST", ROLLBACK).json()["version"] == "1"
    assert loads == [second, "1"]


def test_a_version_without_files_is_refused_and_the_champion_stays(client: Client, tmp_path: Path) -> None:
    lost = lose_version(client, tmp_path)
    problem = problem_of(promote(client, lost), 422)
    assert (problem["field"], f"version {lost} has lost its files" in problem["detail"]) == ("bundle", True)
    client.bench.registry.promote(lost)
    client.bench.registry.promote("1")
    problem_of(client.send("POST", ROLLBACK), 422)
    assert version_of(client) == champion_of(client) == "1"


def test_of_two_who_roll_back_at_once_one_is_refused(
    client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second asks while the first tries its bundle, and finds the champion gone that it meant."""
    second, third = register_copy(client.bench), register_copy(client.bench)
    for version in (second, third):
        client.bench.registry.promote(version)
    other = AppState(settings)
    has_looked, said = threading.Event(), []

    def look_and_wait() -> Champion | None:
        found = Registry.champion(other.registry)
        has_looked.set()
        return found

    def ask() -> None:
        try:
            roll_back(other, "the second")
        except RoofcastError as error:
            said.append(str(error))

    asker = threading.Thread(target=ask)
    load = client.bench.registry.load

    def load_meanwhile(champion: Champion) -> ModelBundle:
        asker.start()
        assert has_looked.wait(30)
        return load(champion)

    monkeypatch.setattr(other.registry, "champion", look_and_wait)
    monkeypatch.setattr(client.bench.registry, "load", load_meanwhile)
    assert roll_back(client.bench, "the first").champion.version == second
    asker.join(30)
    problem = f"the champion must be version {third}, got version {second}: it changed meanwhile"
    assert said == [f"{problem}; check the versions and try again"]
    assert champion_of(client) == second


def test_a_version_that_cannot_be_served_is_refused_and_the_champion_stays(client: Client, run: Run) -> None:
    broken = break_version(client)
    problem = problem_of(promote(client, broken), 422)
    assert "does not have the registered checksum" in problem["detail"]
    problem_of(promote(client, "99"), 404)
    status, _, said = run("promote", broken)
    assert (status, "registered checksum" in said) == (2, True)
    client.bench.registry.promote(broken)
    client.bench.registry.promote("1")
    problem_of(client.send("POST", ROLLBACK), 422)
    assert version_of(client) == champion_of(client) == "1"


def test_the_command_line_goes_back_too_and_no_further_than_there_is(client: Client, run: Run) -> None:
    promote(client, register_copy(client.bench))
    assert run("rollback")[:2] == (0, "version 1 is in service\n")
    status, _, said = run("rollback")
    assert status != 0
    assert "no earlier champion" in said


def test_the_client_rolls_back(client: Client) -> None:
    promote(client, register_copy(client.bench))
    with RoofcastClient("http://test", client.make_key("admin"), transport=Wire(client)) as roofcast:
        assert roofcast.roll_back()["version"] == "1"
        with pytest.raises(NoAnswerError, match="no earlier champion"):
            roofcast.roll_back()


def test_the_scoreboard_tells_of_the_predictor_and_of_what_was_computed_here(client: Client, home: Path) -> None:
    board, predictor = client.get(BOARD).json(), client.get(PREDICTOR).json()
    assert (board["predictor_version"], board["n_row"]) == ("1", predictor["n_row"])
    assert board["held_out"] == predictor["held_out"]
    assert board["held_out"]["ttft_s"]["median_ape"] > 0
    assert board["protocols"]["P3"]["figures"]
    store_figures(home, FIGURES, dt.date(2036, 11, 1))
    store_figures(home, {"P4": {"tpot": {"mape": 0.2}}}, dt.date(2036, 11, 20))
    told = client.get(BOARD).json()["protocols"]
    assert list(told) == list(board["protocols"])
    assert told["P1"]["figures"] == FIGURES["P1"]
    assert told["P1"]["computed_on"] == "2036-11-01"
    assert told["P4"]["roofcast_version"]
    assert told["P3"] == board["protocols"]["P3"]


def test_a_scoreboard_that_is_damaged_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).write_text('{"P1": 1}')
    assert read_figures(tmp_path) == read_figures(tmp_path / "nowhere")
    assert "scoreboard figures ignored" in caplog.text
    store_figures(tmp_path, FIGURES, dt.date(2036, 11, 1))
    assert read_figures(tmp_path)["P1"].figures == FIGURES["P1"]
