from __future__ import annotations

import threading

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import NotReadyError
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from roofcast.data.store.registered_models import RegisteredModels
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.measurement_import import import_rows
from roofcast.serving.predict.json_rows import table_from_rows
from tests.conditions import PATIENCE_S
from tests.serving.http_client import CONFIG, MODEL, a_measurement


def test_shipped_models_precede_registered_ones(bench: AppState) -> None:
    """A later release may bring a model whose name somebody has registered; the release's counts."""
    impostor = model_from_config(CONFIG, MODEL)
    bench.store.models.add(impostor, CONFIG)
    assert bench.catalog.model(MODEL) == load_catalog().model(MODEL)


def test_colliding_registered_names_leave_the_other_models_usable(bench: AppState) -> None:
    for name in ("mine/one", "Mine/One", "mine/two"):
        bench.store.models.add(model_from_config(CONFIG, name), CONFIG)
    assert bench.catalog.model("mine/two").id == "mine/two"
    assert bench.catalog.model("mine/one").id in {"mine/one", "Mine/One"}


def test_readers_do_not_wait_while_a_thread_polls_the_store(bench: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    assert bench.catalog.model("mine/one")
    is_polling, may_answer = threading.Event(), threading.Event()

    def load(_: object) -> list[ModelSpec]:
        is_polling.set()
        may_answer.wait(PATIENCE_S)
        raise NotReadyError("no answer")

    monkeypatch.setattr(RegisteredModels, "load", load)
    first = threading.Thread(target=lambda: bench.catalog)
    first.start()
    assert is_polling.wait(PATIENCE_S)
    assert bench.catalog.model("mine/one"), "this would wait for the first"
    may_answer.set()
    first.join(PATIENCE_S)
    assert bench.catalog.model("mine/one")


def test_an_imported_model_is_known_during_a_poll(bench: AppState) -> None:
    rows = validate_measurements(table_from_rows([a_measurement(model="mine/new")]))
    import_rows(bench, rows, [("mine/new", CONFIG)])
    with bench.live_catalog._polling:
        assert bench.catalog.model("mine/new")
