from __future__ import annotations

import threading
from pathlib import Path

import pytest
from filelock import FileLock

from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.measurements.target import TRAINING
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.store.measurement_store import Added
from roofcast.data.store.provenance import Origin
from roofcast.serving.app_state import app_state
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.imports.measurement_import import import_rows
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.predict.json_rows import table_from_rows
from roofcast.training.lifecycle.learned_targets import LEARNED_TARGETS
from roofcast.training.lifecycle.registry.registry import Registry
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http_client import a_measurement
from tests.training.builders import QUIET, learning_from


@pytest.mark.slow
def test_an_imported_copy_of_a_shipped_campaign_adds_no_training_rows(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEARNED_TARGETS, "inference", learning_from(QUIET, ["llm_pilot"]))
    n_row = len(state.learning_rows().X)
    assert import_rows(state, load_campaigns(["llm_pilot"])) == Added(len(load_campaigns(["llm_pilot"])), 0)
    assert len(state.learning_rows().X) == n_row
    import_rows(state, validate_measurements(table_from_rows([a_measurement()])))
    assert len(state.learning_rows().X) == n_row + 1


def test_training_forgets_what_was_withdrawn_and_waits_for_a_confirmation(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEARNED_TARGETS, "inference", learning_from(QUIET, ["llm_pilot"]))
    before = state.learning_rows().digest
    rows = [a_measurement(), a_measurement(ttft_s=8.0)]
    added = import_rows(state, validate_measurements(table_from_rows(rows)), origin=Origin("ci", is_operator=False))
    assert (added.n_new, added.n_quarantined) == (2, 1)
    learnt = state.learning_rows()
    assert learnt.stacks.str.startswith("key:ci/").sum() == 1
    selection = {"import_id": added.import_id}
    state.store.provenance.change("confirmation", "the owner", selection)
    assert state.learning_rows().stacks.str.startswith("key:ci/").sum() == 2
    state.store.provenance.change("withdrawal", "the owner", selection)
    assert state.learning_rows().digest == before


def test_a_state_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReadyError, match=r"cannot be created: .*; set ROOFCAST_HOME"):
        AppState(Settings(home=tmp_path / "file" / "home")).open()


def test_nothing_is_created_before_first_use(tmp_path: Path) -> None:
    state = AppState(Settings(home=tmp_path / "home"))
    assert not (tmp_path / "home").exists()
    assert state.open().store is state.store
    assert (tmp_path / "home" / "roofcast.sqlite").is_file()
    state.store.close()


def test_a_cluster_is_refused_for_training_jobs(settings: Settings) -> None:
    with pytest.raises(InputError, match="leave it out") as error:
        AppState(settings).retrain(target=TRAINING, dask="tcp://scheduler:8786")
    assert error.value.field == "dask"


def test_a_second_retraining_warns_waits_and_then_runs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    runs: list[object] = []
    monkeypatch.setattr(app_state, "retrain", lambda *arguments, **_: runs.append(arguments))
    monkeypatch.setitem(LEARNED_TARGETS, "inference", learning_from(QUIET, ["llm_pilot"]))
    state = AppState(settings, warnings.append)
    second = threading.Thread(target=state.retrain)
    with FileLock(settings.home / "training.lock"):
        second.start()
        wait_until(lambda: bool(warnings))
        assert (len(warnings), runs) == (1, [])
        assert "another retraining runs" in warnings[0]
    second.join(PATIENCE_S)
    assert len(runs) == 1
    state.retrain()
    assert (len(warnings), len(runs)) == (1, 2)
    state.store.close()


def test_the_shipped_predictor_of_training_jobs_answers_while_the_registry_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stamp(_: object) -> str:
        raise NotReadyError("no answer")

    monkeypatch.setattr(Registry, "stamp", stamp)
    heard: list[str] = []
    state = AppState(Settings(home=tmp_path, mlflow_tracking_uri="http://mlflow.invalid"), heard.append)
    assert state.training_model.champion.version.startswith("shipped-")
    assert any("until the registry does: no answer" in text for text in heard)
