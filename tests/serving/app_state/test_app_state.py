from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from roofcast.serving.app_state import app_state
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.champion_cache import FILE_NAME, distrusted
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.predict.json_rows import table_from_rows
from roofcast.training.lifecycle.registry import Champion, Registry, ShippedPredictor
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http_client import CONFIG, MODEL, a_measurement


def test_a_shipped_campaign_imported_again_does_not_count_twice(
    bench: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_state, "TRAINED_ON", ("llm_pilot",))
    n_row = len(bench.training_set().X)
    assert bench.add_measurements(load_campaigns(["llm_pilot"])) == (len(load_campaigns(["llm_pilot"])), 0)
    assert len(bench.training_set().X) == n_row
    bench.add_measurements(validate_measurements(table_from_rows([a_measurement()])))
    assert len(bench.training_set().X) == n_row + 1


def test_the_shipped_catalogue_keeps_its_names(bench: AppState) -> None:
    """A later release may bring a model whose name somebody has registered; the release's counts."""
    impostor = model_from_config(CONFIG, MODEL)
    bench.store.models.add(impostor, CONFIG)
    assert bench.catalog.model(MODEL) == load_catalog().model(MODEL)


def test_names_that_two_processes_registered_at_once_do_not_stop_the_others(bench: AppState) -> None:
    for name in ("mine/one", "Mine/One", "mine/two"):
        bench.store.models.add(model_from_config(CONFIG, name), CONFIG)
    assert bench.catalog.model("mine/two").id == "mine/two"
    assert bench.catalog.model("mine/one").id in {"mine/one", "Mine/One"}


def test_a_name_taken_by_another_case_is_refused(bench: AppState) -> None:
    bench.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    with pytest.raises(InputError, match="the name 'MINE/One' is taken"):
        bench.with_configs([("MINE/One", CONFIG | {"vocab_size": 7})])


def test_two_new_models_of_one_shape_are_one_lineage(bench: AppState) -> None:
    shape = CONFIG | {"num_hidden_layers": 39}
    _, new = bench.with_configs([("a", shape), ("b", shape | {"vocab_size": 1000})])
    assert [spec.lineage for spec, _ in new] == ["a", "a"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReadyError, match=r"cannot be made: .*; set ROOFCAST_HOME"):
        AppState(Settings(home=tmp_path / "file" / "home")).open()


def test_nothing_is_made_before_it_is_used(tmp_path: Path) -> None:
    bench = AppState(Settings(home=tmp_path / "home"))
    assert not (tmp_path / "home").exists()
    assert bench.open().store is bench.store
    assert (tmp_path / "home" / "roofcast.sqlite").is_file()
    bench.store.close()


def test_nothing_is_in_service_before_a_champion(empty_home: Path, tmp_path: Path) -> None:
    bench = AppState(Settings(home=Path(shutil.copytree(empty_home, tmp_path / "new"))))
    assert not bench.refresh()
    with pytest.raises(NotReadyError, match="run `roofcast retrain`"):
        _ = bench.active_model
    bench.store.close()


def test_a_champion_of_other_columns_says_why_it_does_not_serve(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roofcast.training.lifecycle.bundle.layout", lambda: "another")
    bench = AppState(settings)
    with pytest.raises(InputError, match="this version has another; retrain"):
        bench.refresh()
    with pytest.raises(NotReadyError, match="the champion, version 1, cannot be used"):
        _ = bench.active_model
    bench.store.close()


def test_while_one_asks_for_registered_models_the_others_do_not_wait(
    bench: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    assert bench.catalog.model("mine/one")
    asked, answered = threading.Event(), threading.Event()

    def models() -> list[ModelSpec]:
        asked.set()
        answered.wait(PATIENCE_S)
        raise NotReadyError("no answer")

    monkeypatch.setattr(bench.store, "models", models)
    first = threading.Thread(target=lambda: bench.catalog)
    first.start()
    assert asked.wait(PATIENCE_S)
    assert bench.catalog.model("mine/one"), "this would wait for the first"
    answered.set()
    first.join(PATIENCE_S)
    assert bench.catalog.model("mine/one")


def test_a_model_that_came_with_measurements_is_known_while_others_ask(bench: AppState) -> None:
    rows = validate_measurements(table_from_rows([a_measurement(model="mine/new")]))
    bench.add_measurements(rows, [("mine/new", CONFIG)])
    with bench._asking:
        assert bench.catalog.model("mine/new")


def test_what_served_last_is_believed_only_if_nobody_else_may_have_written_it(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    assert AppState(settings).refresh()
    name = settings.home / FILE_NAME
    (bundle,) = (settings.home / "bundles").glob("*.roofcast")
    assert name.stat().st_mode & 0o777 == 0o600
    assert AppState(settings).resume()
    for file in (name, bundle):
        mode = file.stat().st_mode
        file.chmod(0o620)
        assert not AppState(settings).resume()
        assert f"{file} must not be writable by others" in caplog.text
        file.chmod(mode)
    assert AppState(settings).resume()


def test_a_registry_that_has_not_changed_is_not_asked(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    first = AppState(settings)
    assert first.refresh()
    later = AppState(settings)
    assert later.resume()
    asked: list[int] = []
    monkeypatch.setattr(Registry, "champion", lambda _: asked.append(1))
    assert not first.refresh()
    assert not later.refresh()
    assert not asked
    os.utime(settings.home / "mlflow.db")
    assert not later.refresh()
    assert asked


def test_another_users_file_is_distrusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.touch(0o600)
    assert not distrusted(file)
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert f"must belong to the user {mine + 1}" in distrusted(file)


def test_the_second_trainer_says_that_it_waits_and_then_trains(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    trained: list[object] = []
    monkeypatch.setattr(app_state, "retrain", lambda *given: trained.append(given))
    monkeypatch.setattr(app_state, "TRAINED_ON", ("llm_pilot",))
    bench = AppState(settings, said.append)
    second = threading.Thread(target=bench.retrain)
    with FileLock(settings.home / "training.lock"):
        second.start()
        wait_until(lambda: bool(said))
        assert (len(said), trained) == (1, [])
        assert "another retraining is under way" in said[0]
    second.join(PATIENCE_S)
    assert len(trained) == 1
    bench.retrain()
    assert (len(said), len(trained)) == (1, 2)
    bench.store.close()


@pytest.fixture
def shipped(trained_home: Path, monkeypatch: pytest.MonkeyPatch) -> Champion:
    """Put the bundle of `trained_home` in the place of the shipped predictor."""
    (file,) = (trained_home / "bundles").iterdir()
    champion = Champion(f"shipped-{file.stem[:8]}", "", file.stem)
    monkeypatch.setattr(app_state, "shipped_predictor", lambda: ShippedPredictor(champion, file))
    return champion


def test_the_shipped_predictor_answers_at_once_and_without_mlflow(shipped: Champion, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    first = AppState(settings)
    assert first.resume()
    assert not first.refresh()
    other = AppState(settings)
    assert other.refresh()
    for state in (first, other, AppState(settings)):
        state.resume()
        assert state.active_model.champion == shipped
    assert not (settings.home / "mlflow.db").exists()


def test_where_the_champion_cannot_be_used_the_shipped_predictor_answers(
    shipped: Champion, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("bundle", "version 1 has lost its files")

    (bundle,) = (settings.home / "bundles").iterdir()
    bundle.unlink()
    monkeypatch.setattr(Registry, "_fetch", refuse)
    state = AppState(settings)
    with pytest.raises(InputError, match="version 1"):
        state.refresh()
    assert state.active_model.champion == shipped
    assert f"version {shipped.version} answers" in caplog.text
