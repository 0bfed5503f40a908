from __future__ import annotations

import threading

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import NotReadyError, UnknownNameError
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from roofcast.data.store.registered_models import RegisteredModels
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.imports.measurement_import import import_rows
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.predict.json_rows import table_from_rows
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http_client import CONFIG, MODEL, a_measurement


def test_shipped_models_precede_registered_ones(state: AppState) -> None:
    """A later release may add a model whose name a user has registered; the shipped one has precedence."""
    duplicate = model_from_config(CONFIG, MODEL)
    state.store.models.add(duplicate, CONFIG)
    assert state.catalog.model(MODEL) == load_catalog().model(MODEL)


def test_colliding_registered_names_leave_the_other_models_usable(state: AppState) -> None:
    for name in ("mine/one", "Mine/One", "mine/two"):
        state.store.models.add(model_from_config(CONFIG, name), CONFIG)
    assert state.catalog.model("mine/two").id == "mine/two"
    assert state.catalog.model("mine/one").id in {"mine/one", "Mine/One"}


def test_readers_do_not_wait_while_a_thread_polls_the_store(state: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    state.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    assert state.catalog.model("mine/one")
    is_polling, can_answer = threading.Event(), threading.Event()

    def load(_: object) -> list[ModelSpec]:
        is_polling.set()
        can_answer.wait(PATIENCE_S)
        raise NotReadyError("no answer")

    monkeypatch.setattr(RegisteredModels, "load", load)
    first = threading.Thread(target=lambda: state.catalog)
    first.start()
    assert is_polling.wait(PATIENCE_S)
    assert state.catalog.model("mine/one"), "the reader waited for the poll"
    can_answer.set()
    first.join(PATIENCE_S)
    assert state.catalog.model("mine/one")


def test_a_reader_does_not_wait_for_a_store_that_hangs(state: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    state.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    assert state.catalog.model("mine/one")
    can_answer, load = threading.Event(), RegisteredModels.load

    def hang(models: RegisteredModels) -> list[ModelSpec]:
        assert can_answer.wait(PATIENCE_S)
        return load(models)

    monkeypatch.setattr(StoreAccess, "is_file", False)
    monkeypatch.setattr(RegisteredModels, "load", hang)
    state.store.models.add(model_from_config(CONFIG, "mine/two"), CONFIG)
    assert state.catalog.model("mine/one")
    with pytest.raises(UnknownNameError):
        state.catalog.model("mine/two")
    can_answer.set()
    wait_until(lambda: "mine/two" in state.catalog.models)


def test_an_imported_model_is_known_during_a_poll(state: AppState) -> None:
    rows = validate_measurements(table_from_rows([a_measurement(model="mine/new")]))
    import_rows(state, rows, [("mine/new", CONFIG)])
    with state.live_catalog._polling:
        assert state.catalog.model("mine/new")
