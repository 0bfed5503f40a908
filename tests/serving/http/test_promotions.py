"""Promotion and rollback over HTTP, on the command line and by the client."""

import datetime as dt
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofcast.client import Client as RoofcastClient
from roofcast.client import NoAnswerError
from roofcast.data.errors import RoofcastError
from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.app_state.published_figures import FILE_NAME, read_figures, store_figures
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.registry.registry import MODEL_NAME, Champion, Registry
from tests.conftest import QUICK
from tests.serving.client.test_client import Wire
from tests.serving.http.test_app import register_copy, version_of
from tests.serving.http_client import Client, Run, a_question, problem_of

PREDICTOR, ROLLBACK, BOARD = "/v1/predictor", "/v1/predictor/rollback", "/v1/scoreboard"
FIGURES: dict[str, Any] = {"P1": {"roofcast": {"success": 0.9, "overspend": None}}}


def promote(client: Client, version: str) -> Any:
    return client.send("PUT", PREDICTOR, f'{{"version": "{version}"}}', {"content-type": "application/json"})


def champion_of(client: Client) -> str:
    champion = client.service.registry.champion()
    assert champion is not None
    return champion.version


def test_each_rollback_activates_the_champion_before(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    second, third = register_copy(client.service), register_copy(client.service)
    for version in (second, third):
        assert promote(client, version).json()["version"] == version
    client.use_key(client.make_key("admin", name="the-operator"))
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        for version in (second, "1"):
            response = client.send("POST", ROLLBACK)
            assert (response.status_code, response.json()["version"]) == (200, version)
            answer = client.post("/v1/predictions", {"rows": [a_question()]}).json()
            assert answer["predictor_version"] == version
    assert f"rollback caller=key:the-operator version_before={second} version=1" in caplog.text
    problem = problem_of(client.send("POST", ROLLBACK), 409)
    assert "no earlier champion to go back to; `roofcast promote VERSION`" in problem["detail"]
    assert version_of(client) == champion_of(client) == "1"


def register_wrong_checksum(client: Client) -> str:
    """Register a version with a wrong checksum."""
    registry, champion = client.service.registry, client.service.active_model.champion
    source = registry._client.get_model_version_download_uri(MODEL_NAME, champion.version)
    return registry.register(source, champion.run_id, "0" * 64)


def register_without_files(client: Client) -> str:
    """Register a version whose files are gone."""
    registry, champion = client.service.registry, client.service.active_model.champion
    return registry.register((client.service.settings.home / "gone").as_uri(), champion.run_id, "1" * 64)


@pytest.fixture
def settings(home: Path) -> Settings:
    """Return settings of a service that does not poll the registry during a promotion."""
    return Settings(home=home, training=QUICK, poll_s=3600)


@pytest.fixture
def loads(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the versions whose bundles were loaded, in order."""
    versions: list[str] = []
    load = client.service.registry.load

    def load_and_record(champion: Champion) -> ModelBundle:
        versions.append(champion.version)
        return load(champion)

    monkeypatch.setattr(client.service.registry, "load", load_and_record)
    return versions


def test_a_promoted_bundle_is_loaded_once(client: Client, loads: list[str]) -> None:
    second = register_copy(client.service)
    assert promote(client, second).json()["version"] == second
    assert client.send("POST", ROLLBACK).json()["version"] == "1"
    assert loads == [second, "1"]


def test_the_second_of_two_simultaneous_rollbacks_is_refused(
    client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second reads the champion while the first loads its bundle; the champion has changed when it goes on."""
    second, third = register_copy(client.service), register_copy(client.service)
    for version in (second, third):
        client.service.registry.promote(version)
    other = build_service(settings)
    has_read, messages = threading.Event(), []

    def read_champion() -> Champion | None:
        champion = Registry.champion(other.registry)
        has_read.set()
        return champion

    def roll_back_second() -> None:
        try:
            other.champions[INFERENCE].roll_back("the second")
        except RoofcastError as error:
            messages.append(str(error))

    thread = threading.Thread(target=roll_back_second)
    load = client.service.registry.load

    def load_meanwhile(champion: Champion) -> ModelBundle:
        thread.start()
        assert has_read.wait(30)
        return load(champion)

    monkeypatch.setattr(other.registry, "champion", read_champion)
    monkeypatch.setattr(client.service.registry, "load", load_meanwhile)
    assert client.service.champions[INFERENCE].roll_back("the first").champion.version == second
    thread.join(30)
    problem = f"the champion must be version {third}, got version {second}: it changed meanwhile"
    assert messages == [f"{problem}; check the versions and try again"]
    assert champion_of(client) == second


@pytest.mark.parametrize(
    ("register", "problem"),
    [(register_without_files, "has lost its files"), (register_wrong_checksum, "not have the registered checksum")],
)
def test_a_version_that_cannot_be_loaded_is_refused_and_the_champion_stays(
    client: Client, run: Run, register: Callable[[Client], str], problem: str
) -> None:
    broken = register(client)
    refused = problem_of(promote(client, broken), 422)
    assert (refused["field"], problem in refused["detail"]) == ("bundle", True)
    problem_of(promote(client, "99"), 404)
    assert problem in run.error("promote", broken)
    client.service.registry.promote(broken)
    client.service.registry.promote("1")
    problem_of(client.send("POST", ROLLBACK), 422)
    assert version_of(client) == champion_of(client) == "1"


def test_rollback_on_the_command_line(client: Client, run: Run) -> None:
    promote(client, register_copy(client.service))
    assert run("rollback")[:2] == (0, "version 1 is in service\n")
    assert "no earlier champion" in run.error("rollback", status=1)


def test_the_client_rolls_back(client: Client) -> None:
    promote(client, register_copy(client.service))
    with RoofcastClient("http://test", client.make_key("admin"), transport=Wire(client)) as roofcast:
        assert roofcast.roll_back()["version"] == "1"
        with pytest.raises(NoAnswerError, match="no earlier champion"):
            roofcast.roll_back()


def test_the_scoreboard_has_held_out_errors_and_figures_computed_here(client: Client, home: Path) -> None:
    board, predictor = client.get(BOARD).json(), client.get(PREDICTOR).json()
    assert (board["predictor_version"], board["n_row"]) == ("1", predictor["n_row"])
    assert board["held_out"] == predictor["held_out"]
    assert board["held_out"]["ttft_s"]["median_ape"] > 0
    assert board["protocols"]["P3"]["figures"]
    store_figures(home, FIGURES, dt.date(2036, 11, 1))
    store_figures(home, {"P4": {"tpot": {"mape": 0.2}}}, dt.date(2036, 11, 20))
    protocols = client.get(BOARD).json()["protocols"]
    assert list(protocols) == list(board["protocols"])
    assert protocols["P1"]["figures"] == FIGURES["P1"]
    assert protocols["P1"]["computed_on"] == "2036-11-01"
    assert protocols["P4"]["roofcast_version"]
    assert protocols["P3"] == board["protocols"]["P3"]


def test_a_damaged_scoreboard_file_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).write_text('{"P1": 1}')
    assert read_figures(tmp_path) == read_figures(tmp_path / "nowhere")
    assert "scoreboard figures ignored" in caplog.text
    store_figures(tmp_path, FIGURES, dt.date(2036, 11, 1))
    assert read_figures(tmp_path)["P1"].figures == FIGURES["P1"]
