from __future__ import annotations

import threading

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import NotReadyError, UnknownNameError
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from roofcast.data.store.registered_models import RegisteredModels
from roofcast.serving.app_state.imports.measurement_import import import_rows
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.composition import Service
from roofcast.serving.predict.question_rows import table_from_rows
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http_client import CONFIG, MODEL, a_measurement


def test_shipped_models_precede_registered_ones(service: Service) -> None:
    """A later release may add a model whose name a user has registered; the shipped one has precedence."""
    duplicate = model_from_config(CONFIG, MODEL)
    service.store.models.add(duplicate, CONFIG)
    assert service.catalog.model(MODEL) == load_catalog().model(MODEL)


def test_colliding_registered_names_leave_the_other_models_usable(service: Service) -> None:
    for name in ("mine/one", "Mine/One", "mine/two"):
        service.store.models.add(model_from_config(CONFIG, name), CONFIG)
    assert service.catalog.model("mine/two").id == "mine/two"
    assert service.catalog.model("mine/one").id in {"mine/one", "Mine/One"}


def test_readers_do_not_wait_while_a_thread_polls_the_store(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    assert service.catalog.model("mine/one")
    is_polling, can_answer = threading.Event(), threading.Event()

    def load(_: object) -> list[ModelSpec]:
        is_polling.set()
        can_answer.wait(PATIENCE_S)
        raise NotReadyError("no answer")

    monkeypatch.setattr(RegisteredModels, "load", load)
    first = threading.Thread(target=lambda: service.catalog)
    first.start()
    assert is_polling.wait(PATIENCE_S)
    assert service.catalog.model("mine/one"), "the reader waited for the poll"
    can_answer.set()
    first.join(PATIENCE_S)
    assert service.catalog.model("mine/one")


def test_a_reader_does_not_wait_for_a_store_that_hangs(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    assert service.catalog.model("mine/one")
    can_answer, load = threading.Event(), RegisteredModels.load

    def hang(models: RegisteredModels) -> list[ModelSpec]:
        assert can_answer.wait(PATIENCE_S)
        return load(models)

    monkeypatch.setattr(StoreAccess, "is_file", False)
    monkeypatch.setattr(RegisteredModels, "load", hang)
    service.store.models.add(model_from_config(CONFIG, "mine/two"), CONFIG)
    assert service.catalog.model("mine/one")
    with pytest.raises(UnknownNameError):
        service.catalog.model("mine/two")
    can_answer.set()
    wait_until(lambda: "mine/two" in service.catalog.models)


def test_an_imported_model_is_known_during_a_poll(service: Service) -> None:
    rows = validate_measurements(table_from_rows([a_measurement(model="mine/new")]))
    import_rows(service.stores, service.catalogs, rows, [("mine/new", CONFIG)])
    with service.catalogs._polling:
        assert service.catalog.model("mine/new")
